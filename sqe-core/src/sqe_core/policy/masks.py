"""What masks make of a column, as expressions in the engine's SQL, and which of two masks is the stricter (POL-8).

    null > constant > hash > range, year > partial > custom expression

Two that are equally strict and not the same give NULL. A mask that cannot say anything sensible about a type gives
NULL too: the column keeps its type (POL-12).
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from sqe_core.policy import action_masks
from sqe_core.spi.errors import ConfigError
from sqe_core.spi.identity import Secret
from sqe_core.spi.policy import (
    ActionMask,
    ConstantMask,
    HashMask,
    Mask,
    NullMask,
    PartialMask,
    RangeMask,
    SqlMask,
    YearMask,
)
from sqe_core.spi.sql import SqlExpression

# A range and a year stand on one step: no column takes both.
_STEP = {NullMask: 0, ConstantMask: 1, HashMask: 2, RangeMask: 3, YearMask: 3, PartialMask: 4, SqlMask: 5}
_STEP_OF_ACTION = {
    "mask-to-fixed-value": 1,
    "sha-256-global": 2,
    "sha-256-query-local": 2,
    "truncate-to-month": 3,
    "mask-alphanum": 4,
    "show-first-4": 4,
    "show-last-4": 4,
}
_BLOCK = 64
_NUMBER = re.compile(r"tinyint|smallint|int|bigint|float|double|decimal\(\d+,\d+\)")


def strictest(masks: Sequence[Mask]) -> Mask:
    """Return the mask that holds when several do; the order they come in never matters."""
    step = min(map(_step, masks))
    candidates = {mask for mask in masks if _step(mask) == step}
    return candidates.pop() if len(candidates) == 1 else NullMask()


def _step(mask: Mask) -> int:
    return _STEP_OF_ACTION[mask.action] if isinstance(mask, ActionMask) else _STEP[type(mask)]


def kind_of(mask: Mask) -> str:
    """Return the name of a mask's kind, which may be shown to users (META-2)."""
    if isinstance(mask, ActionMask):
        return mask.action
    return {
        NullMask: "null",
        ConstantMask: "redact",
        HashMask: "hash",
        RangeMask: "range",
        YearMask: "year",
        PartialMask: "partial",
        SqlMask: "custom",
    }[type(mask)]


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskWriter:
    """Writes masks as expressions over a column.

    Hash masks take the HMAC `key`, or none where they may be `unkeyed`; `sha-256-query-local` the `salt`.
    """

    key: Secret | None = None
    unkeyed: bool = False
    salt: bytes = field(default_factory=lambda: secrets.token_bytes(16), repr=False)

    def for_statement(self, tag: str) -> MaskWriter:
        """Return the writer of one statement: its salt is nobody else's, and the same wherever the statement reads."""
        return replace(self, salt=hashlib.sha256(self.salt + tag.encode()).digest())

    def write(self, mask: Mask, column: str, type_text: str) -> SqlExpression:
        """Return the expression that a column of a type, in the engine's notation, reads as."""
        value = "`" + column.replace("`", "``") + "`"
        if isinstance(mask, SqlMask):
            return SqlExpression(
                text=mask.expression.text.replace("{col}", _name(column, mask.expression.dialect)),
                dialect=mask.expression.dialect,
            )
        return SqlExpression(text=self._text(mask, value, type_text), dialect="spark")

    def _text(self, mask: Mask, value: str, type_text: str) -> str:
        text = type_text == "string" or type_text.startswith(("char(", "varchar("))
        match mask:
            case ActionMask():
                return action_masks.write(mask.action, value, type_text, salt=self.salt)
            case ConstantMask() if text or type_text == "variant":
                return _literal(mask.value)
            case HashMask() if text or type_text == "variant":
                hashed = self._hash(value if text else f"to_json({value})")
                return f"CASE WHEN {value} IS NOT NULL THEN {hashed} END"
            case PartialMask() if text:
                return _partial(mask, value)
            case RangeMask() if _NUMBER.fullmatch(type_text):
                width = f"{mask.width}BD" if type_text.startswith("decimal") else str(mask.width)
                if type_text in ("float", "double"):
                    # Neither NaN nor what is beyond all whole numbers is in a range.
                    return f"CASE WHEN abs({value}) < 9e18D THEN floor({value} / {width}D) * {width}D END"
                return f"{value} - pmod({value}, {width})"
            case YearMask() if type_text == "date":
                return f"trunc({value}, 'YEAR')"
            case YearMask() if type_text.startswith("timestamp"):
                return f"date_trunc('YEAR', {value})"
        return "NULL"

    def _hash(self, value: str) -> str:
        """HMAC-SHA-256 as RFC 2104 composes it; Spark has no function for it, and users have none either (POL-12)."""
        if self.key is None:
            if not self.unkeyed:
                raise ConfigError(("hash masks need [policy] mask_key, or [security] allow_unkeyed_hash_masks = true",))
            return f"sha2({value}, 256)"
        key = self.key.reveal().encode()
        key = (hashlib.sha256(key).digest() if len(key) > _BLOCK else key).ljust(_BLOCK, b"\0")
        inner, outer = (bytes(byte ^ pad for byte in key).hex() for pad in (0x36, 0x5C))
        message = f"sha2(concat(X'{inner}', encode({value}, 'UTF-8')), 256)"
        return f"sha2(concat(X'{outer}', unhex({message})), 256)"


def _partial(mask: PartialMask, value: str) -> str:
    first, last = mask.show_first, mask.show_last
    classes = ", ".join(_literal(sign) for sign in (mask.upper, mask.lower, mask.digit))
    whole = f"mask({_ascii(value)}, {classes}, NULL)"
    if not first and not last:
        return whole
    hidden = f"substring({value}, {first + 1}, char_length({value}) - {first + last})"
    middle = f"mask({_ascii(hidden)}, {classes}, NULL)"
    shown = f"concat(substring({value}, 1, {first}), {middle}, {f'right({value}, {last})' if last else _literal('')})"
    # What is too short to have a middle would be shown whole.
    return f"CASE WHEN char_length({value}) <= {first + last} THEN {whole} ELSE {shown} END"


def _ascii(value: str) -> str:
    """The engine's `mask` knows letters with case and decimal digits, and would show all other scripts as they are."""
    for pattern, sign in ((r"\\p{N}", "0"), (r"\\p{Lu}", "A"), (r"[\\p{L}\\p{M}&&[^\\p{Lu}]]", "a")):
        value = f"regexp_replace({value}, '{pattern}', '{sign}')"
    return value


def _literal(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _name(column: str, dialect: str) -> str:
    quote = "`" if dialect == "spark" else '"'
    return quote + column.replace(quote, quote * 2) + quote
