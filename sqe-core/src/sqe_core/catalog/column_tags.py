"""The tags of columns: they live in a property of the table, so that they go where the table goes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

COLUMN_TAGS = "sqe.column-tags"


def read_column_tags(properties: Mapping[str, str]) -> Mapping[str, frozenset[str]] | None:
    """Return the tags by column; None when what is there cannot be read, which is not the same as no tags."""
    written = properties.get(COLUMN_TAGS)
    if written is None or not written.strip():
        return {}
    try:
        found = json.loads(written)
    except ValueError:
        return None
    if not isinstance(found, dict):
        return None
    tags: dict[str, frozenset[str]] = {}
    for column, listed in found.items():
        several = [listed] if isinstance(listed, str) else listed
        if not isinstance(several, list) or not all(isinstance(tag, str) for tag in several):
            return None
        tags[column] = frozenset(several)
    return tags


def tags_of_columns(properties: Mapping[str, str], columns: Iterable[str]) -> Mapping[str, frozenset[str]] | None:
    """Return the tags for a decision; None also when they name a column that is not there.

    A column that was renamed has lost its tags, and a policy on them would protect nothing (POL-6).
    """
    tags = read_column_tags(properties)
    known = {column.casefold() for column in columns}
    if tags is None or any(listed and column.casefold() not in known for column, listed in tags.items()):
        return None
    return tags


def write_column_tags(tags: Mapping[str, frozenset[str]]) -> str:
    """Return the text of the property; columns without tags are left out."""
    return json.dumps({column: sorted(listed) for column, listed in sorted(tags.items()) if listed}, ensure_ascii=False)
