"""Grants, masks and grantees in words: the canonical form in which SHOW prints them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqe_core.policy.masks import kind_of
from sqe_core.spi.names import NamespaceName, ObjectName, quote_part
from sqe_core.spi.policy import (
    ActionMask,
    ColumnMask,
    ConstantMask,
    Grant,
    Grantee,
    GrantTarget,
    HashMask,
    Mask,
    NullMask,
    PartialMask,
    RangeMask,
    SqlMask,
    YearMask,
)


def mask_text(mask: Mask) -> str:
    """Write a mask as MASKED WITH takes it."""
    match mask:
        case NullMask():
            return "'NULL'"
        case HashMask():
            return "'HASH'"
        case YearMask():
            return "'YEAR'"
        case RangeMask(width=width):
            return f"'RANGE({width})'"
        case PartialMask(show_first=first, show_last=last):
            return f"'PARTIAL({first}, {last})'"
        case ConstantMask(value="***"):
            return "'REDACT'"
        case ConstantMask(value=value):
            return literal(value)
        case SqlMask(expression=expression):
            return expression.text
        case ActionMask(action=action):
            return literal(action)


def masks_text(masks: Iterable[ColumnMask], *, kinds_only: bool = False) -> str | None:
    """Write the masks of several columns; None when there are none."""
    return (
        ", ".join(
            f"{quote_part(one.column)}: {kind_of(one.mask) if kinds_only else mask_text(one.mask)}" for one in masks
        )
        or None
    )


def literal(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def names_text(names: Sequence[str] | None) -> str | None:
    return None if names is None else ", ".join(map(quote_part, names))


def target_text(target: GrantTarget) -> str:
    """Write what a grant is about, as it stands after ON."""
    catalog = quote_part(target.catalog)
    schema = str(NamespaceName(catalog=target.catalog, namespace=target.namespace))
    match target.scope:
        case "catalog":
            return f"CATALOG {catalog}"
        case "schema":
            return f"SCHEMA {schema}"
        case "table" | "view":
            name = ObjectName(catalog=target.catalog, namespace=target.namespace, name=target.name or "")
            return str(name)
    return f"{target.scope.replace('_', ' ').upper()} IN SCHEMA {schema}"


def grantee_text(grantee: Grantee) -> str:
    """Write a grantee, as it stands after TO."""
    return "PUBLIC" if grantee.type == "public" else f"{grantee.type.upper()} {quote_part(grantee.name)}"


def privileges_of(grant: Grant) -> list[str]:
    """Return the words of a grant's privileges; ROWS or MASKED where it restricts only."""
    if grant.privileges:
        return sorted(one.value for one in grant.privileges)
    return ["ROWS" if grant.row_filter is not None else "MASKED"]
