"""Trino's session properties: those that mean something here are SQE's own, the others are refused with the reason."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib.resources import files

from sqe_core.session.properties import PROPERTIES
from sqe_core.spi.errors import ErrorCode, UserError

_OF_A_CATALOG = "<catalog>."


def own_name(name: str, is_catalog: Callable[[str], bool]) -> str:
    """Return what SQE calls a property; a name that nobody knows stays as it is, and is refused as unknown.

    Args:
        name: as the client wrote it; properties of a catalog begin with the catalog's name.
        is_catalog: whether there is a catalog of that name for this user.

    Raises:
        UserError: Trino has the property, and it means nothing here.
    """
    if name in PROPERTIES:
        return name
    catalog, dot, rest = name.rpartition(".")
    entry = name if not dot else _OF_A_CATALOG + rest if is_catalog(catalog) else None
    if entry is None:
        return name
    same, refused = listed()
    if entry in refused:
        raise UserError(
            f"Session property {name} has no meaning here: {refused[entry]}",
            code=ErrorCode.INVALID_SESSION_PROPERTY,
            hint="leave it out",
        )
    return same.get(entry, name)


@cache
def listed() -> tuple[Mapping[str, str], Mapping[str, str]]:
    """The names that mean a property of SQE's, and those that are refused with the reason."""
    same: dict[str, str] = {}
    refused: dict[str, str] = {}
    section, said = refused, ""
    for line in files("sqe_core.session").joinpath("trino_properties.txt").read_text("utf-8").splitlines():
        entry = line.strip()
        if entry.startswith("[refused]"):
            section, said = refused, entry.removeprefix("[refused]").strip()
        elif entry.startswith("["):
            section, said = same, entry.strip("[=] ")
        elif entry and not entry.startswith("#"):
            section[entry] = said
    return same, refused
