"""Runs the project as one process, in the environment of dbt: built, built again with other orders, and documented."""

from __future__ import annotations

import shutil
import sys

from dbt.cli.main import dbtRunner

runner = dbtRunner()
for step in ("first", "second"):
    if step == "second":
        shutil.copy("later/raw_orders.csv", "seeds/raw_orders.csv")
    built = runner.invoke(["--no-use-colors", "build", "--profiles-dir", ".", "--target-path", step])
    if not built.success:
        sys.exit(f"the {step} build failed: {built.exception}")
if not runner.invoke(["--no-use-colors", "docs", "generate", "--profiles-dir", ".", "--target-path", "docs"]).success:
    sys.exit("no documentation")
