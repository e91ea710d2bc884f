"""SQL's privileges and those of Polaris: which stand for which, and what one brings that was not asked for (POL-15).

At Polaris some privileges bring others along on the same object. A GRANT that would give more than it says is refused,
and so is a REVOKE after which what it took away would still be there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from sqe_core.spi import NotSupportedError, Privilege

Rights = frozenset[str]
Words = Mapping[Privilege, Rights]

_SEE_TABLES = frozenset({"TABLE_LIST", "TABLE_READ_PROPERTIES"})
_SEE_SCHEMAS = frozenset({"NAMESPACE_LIST", "NAMESPACE_READ_PROPERTIES"})
_TABLE_ALL = frozenset({"TABLE_FULL_METADATA", "TABLE_READ_DATA", "TABLE_WRITE_DATA"})

_TABLE: Words = {
    Privilege.SELECT: frozenset({"TABLE_READ_DATA"}),
    Privilege.MODIFY: frozenset({"TABLE_WRITE_DATA"}),
    Privilege.ALTER: frozenset({"TABLE_WRITE_PROPERTIES"}),
    Privilege.DROP: frozenset({"TABLE_DROP"}),
    Privilege.MONITOR: _SEE_TABLES,
    Privilege.ALL: _TABLE_ALL,
}
_VIEW: Words = {
    Privilege.SELECT: frozenset({"VIEW_READ_PROPERTIES"}),
    Privilege.SELECT_VIEW: frozenset({"VIEW_READ_PROPERTIES"}),
    Privilege.ALTER: frozenset({"VIEW_WRITE_PROPERTIES"}),
    Privilege.DROP: frozenset({"VIEW_DROP"}),
    Privilege.DROP_VIEW: frozenset({"VIEW_DROP"}),
    Privilege.MONITOR: frozenset({"VIEW_LIST"}),
    Privilege.ALL: frozenset({"VIEW_FULL_METADATA"}),
}
_CONTAINER: Words = {
    Privilege.USE: _SEE_SCHEMAS,
    Privilege.MONITOR: _SEE_SCHEMAS | _SEE_TABLES | {"VIEW_LIST"},
    Privilege.SELECT: frozenset({"TABLE_READ_DATA", "VIEW_READ_PROPERTIES"}),
    Privilege.SELECT_VIEW: frozenset({"VIEW_READ_PROPERTIES"}),
    Privilege.MODIFY: frozenset({"TABLE_WRITE_DATA"}),
    Privilege.ALTER: frozenset({"TABLE_WRITE_PROPERTIES", "VIEW_WRITE_PROPERTIES", "NAMESPACE_WRITE_PROPERTIES"}),
    Privilege.DROP: frozenset({"TABLE_DROP", "VIEW_DROP", "NAMESPACE_DROP"}),
    Privilege.DROP_VIEW: frozenset({"VIEW_DROP"}),
    Privilege.CREATE: frozenset({"TABLE_CREATE"}),
    Privilege.CREATE_VIEW: frozenset({"VIEW_CREATE"}),
    Privilege.CREATE_NAMESPACE: frozenset({"NAMESPACE_CREATE"}),
    Privilege.ALL: frozenset({"CATALOG_MANAGE_CONTENT"}),
}
_WORDS: Mapping[str, Words] = {"table": _TABLE, "view": _VIEW, "namespace": _CONTAINER, "catalog": _CONTAINER}

_PART_OF = {Privilege.SELECT_VIEW: Privilege.SELECT, Privilege.DROP_VIEW: Privilege.DROP}

# Whoever has any right on something sees that it is there, and its columns, at SQE as at Polaris.
_HARMLESS = _SEE_TABLES | _SEE_SCHEMAS | {"VIEW_LIST"}

_TABLE_METADATA = _SEE_TABLES | {"TABLE_CREATE", "TABLE_DROP", "TABLE_WRITE_PROPERTIES"}
_VIEW_METADATA = frozenset({"VIEW_CREATE", "VIEW_DROP", "VIEW_LIST", "VIEW_READ_PROPERTIES", "VIEW_WRITE_PROPERTIES"})
_NAMESPACE_METADATA = _SEE_SCHEMAS | {"NAMESPACE_CREATE", "NAMESPACE_DROP", "NAMESPACE_WRITE_PROPERTIES"}
_METADATA = (
    _TABLE_METADATA
    | _VIEW_METADATA
    | _NAMESPACE_METADATA
    | {"TABLE_FULL_METADATA", "VIEW_FULL_METADATA", "NAMESPACE_FULL_METADATA"}
)

_BRINGS: Mapping[str, Rights] = MappingProxyType(
    {
        "TABLE_READ_PROPERTIES": frozenset({"TABLE_LIST"}),
        "TABLE_WRITE_PROPERTIES": _SEE_TABLES,
        "TABLE_READ_DATA": _SEE_TABLES,
        "TABLE_WRITE_DATA": _SEE_TABLES | {"TABLE_READ_DATA", "TABLE_WRITE_PROPERTIES"},
        "TABLE_CREATE": frozenset({"TABLE_LIST"}),
        "TABLE_FULL_METADATA": _TABLE_METADATA,
        "VIEW_READ_PROPERTIES": frozenset({"VIEW_LIST"}),
        "VIEW_WRITE_PROPERTIES": frozenset({"VIEW_LIST", "VIEW_READ_PROPERTIES"}),
        "VIEW_CREATE": frozenset({"VIEW_LIST"}),
        "VIEW_FULL_METADATA": _VIEW_METADATA,
        "NAMESPACE_READ_PROPERTIES": frozenset({"NAMESPACE_LIST"}),
        "NAMESPACE_WRITE_PROPERTIES": _SEE_SCHEMAS,
        "NAMESPACE_CREATE": frozenset({"NAMESPACE_LIST"}),
        "NAMESPACE_FULL_METADATA": _NAMESPACE_METADATA,
        "CATALOG_MANAGE_METADATA": _METADATA,
        "CATALOG_MANAGE_CONTENT": _METADATA | {"CATALOG_MANAGE_METADATA", "TABLE_READ_DATA", "TABLE_WRITE_DATA"},
    }
)


def with_all_brought(rights: Iterable[str]) -> Rights:
    """Return privileges of Polaris with all that they bring on the same object."""
    return frozenset(each for right in rights for each in (right, *_BRINGS.get(right, ())))


def rights_to_grant(words: frozenset[Privilege], place: str) -> Rights:
    """Return what a GRANT adds.

    Raises:
        NotSupportedError: Polaris has no such privilege, or it would give more than was said.
    """
    rights = _rights(words, place)
    if Privilege.ALL in words:
        return rights
    needed = _closed(words, place)
    if needed != words:
        raise NotSupportedError(
            f"At Polaris, {_text(words)} on a {_noun(place)} brings {_text(needed - words)} with it",
            hint=f"GRANT {_text(needed)} says so",
        )
    return rights


def rights_to_revoke(words: frozenset[Privilege], held: Rights, place: str) -> Rights:
    """Return what of the held privileges a REVOKE takes away.

    Raises:
        NotSupportedError: what is left would bring it again.
    """
    if Privilege.ALL in words:
        return held
    gone = _rights(words, place)
    left = held - gone
    if with_all_brought(left) & (gone - _HARMLESS):
        keeping = words_of(left, place)
        raise NotSupportedError(
            f"At Polaris, {_text(keeping) or 'another privilege'} on this {_noun(place)} still brings {_text(words)}",
            hint=f"REVOKE {_text(words | keeping)}, then GRANT what is to stay" if keeping else "REVOKE ALL PRIVILEGES",
        )
    return held & gone


def still_brings(rights: Rights, words: frozenset[Privilege], place: str) -> bool:
    """Whether privileges on an object bring what was to be taken away."""
    if Privilege.ALL in words:
        return bool(rights)
    return bool(with_all_brought(rights) & (_rights(words, place) - _HARMLESS))


def words_of(rights: Rights, place: str) -> frozenset[Privilege]:
    """Return what privileges of Polaris are called in SQL; some have no name there."""
    known = _WORDS[place]
    brought = with_all_brought(rights)
    if known[Privilege.ALL] <= brought:
        return frozenset({Privilege.ALL})
    words = {
        word
        for word, needed in known.items()
        # What can be seen goes without saying, unless it is all that there is.
        if needed <= brought and (needed <= rights or not needed <= _HARMLESS)
    }
    return frozenset(word for word in words if _PART_OF.get(word) not in words)


def _closed(words: frozenset[Privilege], place: str) -> frozenset[Privilege]:
    """Add the words without which these would give more than they say, each the one that gives least."""
    known = _WORDS[place]
    while True:
        rights = _rights(words, place)
        brought = with_all_brought(rights)
        more = sorted(brought - rights - _HARMLESS)
        if not more:
            return words
        fitting = [word for word, of in known.items() if more[0] in of and word is not Privilege.ALL]
        words |= {min(fitting, key=lambda word: len(known[word] - brought))}


def _rights(words: frozenset[Privilege], place: str) -> Rights:
    known = _WORDS[place]
    unknown = words - known.keys()
    if unknown:
        hint = "GRANT ALL, or the privileges of docs/polaris-grants.md"
        if Privilege.INSERT in unknown:
            hint = "Polaris tells no kinds of writing apart: GRANT SELECT, MODIFY, ALTER"
        raise NotSupportedError(f"Polaris has no {_text(unknown)} on a {_noun(place)}", hint=hint)
    return frozenset(right for word in words for right in known[word])


def _text(words: Iterable[Privilege]) -> str:
    order = list(Privilege)
    return ", ".join(word.value for word in sorted(words, key=order.index))


def _noun(place: str) -> str:
    return "schema" if place == "namespace" else place
