"""Step 6 for what a statement writes, changes or makes: only what this user sees, and what the policy allows in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqe_core.engine.port import EngineExecutionError, EngineFailure, RenamedTarget, SecuredTable
from sqe_core.policy.authorizer import Verdict
from sqe_core.query.judge.bind import BoundRelation, Usage
from sqe_core.query.judge.names import restricted_error
from sqe_core.query.judge.promise import Promise
from sqe_core.query.judge.relation_text import VISIBLE_ROWS, all_columns_text, new_marker
from sqe_core.query.judge.restrict import CompiledRestriction
from sqe_core.query.judge.verify import ExpectedRelation
from sqe_core.spi.catalog import TableMetadata, ViewMetadata
from sqe_core.spi.errors import AccessDeniedError, NotSupportedError, UserError
from sqe_core.spi.names import quote_part
from sqe_core.spi.policy import Action
from sqe_core.spi.sql import SqlExpression

if TYPE_CHECKING:
    from sqe_core.query.judge.judge import Decisions, Judge

_CHANGES_ROWS = frozenset({Action.UPDATE, Action.DELETE, Action.MERGE})


@dataclass(frozen=True, slots=True)
class Target:
    """One target of a statement."""

    judge: Judge
    entry: BoundRelation
    promise: Promise
    limits: Sequence[Verdict]
    """What is decided about it, as far as that keeps something from the user."""

    @classmethod
    def of(cls, judge: Judge, entry: BoundRelation, access: Decisions, promise: Promise) -> Target:
        limits = [access[entry.name, action] for action in entry.asked if access[entry.name, action].restricted]
        return cls(judge, entry, promise, limits)

    def renamed(self) -> RenamedTarget:
        """Return it under its name in the engine, and promise what may become of it."""
        entry, name, promise = self.entry, self.entry.name, self.promise
        parts = self.judge.alias_parts(entry)
        if entry.replaces and isinstance(entry.loaded, ViewMetadata):
            raise UserError(f"{name} is a view, not a table", hint=f"drop it first: DROP VIEW {name}")
        # Spark takes no condition with a subquery below a barrier, but for targets that are changed as ours.
        conditioned = entry.action in (Action.UPDATE, Action.DELETE) and promise.restricted
        if entry.kept or not (self.limits or conditioned):
            if entry.action is Action.ALTER and isinstance(entry.loaded, TableMetadata):
                self._check_columns(entry.loaded)
            promise.expect(ExpectedRelation(identity=parts, write_target=True))
        else:
            check_limits(entry, self.limits, promise.command, ingests=bool(self.judge.spooled))
            if entry.action is Action.INSERT:
                hidden, masked = _kept_columns(self.limits)
                self._expect(parts, parts, untouched=hidden | masked)
            else:
                parts = self._visible_rows(parts)
        absent = entry.usage is Usage.CREATE and entry.loaded is None
        return RenamedTarget(index=entry.relation.index, parts=parts, visible_name=name.parts, absent=absent)

    def _check_columns(self, table: TableMetadata) -> None:
        """STMT-7: a column that a policy names is dropped and renamed by administrators only."""
        command = self.promise.command
        fields = [*(command.get("columnsToDrop") or ()), *filter(None, [command.get("column")])]
        gone = {str(field["name"][0]).casefold() for field in fields}
        if not gone:
            return
        for column in sorted(self.judge.in_use.of(self.entry.name, table)):
            if column.casefold() in gone:
                raise AccessDeniedError(
                    f"Column {quote_part(column)} of {self.entry.name} is named by a policy or has tags;"
                    " only an administrator may drop or rename it"
                )

    def _visible_rows(self, parts: tuple[str, ...]) -> tuple[str, ...]:
        """DML-3: what changes rows sees the visible ones and writes allowed ones. Returns what the target is called."""
        filters = tuple(dict.fromkeys(one for each in self.limits for one in each.filters))
        seen = self._all_columns(filters, parts)
        self.promise.rows = seen.restriction
        target = (*parts, VISIBLE_ROWS)
        self.promise.expect(ExpectedRelation(identity=target, changed=True), seen)
        self._expect(parts, target)
        return target

    def _expect(
        self, parts: tuple[str, ...], target: tuple[str, ...], *, untouched: frozenset[str] = frozenset()
    ) -> None:
        """Expect that every row that is written satisfies the checks of the policy."""
        checks = tuple(dict.fromkeys(check for each in self.limits for check in each.checks))
        compiled = None
        if checks and self.entry.action is not Action.DELETE:
            compiled = self._all_columns(checks, parts)
            self.promise.check = compiled.restriction
        self.promise.expect(ExpectedRelation(identity=target, write_target=True, untouched=untouched), compiled)

    def _all_columns(self, filters: tuple[SqlExpression, ...], parts: tuple[str, ...]) -> CompiledRestriction:
        """Compile conditions on a target, of which every column can be named."""
        name, sql = self.entry.name, all_columns_text(parts, None)
        relation = SecuredTable(index=self.entry.relation.index, sql=sql, visible_name=name.parts)
        conditions = Verdict(denied=False, filters=filters)
        return self.judge.compiler().compile(
            name, relation, conditions, marker=new_marker(), visible=lambda columns: columns
        )


def check_limits(
    entry: BoundRelation, limits: Sequence[Verdict], command: Mapping[str, Any], *, ingests: bool = False
) -> None:
    """Raise unless the `limits`, what is kept from somebody, allow what a statement does to its target.

    `ingests` says whether the rows are a client's, in text of ours.
    """
    hidden, masked = _kept_columns(limits)
    if entry.action is Action.INSERT and isinstance(entry.loaded, TableMetadata):
        _check_insert(entry, entry.loaded, command, hidden, masked, ingests=ingests)
    elif entry.action not in _CHANGES_ROWS:
        raise restricted_error(entry.name)  # DML-4: it needs the whole table
    elif hidden or masked:
        raise restricted_error(entry.name)  # DML-2
    elif entry.action is Action.DELETE and _is_true(command.get("condition")):
        raise restricted_error(entry.name)  # DML-4


def _kept_columns(limits: Sequence[Verdict]) -> tuple[frozenset[str], frozenset[str]]:
    """Return the columns that are hidden, and those that are masked."""
    hidden = frozenset[str]().union(*(each.hidden for each in limits))
    return hidden, frozenset(column for each in limits for column in each.masks)


def _check_insert(
    entry: BoundRelation,
    table: TableMetadata,
    insert: Mapping[str, Any],
    hidden: frozenset[str],
    masked: frozenset[str],
    *,
    ingests: bool,
) -> None:
    """DML-2: rows of visible columns, all of which the policy allows to be written."""
    name = entry.name
    if insert.get("overwrite") is not False or insert.get("partitionSpec"):
        raise restricted_error(name)  # DML-4
    written = [str(column) for column in insert.get("userSpecifiedCols") or ()]
    if insert.get("byName") is True and ingests:
        # The verifier looks at what is written.
        if masked:
            raise NotSupportedError(f"Rows cannot be ingested into {name}, which has masked columns")
    elif hidden or masked:
        if not written:
            raise NotSupportedError(
                f"INSERT into {name} needs the names of its columns", hint="write INSERT INTO table (a, b) …"
            )
        folded = {column.lower() for column in written}
        if any(column.lower() in folded for column in masked):
            raise NotSupportedError(f"INSERT may not write a masked column of {name}")
        known = {column.name.lower() for column in table.columns if column.name not in hidden}
        unseen = [column for column in written if column.lower() not in known]
        if unseen:
            # What the engine says of a column that is not there, and before it says anything else (ERR-7).
            raise EngineExecutionError(
                EngineFailure(
                    condition="UNRESOLVED_COLUMN.WITH_SUGGESTION",
                    sql_state="42703",
                    parameters={"objectName": f"`{unseen[0]}`", "proposal": ""},
                    fragment=entry.relation.parts[-1],
                    start=entry.relation.start,
                )
            )
    if any(not column.nullable and column.default is None for column in table.columns if column.name in hidden):
        raise restricted_error(name)


def _is_true(condition: object) -> bool:
    """Whether a condition is missing, or written as the literal."""
    return isinstance(condition, Mapping) and condition.get("value") is True
