"""ALTER TABLE … SET TAGS and UNSET TAGS: administrators only, since policies hang on tags (STMT-7)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sqe_core.catalog.column_tags import COLUMN_TAGS, read_column_tags, write_column_tags
from sqe_core.query.judge.names import ResolvedName
from sqe_core.query.statements.steward import Steward
from sqe_core.spi.catalog import TableMetadata
from sqe_core.spi.errors import ErrorCode, NotSupportedError, UserError
from sqe_core.sql.statement import Name
from sqe_core.sql.statements.governance import SetTags, UnsetTags


@dataclass(frozen=True, slots=True)
class TagChanges:
    """Changes the tags of columns. `set_property` writes a property of a table."""

    steward: Steward
    set_property: Callable[[ResolvedName, str, str], None]

    def set(self, statement: SetTags) -> None:
        """Add tags to columns."""
        self.steward.require_admin("set tags")
        resolved, loaded, tags = self._read(statement.name)
        for written, added in statement.tags.items():
            column = self.steward.column(resolved.name, loaded, written)
            tags[column] = tags.get(column, frozenset()) | added
        self._write(resolved, tags)

    def unset(self, statement: UnsetTags) -> None:
        """Take tags off columns; a tag that has a value goes with it."""
        self.steward.require_admin("unset tags")
        resolved, loaded, tags = self._read(statement.name)
        for written in statement.columns:
            # A column that was renamed or dropped leaves its tags behind, and they can still be taken off.
            left = next((column for column in tags if column.casefold() == written.casefold()), None)
            column = left or self.steward.column(resolved.name, loaded, written)
            kept = frozenset(tag for tag in tags.get(column, ()) if not _is_tag(tag, statement.tag))
            tags[column] = kept
        self._write(resolved, tags)

    def _read(self, name: Name) -> tuple[ResolvedName, TableMetadata, dict[str, frozenset[str]]]:
        resolved, loaded = self.steward.existing(name)
        if not isinstance(loaded, TableMetadata):
            raise NotSupportedError("Tags belong to the columns of tables")
        tags = read_column_tags(loaded.properties)
        if tags is None:
            raise UserError(f"The tags of {resolved.name} cannot be read", code=ErrorCode.EXECUTION_FAILED)
        return resolved, loaded, dict(tags)

    def _write(self, resolved: ResolvedName, tags: Mapping[str, frozenset[str]]) -> None:
        if resolved.mount.backend.read_only:
            raise NotSupportedError(f"Catalog {resolved.mount.name} is read-only")
        self.set_property(resolved, COLUMN_TAGS, write_column_tags(tags))
        self.steward.authorizer.flush()


def _is_tag(tag: str, removed: str | None) -> bool:
    if removed is None:
        return True
    return tag.casefold() == removed.casefold() or tag.casefold().startswith(f"{removed.casefold()}=")
