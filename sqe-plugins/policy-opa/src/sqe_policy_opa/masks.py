"""Masks as OPA writes them: a short text, or an object with a type."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from types import MappingProxyType
from typing import Any

from sqe_core.spi import (
    ConstantMask,
    HashMask,
    Mask,
    NullMask,
    PartialMask,
    RangeMask,
    SqlExpression,
    SqlMask,
    YearMask,
)

_REDACT = "redact:"
LONGEST_TEXT = 16 * 1024


def read_mask(value: Any) -> Mask:
    if isinstance(value, str):
        return _read_text(value)
    if not isinstance(value, Mapping):
        raise ValueError("a mask is neither text nor an object")
    kind = value.get("type")
    if not isinstance(kind, str) or kind not in _READERS:
        raise ValueError("a mask has a type that SQE does not know")
    keys, read = _READERS[kind]
    if not value.keys() <= {"type", *keys}:
        raise ValueError(f"a mask of type {kind} has keys that SQE does not know")
    return read(value)


def _read_text(text: str) -> Mask:
    if len(text) > LONGEST_TEXT:
        raise ValueError("a mask is too long")
    match text:
        case "hash":
            return HashMask()
        case "null" | "nullify":
            return NullMask()
    return ConstantMask(value=text.removeprefix(_REDACT))


def _constant(value: Mapping[str, Any]) -> Mask:
    return ConstantMask(value=_text(value["text"])) if "text" in value else ConstantMask()


def _partial(value: Mapping[str, Any]) -> Mask:
    shown = {key: _count(value[key]) for key in ("show_first", "show_last") if key in value}
    replacements = {key: _text(value[key]) for key in ("upper", "lower", "digit") if key in value}
    return PartialMask(**shown, **replacements)  # type: ignore[arg-type]


def _range(value: Mapping[str, Any]) -> Mask:
    width = value.get("width")
    if isinstance(width, bool) or not isinstance(width, int | float):
        raise ValueError("the width of a range mask is a number")
    return RangeMask(width=width if isinstance(width, int) else Decimal(str(width)))


def _custom(value: Mapping[str, Any]) -> Mask:
    expression = _text(value.get("expression"))
    if not expression.strip():
        raise ValueError("a custom mask has an expression")
    return SqlMask(expression=SqlExpression(text=expression))


def _text(value: Any) -> str:
    if not isinstance(value, str) or len(value) > LONGEST_TEXT:
        raise ValueError("a mask holds something else than text, or too much of it")
    return value


def _count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError("a mask shows a whole number of characters")
    return value


_READERS: Mapping[str, tuple[frozenset[str], Callable[[Mapping[str, Any]], Mask]]] = MappingProxyType(
    {
        "null": (frozenset(), lambda value: NullMask()),
        "hash": (frozenset(), lambda value: HashMask()),
        "year": (frozenset(), lambda value: YearMask()),
        "redact": (frozenset({"text"}), _constant),
        "partial": (frozenset({"show_first", "show_last", "upper", "lower", "digit"}), _partial),
        "range": (frozenset({"width"}), _range),
        "custom": (frozenset({"expression"}), _custom),
    }
)


def write_mask(mask: Mask) -> Any:
    """Write a mask so that `read_mask` gives the same again. Raises ValueError where JSON cannot."""
    match mask:
        case NullMask():
            return "null"
        case HashMask():
            return "hash"
        case ConstantMask(value=text):
            return _REDACT + text
        case YearMask():
            return {"type": "year"}
        case RangeMask(width=width):
            return {"type": "range", "width": _number(width)}
        case PartialMask():
            names = ("show_first", "show_last", "upper", "lower", "digit")
            return {"type": "partial", **{name: getattr(mask, name) for name in names}}
        case SqlMask(expression=expression) if expression.dialect == "sqe":
            return {"type": "custom", "expression": expression.text}
    raise ValueError("OPA cannot hold an expression of another dialect")


def _number(width: int | Decimal) -> int | float:
    if isinstance(width, int):
        return width
    if Decimal(str(float(width))) != width:
        raise ValueError("OPA cannot hold a range of that many digits")
    return float(width)
