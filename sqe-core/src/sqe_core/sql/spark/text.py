"""How Spark SQL writes names and literals, so that nothing in them can end them early."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from sqe_core.sql.grammar.types import spark_identifier

_SPECIAL = re.compile(r"[\\'\x00-\x1f\x7f]")


def quote_string(value: str) -> str:
    """Write a string literal; `spark.sql.parser.escapedStringLiterals` is false (CONF-1)."""
    return "'" + _SPECIAL.sub(_escape, value) + "'"


def quote_name(name: Sequence[str]) -> str:
    return ".".join(spark_identifier(part) for part in name)


def quote_properties(properties: Mapping[str, str]) -> str:
    """Write the list of a TBLPROPERTIES clause, brackets included."""
    return _listed(f"{quote_string(key)} = {quote_string(value)}" for key, value in properties.items())


def quote_keys(keys: Iterable[str]) -> str:
    """Write the list of property keys of an UNSET clause."""
    return _listed(map(quote_string, keys))


def _listed(items: Iterable[str]) -> str:
    return "(" + ", ".join(items) + ")"


def _escape(match: re.Match[str]) -> str:
    char = match.group()
    if char in "\\'":
        return "\\" + char
    # Spark reads \0 to \377 and \u0000; line breaks and tabs may stay as they are.
    return char if char in "\t\n\r" else f"\\u{ord(char):04x}"
