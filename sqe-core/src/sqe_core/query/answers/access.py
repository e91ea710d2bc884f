"""CHECK ACCESS, SHOW EFFECTIVE POLICY, EXPLAIN ACCESS: what the engines say of somebody (META-1 to META-3).

What is hidden and why is told to administrators only; others learn what they may do, and how much is kept from them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from sqe_core.catalog.information_schema import to_table
from sqe_core.engine.port import EngineExecutionError
from sqe_core.policy.authorizer import AccessRequest, Circumstances, Verdict
from sqe_core.policy.masks import kind_of
from sqe_core.query.answers.metadata import text_table
from sqe_core.query.judge.bind import BoundRelation, Usage
from sqe_core.query.judge.names import table_not_found
from sqe_core.query.judge.targets import check_limits
from sqe_core.query.run.judging import Judging
from sqe_core.query.statements.handler import ExistingObject, NewObject, PlanNeed, SchemaNeed
from sqe_core.query.statements.objects import CatalogObjects
from sqe_core.query.statements.schemas import held_by, may_drop_all
from sqe_core.query.statements.steward import Loaded, Steward
from sqe_core.spi.catalog import TableMetadata, ViewMetadata
from sqe_core.spi.errors import NotSupportedError, SqeError, UserError
from sqe_core.spi.identity import Identity
from sqe_core.spi.names import NamespaceName, ObjectName, quote_part
from sqe_core.spi.policy import Action, Privilege
from sqe_core.sql.statement import EngineStatement, Statement
from sqe_core.sql.statements.governance import CheckAccess, ExplainAccess, GrantObject, ShowEffectivePolicy

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Something that somebody does to an object; with `whole` only if nothing of it is kept from them (DML-4).

    `reads` says whether a view has to be readable to the bottom. What the plan of a statement does to its `target`
    depends on the fields of its `command`.
    """

    name: ObjectName | NamespaceName
    action: Action
    loaded: Loaded | None = None
    whole: bool = False
    reads: bool = True
    target: BoundRelation | None = None
    command: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AccessAnswers:
    """Asks the engines about somebody."""

    steward: Steward

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
        access = self._decide(somebody, Asked(name=resolved.name, action=Action.SELECT, loaded=loaded))
        admin = self.steward.is_admin
        if access.denied and not admin:
            self.steward.context.circumstances.refused(resolved.name)
            raise table_not_found(statement.name, hint=self.steward.context.near.hint(resolved))
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
        asked = {(one.name, one.action): one for one in self._asked(statement.inner)}
        return to_table(EXPLAINED, [self._explained(somebody, one) for one in asked.values()])

    def _explained(self, somebody: Identity, asked: Asked) -> Sequence[Any]:
        access = self._decide(somebody, asked)
        admin = self.steward.is_admin
        allowed = (
            not access.denied
            and self._is_readable(somebody, asked)
            and (not asked.whole or self._is_whole(somebody, asked))
            and self._is_possible(somebody, asked)
        )
        return (
            str(asked.name),
            asked.action.value,
            allowed,
            len(access.filters) if allowed else None,
            ", ".join(f"{quote_part(column)}: {kind_of(mask)}" for column, mask in sorted(access.masks.items()))
            if allowed
            else None,
            ", ".join(quote_part(column) for column in sorted(access.hidden)) if admin and allowed else None,
            "; ".join(dict.fromkeys(access.reasons)) if admin else None,
        )

    def _decide(self, somebody: Identity, asked: Asked) -> Verdict:
        authorizer, circumstances = self.steward.authorizer, self._circumstances(somebody)
        if isinstance(asked.name, NamespaceName):
            return Verdict(denied=authorizer.denies(somebody, asked.name, asked.action, circumstances))
        request = AccessRequest(name=asked.name, action=asked.action, loaded=asked.loaded)
        return authorizer.decide(somebody, [request], circumstances)[asked.name, asked.action]

    def _circumstances(self, somebody: Identity) -> Circumstances:
        circumstances = self.steward.context.circumstances
        return circumstances if somebody is self.steward.identity else circumstances.of_another()

    def _is_readable(self, somebody: Identity, asked: Asked) -> bool:
        """Whether a view that is read can be read to the bottom (VIEW-4)."""
        name, loaded = asked.name, asked.loaded
        if (
            not asked.reads
            or asked.action is not Action.SELECT
            or not isinstance(loaded, ViewMetadata)
            or isinstance(name, NamespaceName)
        ):
            return True
        judging = Judging(self.steward.context)
        if somebody is not self.steward.identity:
            return judging.is_readable(name, loaded, somebody)
        return bool(judging.columns_of(name, loaded))

    def _is_whole(self, somebody: Identity, asked: Asked) -> bool:
        """Whether somebody sees all of what the statement changes or copies as a whole."""
        if isinstance(asked.name, NamespaceName):
            seen = replace(self.steward.seen, circumstances=self._circumstances(somebody))
            mount = seen.resolver.catalog(asked.name.catalog)
            held = held_by(seen, mount, asked.name.namespace)
            return all(may_drop_all(seen, somebody, mount, each) for each in held)
        own, read = (self._decide(somebody, replace(asked, action=each)) for each in (asked.action, Action.SELECT))
        unread = read.denied and isinstance(asked.loaded, TableMetadata)  # DML-8
        return not (own.restricted or read.restricted or unread)

    def _is_possible(self, somebody: Identity, asked: Asked) -> bool:
        """Whether what is kept from somebody allows what the statement does to its target."""
        target = asked.target
        if target is None:
            return True
        verdicts = [self._decide(somebody, replace(asked, action=action)) for action in target.asked]
        limits = [verdict for verdict in verdicts if verdict.restricted]
        try:
            if limits and not target.kept:
                check_limits(target, limits, asked.command)
        except (SqeError, EngineExecutionError):
            return False
        return True

    # What a statement does

    def _asked(self, statement: Statement) -> Iterator[Asked]:
        needs = self.steward.context.handlers.of(statement).needs(statement)
        if needs is None:
            raise NotSupportedError("EXPLAIN ACCESS takes a statement that reads or changes tables, views or schemas")
        for need in needs:
            match need:
                case PlanNeed():
                    yield from self._of_names(need.statement)
                case ExistingObject():
                    resolved, loaded = self.steward.existing(need.name)
                    for action in need.actions:
                        yield Asked(name=resolved.name, action=action, loaded=loaded, whole=need.whole, reads=False)
                case NewObject():
                    resolved = CatalogObjects(self.steward.seen).place_of(need)
                    yield Asked(name=resolved.name, action=need.action)
                    there = need.replaces and self.steward.seen.visible.find(resolved.mount, resolved.name)
                    if need.replaces and isinstance(there, ViewMetadata):
                        yield Asked(name=resolved.name, action=need.replaces, loaded=there, whole=True)
                case SchemaNeed(new=True):
                    _, schema = self.steward.seen.resolver.schema(need.name, self.steward.context.names)
                    yield Asked(name=schema, action=need.action)
                case SchemaNeed():
                    found = self.steward.find(GrantObject(scope="schema", name=need.name))
                    yield Asked(name=found.name, action=need.action, whole=need.cascade)

    def _of_names(self, statement: EngineStatement) -> Iterator[Asked]:
        context, seen = self.steward.context, self.steward.seen
        bound, command = Judging(context).bind(statement, seen)
        for entry in bound:
            # What means nothing to whoever asks is told first, as in execution (ERR-7).
            resolved = entry.resolved
            there = resolved is None or entry.system or seen.visible.find(resolved.mount, resolved.name) is not None
            if entry.missing or not (there or entry.usage is Usage.CREATE):
                hint = context.near.hint(resolved) if resolved is not None else None
                raise entry.absent or table_not_found(entry.relation.parts, position=entry.position, hint=hint)
        for entry in bound:
            if entry.resolved is not None and not entry.system:
                target = entry if entry.usage is not Usage.READ else None
                for action in entry.needed:
                    yield Asked(name=entry.name, action=action, loaded=entry.loaded, target=target, command=command)


def _access_of(name: ObjectName | NamespaceName, action: Action, loaded: Loaded | None) -> Asked:
    """What a privilege on a container lets somebody do is done to something in it."""
    if isinstance(name, NamespaceName):
        if action is Action.CREATE_SCHEMA:
            schema = NamespaceName(catalog=name.catalog, namespace=(*name.namespace, _SOMETHING))
            return Asked(name=schema, action=action)
        if action in (Action.CREATE, Action.CREATE_VIEW):
            namespace = name.namespace or (_SOMETHING,)
            return Asked(name=ObjectName(catalog=name.catalog, namespace=namespace, name=_SOMETHING), action=action)
    return Asked(name=name, action=action, loaded=loaded)
