"""What a vendor's plugin needs of SQE is its SPI."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

SOURCES = sorted((*Path(__file__).parent.glob("*/acme_*.py"), *Path(__file__).parent.glob("acme/src/*/*.py")))


def imported(source: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(source.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module or "")
    return found


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.stem)
def test_nothing_of_the_core_but_the_spi(source: Path) -> None:
    assert {name for name in imported(source) if name.split(".")[0] == "sqe_core"} <= {"sqe_core.spi"}


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.stem)
def test_no_vendor_needs_another(source: Path) -> None:
    own = source.stem if source.stem.startswith("acme_") else source.parent.name
    others = {name.split(".")[0] for name in imported(source)} - sys.stdlib_module_names - {"sqe_core", own}
    assert others <= {"pyarrow", "boto3", "botocore"}
