"""What `@mask` and `@filter` say."""

from __future__ import annotations

import re
from collections.abc import Collection
from decimal import Decimal

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

# Strictest first (POL-8).
_STRICTNESS: tuple[tuple[type[object], ...], ...] = (
    (NullMask,),
    (ConstantMask,),
    (HashMask,),
    (RangeMask, YearMask),
    (PartialMask,),
    (SqlMask,),
)
_WIDTH = re.compile(r"\d{1,18}(\.\d{1,18})?", re.ASCII)
_SHOWN = re.compile(r"(\d{1,4}) ?, ?(\d{1,4})", re.ASCII)


def read_mask(text: str) -> Mask:
    """Read the value of `@mask`.

    Raises:
        ValueError: it is no mask.
    """
    word, colon, argument = text.partition(":")
    match word, bool(colon):
        case "null", False:
            return NullMask()
        case "hash", False:
            return HashMask()
        case "year", False:
            return YearMask()
        case "redact", False:
            return ConstantMask()
        case "redact", True:
            return ConstantMask(value=argument)
        case "partial", True if shown := _SHOWN.fullmatch(argument):
            return PartialMask(show_first=int(shown[1]), show_last=int(shown[2]))
        case "range", True if _WIDTH.fullmatch(argument):
            return RangeMask(width=Decimal(argument) if "." in argument else int(argument))
        case "sql", True:
            return SqlMask(expression=SqlExpression(text=read_expression(argument)))
    raise ValueError(
        "is none of null, hash, redact, redact:<text>, partial:<first>,<last>, year, range:<n>, sql:<expr>"
    )


def read_expression(text: str) -> str:
    """Check that a text can stand in parentheses of ours without leaving them; the core compiles it later (POL-5).

    Raises:
        ValueError: it could not.
    """
    depth = 0
    place = 0
    while place < len(text):
        char = text[place]
        if char in "'\"`":
            place = text.find(char, place + 1)
            if place < 0:
                raise ValueError("ends within quotes")
        elif text.startswith(("--", "/*"), place) or char == ";":
            raise ValueError("holds a comment or a semicolon")
        depth += (char == "(") - (char == ")")
        if depth < 0:
            break
        place += 1
    if depth:
        raise ValueError("has parentheses that do not match")
    if not text.strip():
        raise ValueError("is empty")
    return text.strip()


def strictest(masks: Collection[Mask]) -> Mask:
    """Return the strictest mask; NULL when there is none, or when two are as strict and differ (POL-8)."""
    for types in _STRICTNESS:
        found = [mask for mask in masks if isinstance(mask, types)]
        if found:
            return found[0] if all(mask == found[0] for mask in found) else NullMask()
    return NullMask()
