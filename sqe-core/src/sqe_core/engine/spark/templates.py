"""Make SQE's typed function templates known to an engine session. The table is data: sql/spark/templates.toml."""

from __future__ import annotations

import hashlib
import tomllib
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqe_core.engine.spark.session import SparkEngineSession


def install_templates(session: SparkEngineSession) -> None:
    """Register every template in a session's function registry; the table crosses once for each JVM."""
    table, digest = _table()
    templates, spark = session.context.bridge.functions.FunctionTemplates, session.spark._jsparkSession
    if not templates.install(spark, digest):
        templates.load(table, digest)
        templates.install(spark, digest)
    session.bridge.remember()


@cache
def _table() -> tuple[str, str]:
    """Return the lines that the bridge reads (name, types, template) and what tells one table from another."""
    source = files("sqe_core.sql.spark").joinpath("templates.toml").read_text("utf-8")
    lines = [
        f"{name}\t{types}\t{template}"
        for name, rules in tomllib.loads(source).items()
        for types, template in rules.items()
    ]
    return "\n".join(lines), hashlib.sha256(source.encode()).hexdigest()
