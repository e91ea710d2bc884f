"""The columns of a table that somebody's grant or policy names: only an administrator drops or renames them (STMT-7).

A policy that names a missing column closes the table (POL-6), and one whose column came back with another meaning
protects the wrong thing. Whether an expression names a column is judged by the words in it, comments and literals
included: rather too many columns than too few.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass

from sqe_core.catalog.column_tags import read_column_tags
from sqe_core.policy.authorizer import Authorizer
from sqe_core.spi.catalog import TableMetadata
from sqe_core.spi.identity import Identity
from sqe_core.spi.names import ObjectName
from sqe_core.spi.policy import Grant, Mask, SqlMask, StoredPolicy, SupportsGrants, SupportsPolicies

_WORD = re.compile(r"\w+")
_QUOTES = re.compile(r"[\"`\\]")


@dataclass(frozen=True, slots=True)
class ColumnsInUse:
    """The columns that one user may not drop or rename, since policies name them."""

    authorizer: Authorizer
    identity: Identity
    _: KW_ONLY
    by_admin: bool

    def of(self, name: ObjectName, table: TableMetadata) -> frozenset[str]:
        """Return those of a table; to administrators there are none."""
        if self.by_admin:
            return frozenset()
        stores, author = self.authorizer, self.identity
        use = ColumnUse(
            grants=[grant for store in stores.stores(SupportsGrants) for grant in store.list_grants(author=author)],
            policies=[
                policy for store in stores.stores(SupportsPolicies) for policy in store.list_policies(author=author)
            ],
        )
        return use.of(name, table)


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnUse:
    """What stores hold, of everybody."""

    grants: Sequence[Grant] = ()
    policies: Sequence[StoredPolicy] = ()

    def of(self, name: ObjectName, table: TableMetadata) -> frozenset[str]:
        """Return the columns of a table that are in use; all of them where its tags cannot be read."""
        tags = read_column_tags(table.properties)
        columns = [column.name for column in table.columns]
        if tags is None:
            return frozenset(columns)
        named = {column.casefold() for column, listed in tags.items() if listed}
        known = {tag.casefold() for listed in tags.values() for tag in listed}
        texts = []
        for columns_of, texts_of in (*self._granted(name, table), *self._written(name, table, known)):
            named.update(column.casefold() for column in columns_of)
            texts.extend(texts_of)
        words = {word.casefold() for text in texts for word in _WORD.findall(text)}
        whole = [_QUOTES.sub("", text).casefold() for text in texts]
        return frozenset(column for column in columns if column.casefold() in named or _occurs(column, words, whole))

    def _granted(self, name: ObjectName, table: TableMetadata) -> Iterator[tuple[list[str], list[str]]]:
        for grant in self.grants:
            target = grant.target
            if target.name is None:
                continue
            on = ObjectName(catalog=target.catalog, namespace=target.namespace, name=target.name)
            if _is_about(on, grant.object_uuid, name, table):
                masked = [mask.column for mask in grant.column_masks]
                texts = [grant.row_filter.text] if grant.row_filter is not None else []
                yield [*masked, *(grant.columns or ())], [*texts, *_texts(*(mask.mask for mask in grant.column_masks))]

    def _written(self, name: ObjectName, table: TableMetadata, tags: set[str]) -> Iterator[tuple[list[str], list[str]]]:
        for policy in self.policies:
            target = policy.target
            if isinstance(target, str):
                about = target.casefold() in tags
            else:
                about = _is_about(target, policy.object_uuid, name, table)
            if about:
                texts = [policy.row_filter.text] if policy.row_filter is not None else []
                yield [policy.column] if policy.column else [], [*texts, *_texts(policy.mask)]


def _is_about(target: ObjectName, uuid: str | None, name: ObjectName, table: TableMetadata) -> bool:
    """Whether a record reaches a table: by its name, whatever the case, or by its id."""
    same = [part.casefold() for part in target.parts] == [part.casefold() for part in name.parts]
    return same or (uuid is not None and uuid == table.uuid)


def _texts(*masks: Mask | None) -> list[str]:
    return [mask.expression.text for mask in masks if isinstance(mask, SqlMask)]


def _occurs(column: str, words: set[str], texts: Sequence[str]) -> bool:
    if _WORD.fullmatch(column):
        return column.casefold() in words
    bare = _QUOTES.sub("", column).casefold()
    return any(bare in text for text in texts)
