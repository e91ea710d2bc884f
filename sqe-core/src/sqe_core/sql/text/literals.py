"""Literals as Python values, for what SQE carries out itself."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

from sqe_core.sql.text.cursor import Cursor
from sqe_core.sql.text.tokens import Kind

_HINT = "such as 0, 'text', TRUE or DATE '2026-01-01'"


def literal_value(cursor: Cursor, *, what: str = "A default") -> Any:
    token = cursor.token
    for word, value in (("true", True), ("false", False), ("null", None)):
        if cursor.accept(word):
            return value
    if token.kind is Kind.STRING:
        return cursor.string()
    if token.kind is Kind.BINARY:
        return bytes.fromhex(cursor.advance().value)
    if token.kind is Kind.WORD and cursor.peek().kind is Kind.STRING:
        return _typed(cursor, what)
    sign = -1 if cursor.accept_symbol("-") else 1
    if sign == 1:
        cursor.accept_symbol("+")
    if cursor.token.kind is not Kind.NUMBER:
        cursor.refuse(f"{what} must be a literal", hint=_HINT)
    number = cursor.advance().value
    if number.isdigit():
        return sign * int(number)
    return sign * (float(number) if "e" in number else Decimal(number))


def _typed(cursor: Cursor, what: str) -> Any:
    token = cursor.advance()
    text = cursor.string()
    try:
        match token.value:
            case "date":
                return datetime.date.fromisoformat(text)
            case "time":
                return datetime.time.fromisoformat(text)
            case "timestamp":
                return datetime.datetime.fromisoformat(text)
            case "decimal":
                return Decimal(text)
            case "double" | "real":
                return float(text)
            case "varchar" | "char" | "json" | "uuid":
                return text
    except (ValueError, ArithmeticError):
        raise cursor.text.error(f"{text!r} is no {token.value.upper()}", token.start) from None
    cursor.refuse(f"{what} must be a literal", hint=_HINT, at=token)
