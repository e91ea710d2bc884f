"""The actions of the Iceberg REST specification's read restrictions, as expressions in the engine's SQL.

The specification defines each to the byte, so that all engines answer the same. An action that it does not define for a
type is an error, never another mask.
"""

from __future__ import annotations

import re

from sqe_core.spi.errors import UserError
from sqe_core.spi.policy import MaskAction

_FIXED = {
    "boolean": "false",
    "int": "0",
    "bigint": "0L",
    "float": "0F",
    "double": "0D",
    "string": "'XXXXXXXX'",
    "date": "DATE '1970-01-01'",
    "timestamp": "TIMESTAMP '1970-01-01 00:00:00Z'",
    "timestamp_ntz": "TIMESTAMP_NTZ '1970-01-01 00:00:00'",
    "binary": "X''",
}
_DECIMAL = re.compile(r"decimal\(\d+,\d+\)")
_HASHED = ("string", "int", "bigint", "binary")
_INT_BYTES, _BIGINT_BYTES = 4, 8


def write(action: MaskAction, value: str, type_text: str, *, salt: bytes) -> str:
    """Return the expression that a quoted column reads as; raise a UserError when its type has no such action.

    `salt` is what `sha-256-query-local` hashes before each value.
    """
    match action:
        case "mask-alphanum" if type_text == "string":
            return _alphanum(value)
        case "show-first-4" if type_text == "string":
            rest = _alphanum(f"substring({value}, 5)")
            return f"CASE WHEN char_length({value}) <= 4 THEN {value} ELSE concat(substring({value}, 1, 4), {rest}) END"
        case "show-last-4" if type_text == "string":
            rest = _alphanum(f"substring({value}, 1, char_length({value}) - 4)")
            return f"CASE WHEN char_length({value}) <= 4 THEN {value} ELSE concat({rest}, right({value}, 4)) END"
        case "truncate-to-month" if type_text == "date":
            return f"trunc({value}, 'MONTH')"
        case "truncate-to-month" if type_text in ("timestamp", "timestamp_ntz"):
            return f"date_trunc('MONTH', {value})"
        case "mask-to-fixed-value" if type_text in _FIXED:
            return _FIXED[type_text]
        case "mask-to-fixed-value" if _DECIMAL.fullmatch(type_text):
            return f"CAST(0 AS {type_text})"
        case "mask-to-fixed-value" if type_text.startswith("array<"):
            return "array()"
        case "mask-to-fixed-value" if type_text.startswith("map<"):
            return "map()"
        case "sha-256-global" if type_text in _HASHED:
            return _hash(value, type_text, b"")
        case "sha-256-query-local" if type_text in _HASHED:
            return _hash(value, type_text, salt)
    raise UserError(f"The action {action} has no meaning for a column of type {type_text}")


def _alphanum(value: str) -> str:
    """Digits become n, all but a few signs x; a character beyond the first plane is one character."""
    return f"regexp_replace(regexp_replace({value}, '[^0-9(),.@-]', 'x'), '[0-9]', 'n')"


def _hash(value: str, type_text: str, salt: bytes) -> str:
    match type_text:
        case "string":
            message = f"encode({value}, 'UTF-8')"
        case "int":
            digits = f"right(lpad(hex(CAST({value} AS BIGINT)), 16, '0'), 8)"
            message = f"unhex({_reversed(digits, _INT_BYTES)})"
        case "bigint":
            digits = f"lpad(hex({value}), 16, '0')"
            message = f"unhex({_reversed(digits, _BIGINT_BYTES)})"
        case _:
            message = value
    if salt:
        message = f"concat(X'{salt.hex()}', {message})"
    digest = f"sha2({message}, 256)"
    match type_text:
        case "string":
            hashed = digest
        case "int":
            # As unsigned, and then into the range of the signed ones.
            number = f"CAST(conv({_reversed(digest, _INT_BYTES)}, 16, 10) AS BIGINT)"
            hashed = f"CAST(pmod({number} + 2147483648L, 4294967296L) - 2147483648L AS INT)"
        case "bigint":
            hashed = f"CAST(conv({_reversed(digest, _BIGINT_BYTES)}, 16, -10) AS BIGINT)"
        case _:
            hashed = f"unhex({digest})"
    return f"CASE WHEN {value} IS NOT NULL THEN {hashed} END"


def _reversed(digits: str, count: int) -> str:
    """Return the first bytes of hexadecimal digits in their opposite order: the specification counts from the least."""
    return f"concat({', '.join(f'substring({digits}, {2 * place + 1}, 2)' for place in reversed(range(count)))})"
