"""ALTER TABLE … SET TAGS and UNSET TAGS: administrators only, since policies hang on tags (STMT-7). SHOW TAGS."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from sqe_core.catalog.column_tags import COLUMN_TAGS, read_column_tags, write_column_tags
from sqe_core.query.answers.metadata import text_table
from sqe_core.query.judge.names import ResolvedName
from sqe_core.query.judge.relation_text import property_text
from sqe_core.query.statements.steward import Steward, steward_answer, steward_change
from sqe_core.query.statements.traits import DDL
from sqe_core.spi.catalog import TableMetadata
from sqe_core.spi.errors import ErrorCode, NotSupportedError, UserError
from sqe_core.sql.statement import Name
from sqe_core.sql.statements.governance import SetTags, ShowTags, UnsetTags


def _shown(statement: ShowTags, steward: Steward) -> pa.Table:
    resolved, loaded, tags = _read(steward, statement.name)
    visible = [column.name for column in steward.columns(resolved.name, loaded)]
    return text_table(("column", "tag"), [(column, tag) for column in visible for tag in sorted(tags.get(column, ()))])


show_tags = steward_answer(ShowTags, _shown)


@steward_change(SetTags, traits=DDL, admin="set tags")
def set_tags(statement: SetTags, steward: Steward) -> None:
    resolved, loaded, tags = _read(steward, statement.name)
    for written, added in statement.tags.items():
        column = steward.column(resolved.name, loaded, written)
        tags[column] = tags.get(column, frozenset()) | added
    _write(steward, resolved, tags)


@steward_change(UnsetTags, traits=DDL, admin="unset tags")
def unset_tags(statement: UnsetTags, steward: Steward) -> None:
    """ALTER TABLE … UNSET TAGS; a tag that has a value goes with it."""
    resolved, loaded, tags = _read(steward, statement.name)
    for written in statement.columns:
        # A column that was renamed or dropped leaves its tags behind, and they can still be taken off.
        left = next((column for column in tags if column.casefold() == written.casefold()), None)
        column = left or steward.column(resolved.name, loaded, written)
        kept = frozenset(tag for tag in tags.get(column, ()) if not _is_tag(tag, statement.tag))
        tags[column] = kept
    _write(steward, resolved, tags)


def _read(steward: Steward, name: Name) -> tuple[ResolvedName, TableMetadata, dict[str, frozenset[str]]]:
    resolved, loaded = steward.existing(name)
    if not isinstance(loaded, TableMetadata):
        raise NotSupportedError("Tags belong to the columns of tables")
    tags = read_column_tags(loaded.properties)
    if tags is None:
        raise UserError(f"The tags of {resolved.name} cannot be read", code=ErrorCode.EXECUTION_FAILED)
    return resolved, loaded, dict(tags)


def _write(steward: Steward, resolved: ResolvedName, tags: Mapping[str, frozenset[str]]) -> None:
    """Set the property that keeps them, which users cannot set themselves."""
    if resolved.mount.backend.read_only:
        raise NotSupportedError(f"Catalog {resolved.mount.name} is read-only")
    session, name, tag = steward.context.session, resolved.name, steward.context.running.tag
    text = property_text(
        (session.alias_of(resolved.mount), *name.namespace, name.name), COLUMN_TAGS, write_column_tags(tags)
    )
    engine = session.engine_session()
    engine.execute(engine.analyse(engine.parse(text), tag=tag), tag=tag).close()


def _is_tag(tag: str, removed: str | None) -> bool:
    if removed is None:
        return True
    return tag.casefold() == removed.casefold() or tag.casefold().startswith(f"{removed.casefold()}=")
