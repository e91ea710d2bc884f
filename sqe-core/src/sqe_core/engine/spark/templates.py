"""Make SQE's typed function templates known to an engine session. The table is data: sql/spark/templates.toml."""

from __future__ import annotations

import hashlib
import tomllib
from functools import cache
from importlib.resources import files
from typing import Any

from sqe_core.engine.spark.gateway import Gateway


def install(gateway: Gateway, session: Any) -> None:
    """Register every template in a session's function registry; the table crosses once for each JVM."""
    table, digest = _table()
    bridge = gateway.jvm.sqe.bridge.FunctionTemplates
    if not bridge.install(session, digest):
        bridge.load(table, digest)
        bridge.install(session, digest)


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
