"""CHECK ACCESS, SHOW EFFECTIVE POLICY, EXPLAIN ACCESS, SHOW TAGS: what the engines say of somebody (META-1 to META-3).

What is hidden and why is told to administrators only; others learn what they may do, and how much is kept from them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from sqe_core.catalog.column_tags import read_column_tags
from sqe_core.catalog.information_schema import to_table
from sqe_core.policy.authorizer import AccessRequest, Verdict
from sqe_core.policy.masks import kind_of
from sqe_core.query.answers.metadata import text_table
from sqe_core.query.judge.bind import BoundRelation
from sqe_core.query.judge.names import table_not_found
from sqe_core.query.statements.steward import Loaded, Steward
from sqe_core.spi.catalog import TableMetadata, ViewMetadata
from sqe_core.spi.errors import ErrorCode, NotSupportedError, UserError
from sqe_core.spi.identity import Identity
from sqe_core.spi.names import NamespaceName, ObjectName, quote_part
from sqe_core.spi.policy import Action, Privilege
from sqe_core.sql.statement import (
    AddColumnWithDefault,
    CommentOn,
    CreateSchema,
    CreateTableLike,
    CreateView,
    DropSchema,
    DropTable,
    DropView,
    EngineStatement,
    Name,
    RenameTable,
    RenameView,
    SetViewProperties,
    ShowColumns,
    ShowCreate,
    Statement,
)
from sqe_core.sql.statements.governance import CheckAccess, ExplainAccess, ShowEffectivePolicy, ShowTags

NOT_FOR_YOU = "not allowed, or not there"

CHECKED = pa.schema([("allowed", pa.bool_()), ("reason", pa.string())])
EXPLAINED = pa.schema(
    [
        ("object", pa.string()),
        ("action", pa.string()),
        ("allowed", pa.bool_()),
        ("row_filters", pa.int64()),
        ("masked_columns", pa.string()),
        ("hidden_columns", pa.string()),
        ("reason", pa.string()),
    ]
)
EFFECTIVE_POLICY = ("kind", "column", "detail", "source")

# What each privilege lets somebody do: all of it has to be allowed.
_OF_TABLES: dict[Privilege, tuple[Action, ...]] = {
    Privilege.SELECT: (Action.SELECT,),
    Privilege.MONITOR: (Action.DESCRIBE,),
    Privilege.INSERT: (Action.INSERT,),
    Privilege.MODIFY: (Action.INSERT, Action.UPDATE, Action.DELETE, Action.MERGE, Action.TRUNCATE, Action.MAINTAIN),
    Privilege.ALTER: (Action.ALTER,),
    Privilege.DROP: (Action.DROP,),
    Privilege.MANAGE: (Action.ALTER, Action.DROP, Action.MAINTAIN),
    Privilege.ALL: (Action.SELECT, Action.INSERT, Action.UPDATE, Action.DELETE, Action.ALTER, Action.DROP),
}
_OF_VIEWS: dict[Privilege, tuple[Action, ...]] = {
    Privilege.SELECT: (Action.SELECT,),
    Privilege.SELECT_VIEW: (Action.SELECT,),
    Privilege.MONITOR: (Action.DESCRIBE,),
    Privilege.ALTER: (Action.ALTER_VIEW,),
    Privilege.DROP: (Action.DROP_VIEW,),
    Privilege.DROP_VIEW: (Action.DROP_VIEW,),
    Privilege.MANAGE: (Action.ALTER_VIEW, Action.DROP_VIEW),
    Privilege.ALL: (Action.SELECT, Action.ALTER_VIEW, Action.DROP_VIEW),
}
_OF_CONTAINERS: dict[Privilege, tuple[Action, ...]] = {
    Privilege.USE: (Action.DESCRIBE,),
    Privilege.MONITOR: (Action.DESCRIBE,),
    Privilege.ALTER: (Action.ALTER_SCHEMA,),
    Privilege.DROP: (Action.DROP_SCHEMA,),
    Privilege.CREATE: (Action.CREATE,),
    Privilege.CREATE_VIEW: (Action.CREATE_VIEW,),
    Privilege.CREATE_NAMESPACE: (Action.CREATE_SCHEMA,),
}
# The name of something that would be made; what it is called does not matter.
_SOMETHING = "new"

Asked = tuple[ObjectName | NamespaceName, Action, Loaded | None]


@dataclass(frozen=True, slots=True)
class AccessAnswers:
    """Asks the engines about somebody.

    `bind` says what the names of a statement are, without running it.
    """

    steward: Steward
    bind: Callable[[EngineStatement], Sequence[BoundRelation]]

    def check(self, statement: CheckAccess) -> pa.Table:
        """CHECK ACCESS: false for what does not exist, as for what is denied (META-3)."""
        somebody = self.steward.somebody(statement.user, "check the access of others")
        try:
            allowed, reason = self._check(statement, somebody)
        except UserError as error:
            if isinstance(error, NotSupportedError):
                raise
            allowed, reason = False, ""
        if not self.steward.is_admin or not reason:
            reason = "" if allowed else NOT_FOR_YOU
        return to_table(CHECKED, [(allowed, reason)])

    def _check(self, statement: CheckAccess, somebody: Identity) -> tuple[bool, str]:
        governed = self.steward.find(statement.object)
        name, loaded = governed.name, governed.loaded
        known = _OF_CONTAINERS if loaded is None else _OF_VIEWS if isinstance(loaded, ViewMetadata) else _OF_TABLES
        actions = known.get(statement.privilege)
        if actions is None:
            raise NotSupportedError(
                f"{statement.privilege.value} cannot be checked here",
                hint="SHOW EFFECTIVE GRANTS FOR USER u lists what was granted",
            )
        asked = [_access_of(name, action, loaded) for action in actions]
        answers = [self._decide(somebody, one) for one in asked]
        readable = [self._is_readable(somebody, one) for one in asked]
        reasons = dict.fromkeys(reason for access in answers for reason in access.reasons)
        return not any(access.denied for access in answers) and all(readable), "; ".join(reasons)

    def effective_policy(self, statement: ShowEffectivePolicy) -> pa.Table:
        """SHOW EFFECTIVE POLICY: what is filtered, masked or, for administrators, hidden."""
        somebody = self.steward.somebody(statement.user, "see the policies of others")
        resolved, loaded = self.steward.existing(statement.name)
        access = self._decide(somebody, (resolved.name, Action.SELECT, loaded))
        admin = self.steward.is_admin
        if access.denied and not admin:
            self.steward.circumstances.refused(resolved.name)
            raise table_not_found(statement.name)
        source = "; ".join(dict.fromkeys(access.reasons)) if admin else None
        if access.denied:
            return text_table(EFFECTIVE_POLICY, [("denied", None, None, source)])
        rows: list[tuple[str | None, ...]] = []
        if access.filters:
            rows.append(("row_filter", None, str(len(access.filters)), source))
        rows += [("column_mask", column, kind_of(mask), source) for column, mask in sorted(access.masks.items())]
        if admin:
            rows += [("column_restriction", column, None, source) for column in sorted(access.hidden)]
        return text_table(EFFECTIVE_POLICY, rows)

    def explain(self, statement: ExplainAccess) -> pa.Table:
        """EXPLAIN ACCESS: one row for each thing that the statement does to an object."""
        somebody = self.steward.somebody(statement.user, "explain the access of others")
        asked = dict.fromkeys((name, action) for name, action, _ in self._asked(statement.inner))
        loaded = {name: each for name, _, each in self._asked(statement.inner)}
        return to_table(EXPLAINED, [self._explained(somebody, (name, action, loaded[name])) for name, action in asked])

    def _explained(self, somebody: Identity, asked: Asked) -> Sequence[Any]:
        name, action, _ = asked
        access = self._decide(somebody, asked)
        admin = self.steward.is_admin
        allowed = not access.denied and self._is_readable(somebody, asked)
        return (
            str(name),
            action.value,
            allowed,
            len(access.filters) if allowed else None,
            ", ".join(f"{quote_part(column)}: {kind_of(mask)}" for column, mask in sorted(access.masks.items()))
            if allowed
            else None,
            ", ".join(quote_part(column) for column in sorted(access.hidden)) if admin and allowed else None,
            "; ".join(dict.fromkeys(access.reasons)) if admin else None,
        )

    def tags(self, statement: ShowTags) -> pa.Table:
        """SHOW TAGS: those of visible columns."""
        resolved, loaded = self.steward.existing(statement.name)
        if not isinstance(loaded, TableMetadata):
            raise NotSupportedError("Tags belong to the columns of tables")
        tags = read_column_tags(loaded.properties)
        if tags is None:
            raise UserError(f"The tags of {resolved.name} cannot be read", code=ErrorCode.EXECUTION_FAILED)
        visible = [column.name for column in self.steward.columns(resolved.name, loaded)]
        return text_table(
            ("column", "tag"), [(column, tag) for column in visible for tag in sorted(tags.get(column, ()))]
        )

    def _decide(self, somebody: Identity, asked: Asked) -> Verdict:
        name, action, loaded = asked
        authorizer, circumstances = self.steward.authorizer, self.steward.circumstances
        if somebody is not self.steward.identity:
            circumstances = circumstances.of_another()
        if isinstance(name, NamespaceName):
            return Verdict(denied=authorizer.denies(somebody, name, action, circumstances))
        request = AccessRequest(name=name, action=action, loaded=loaded)
        return authorizer.decide(somebody, [request], circumstances)[name, action]

    def _is_readable(self, somebody: Identity, asked: Asked) -> bool:
        """Whether a view that is read can be read to the bottom, as far as whoever asks can tell (VIEW-4)."""
        name, action, loaded = asked
        if action is not Action.SELECT or not isinstance(loaded, ViewMetadata) or not isinstance(name, ObjectName):
            return True
        if somebody is not self.steward.identity:
            return True
        return bool(self.steward.answers.visible_columns(name, loaded))

    # What a statement does

    def _asked(self, statement: Statement) -> Iterator[Asked]:
        if isinstance(statement, EngineStatement):
            yield from self._of_names(statement)
            return
        match statement:
            case CreateView(temporary=False):
                yield self._new(statement.name, Action.CREATE_VIEW)
                yield from self._of_names(statement.query)
            case CreateView():
                yield from self._of_names(statement.query)
            case DropTable():
                yield self._object(statement.name, Action.DROP)
            case DropView():
                yield self._object(statement.name, Action.DROP_VIEW)
            case RenameTable():
                yield self._object(statement.name, Action.ALTER)
                yield self._new(statement.target, Action.CREATE)
            case RenameView():
                yield self._object(statement.name, Action.ALTER_VIEW)
                yield self._new(statement.target, Action.CREATE_VIEW)
            case AddColumnWithDefault():
                yield self._object(statement.name, Action.ALTER)
            case SetViewProperties() | CommentOn(object="view"):
                yield self._object(statement.name, Action.ALTER_VIEW)
            case CreateTableLike():
                yield self._new(statement.name, Action.CREATE)
                yield self._object(statement.source, Action.SELECT)
            case ShowColumns() | ShowCreate(object="table" | "view"):
                yield self._object(statement.name, Action.DESCRIBE)
            case CreateSchema():
                _, schema = self.steward.resolver.schema(statement.name, self.steward.context)
                yield schema, Action.CREATE_SCHEMA, None
            case DropSchema():
                yield self.steward.find_schema(statement.name)[1], Action.DROP_SCHEMA, None
            case CommentOn():
                yield self.steward.find_schema(statement.name)[1], Action.ALTER_SCHEMA, None
            case _:
                raise NotSupportedError(
                    "EXPLAIN ACCESS takes a statement that reads or changes tables, views or schemas"
                )

    def _of_names(self, statement: EngineStatement) -> Iterator[Asked]:
        for entry in self.bind(statement):
            if entry.resolved is None or entry.system:
                continue
            resolved, parts = entry.resolved, entry.relation.parts
            if entry.loaded is not None and not self.steward.visible.shows_object(resolved.name):
                position = statement.positions.locate(entry.relation.start, parts[-1])
                raise table_not_found(parts, position=position, hint=self.steward.answers.suggest(resolved))
            for action in entry.needed:
                yield resolved.name, action, entry.loaded

    def _object(self, name: Name, action: Action) -> Asked:
        resolved, loaded = self.steward.existing(name)
        return resolved.name, action, loaded

    def _new(self, name: Name, action: Action) -> Asked:
        resolved = self.steward.resolver.object(name, self.steward.context)
        return resolved.name, action, None


def _access_of(name: ObjectName | NamespaceName, action: Action, loaded: Loaded | None) -> Asked:
    """What a privilege on a container lets somebody do is done to something in it."""
    if isinstance(name, NamespaceName):
        if action is Action.CREATE_SCHEMA:
            return NamespaceName(catalog=name.catalog, namespace=(*name.namespace, _SOMETHING)), action, None
        if action in (Action.CREATE, Action.CREATE_VIEW):
            namespace = name.namespace or (_SOMETHING,)
            return ObjectName(catalog=name.catalog, namespace=namespace, name=_SOMETHING), action, None
    return name, action, loaded
