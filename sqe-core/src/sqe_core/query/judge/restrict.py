"""What a policy keeps from a user, compiled for one relation of one statement (POL-5 to POL-7, POL-11, POL-12).

Nothing is pasted: every expression is parsed alone, judged by lists, bound to the columns of the relation as they are
now, and analysed. How the engine then writes it is what the verifier has to find in the plan.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

from sqe_core.engine.port import (
    EngineExecutionError,
    EnginePlan,
    EngineSession,
    InlinedPlan,
    JudgedExpression,
    JudgedRelation,
    PolicyExpression,
    PolicyFacts,
    Restriction,
    SecuredTable,
)
from sqe_core.policy.authorizer import Verdict
from sqe_core.policy.masks import MaskWriter
from sqe_core.query.errors.suggestions import did_you_mean
from sqe_core.query.judge import allowed
from sqe_core.query.judge.inspect import PlanLimits, inspect
from sqe_core.spi.errors import ErrorCode, ExternalError, SqeError, UserError
from sqe_core.spi.identity import Identity
from sqe_core.spi.names import quote_part
from sqe_core.spi.policy import Mask
from sqe_core.spi.sql import SqlExpression
from sqe_core.sql.statement import SqlReader, StatementKind, mapping_marker, session_marker

_log = logging.getLogger(__name__)

_BOOLEAN = "boolean"
_COMPARISON = frozenset({"AttributeReference", "Cast", "EqualTo", "Literal"})
_ORDERS = frozenset({"GreaterThan", "GreaterThanOrEqual", "LessThan", "LessThanOrEqual"})
_RANGES = frozenset({"And", "Between", "CommonExpressionDef", "CommonExpressionRef", "With"})
_NO_QUERY = "A policy's expression may hold no query"
_NOT_FIXED = "A policy's expression may not depend on chance, on other rows or on the place of a row"


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledRestriction:
    """A restriction, and how the engine writes it: what the verifier has to find."""

    restriction: Restriction
    filter_sql: str | None
    masks: Mapping[str, str] = field(default_factory=dict)

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.restriction.output)


@dataclass(frozen=True, slots=True, kw_only=True)
class RestrictionCompiler:
    """Compiles the restrictions of one statement's user."""

    engine: EngineSession
    reader: SqlReader
    masks: MaskWriter
    facts: tuple[PolicyFacts, ...]
    """Who asks; twice after SET ROLE, as it is and as it was before: a condition holds for both."""
    values: Mapping[str, Any]
    extra_functions: frozenset[str]
    plan_limits: PlanLimits
    tag: str
    look_up: Callable[[str, Mapping[str, Any]], Sequence[Any]]
    """Returns the values of a query of a row filter that may look into tables, for these values of the session."""

    def compile(
        self,
        name: object,
        relation: SecuredTable | InlinedPlan,
        access: Verdict,
        *,
        marker: str,
        visible: Callable[[Sequence[str]], Sequence[str]],
    ) -> CompiledRestriction:
        """Compile what a user may see of a relation, of whose columns `visible` chooses.

        An ExternalError says that the policy cannot be applied; what is wrong goes to the log of the server only.
        """
        try:
            return self._compiled(relation, access, marker=marker, visible=visible)
        except EngineExecutionError as error:
            _log.error("A policy on %s cannot be applied: %s", name, error.failure.condition)
            raise unusable_policy() from None
        except UserError as error:
            _log.error("A policy on %s cannot be applied: %s", name, error.message)
            raise unusable_policy() from None

    def check(self, name: object, relation: SecuredTable | InlinedPlan, access: Verdict, *, marker: str) -> None:
        """Raise a UserError that says what is wrong with filters and masks, for those who write policies (POL-15).

        The columns of `access` are those that may be named to them.
        """
        try:
            self._compiled(relation, access, marker=marker, visible=lambda columns: columns)
        except EngineExecutionError as error:
            if error.failure.condition == "SQE_POLICY_COLUMN":
                written = error.failure.parameters["column"]
                raise UserError(
                    f"Column {quote_part(written)} of {name} does not exist",
                    code=ErrorCode.COLUMN_NOT_FOUND,
                    hint=did_you_mean(written, [column.name for column in access.columns]),
                ) from None
            raise UserError(
                "The expression is not valid for this table", hint="try it in a SELECT on the table"
            ) from None

    def _compiled(
        self,
        relation: SecuredTable | InlinedPlan,
        access: Verdict,
        *,
        marker: str,
        visible: Callable[[Sequence[str]], Sequence[str]],
    ) -> CompiledRestriction:
        masked: list[tuple[str, Mask]] = sorted(access.masks.items())
        # Part by part: one that could raise needs a guard, which keeps no other part from the files.
        plans = [
            part
            for facts in self.facts
            for expression in access.filters
            for part in self.engine.conjuncts(self._parsed(expression, facts))
        ]
        # What a mask makes of a column depends on the column's type, so the relation is looked at first.
        judged = self.engine.judge(relation, marker, [(plan, None) for plan in plans], tag=self.tag)
        types = dict(judged.columns)
        if not (access.masks.keys() | access.hidden) <= types.keys():
            raise UserError("the policy names a column that is not there")  # POL-6: a policy never protects nothing
        filters = [(plan, each, self._guarded(each)) for plan, each in zip(plans, judged.expressions, strict=True)]
        if any(each.type != _BOOLEAN for _, each, _ in filters):
            raise UserError("A row filter has to be a condition: true or false")
        masks = self._masks(relation, marker, masked, types)
        columns = tuple(types)
        shown = visible(columns)
        conditions = [each.guarded_sql if guarded else each.sql for _, each, guarded in filters]
        return CompiledRestriction(
            restriction=Restriction(
                marker=marker,
                columns=columns,
                output=tuple((column, masks[column][0] if column in masks else None) for column in shown),
                filters=tuple(PolicyExpression(plan=plan, guarded=guarded) for plan, _, guarded in filters),
            ),
            filter_sql=reduce(lambda left, right: f"({left} AND {right})", map(_written, conditions))
            if filters
            else None,
            masks={column: masks[column][1] for column in shown if column in masks},
        )

    def _masks(
        self,
        relation: SecuredTable | InlinedPlan,
        marker: str,
        masked: Sequence[tuple[str, Mask]],
        types: Mapping[str, str],
    ) -> Mapping[str, tuple[PolicyExpression, str]]:
        if not masked:
            return {}
        plans = [
            (self._parsed(self.masks.write(mask, column, types[column]), self.facts[-1]), column)
            for column, mask in masked
        ]
        judged: JudgedRelation = self.engine.judge(relation, marker, plans, tag=self.tag)
        found: dict[str, tuple[PolicyExpression, str]] = {}
        for (plan, column), each in zip(plans, judged.expressions, strict=True):
            guarded = self._guarded(each)
            if not each.fits:
                raise UserError("A mask has to give a value of its column's type")
            written = _written(each.guarded_sql if guarded else each.sql)
            found[column] = (PolicyExpression(plan=plan, guarded=guarded, cast=each.cast), written)
        return found

    def _parsed(self, expression: SqlExpression, facts: PolicyFacts) -> EnginePlan:
        text, dialect = expression.text, expression.dialect
        # Like the facts: a condition on `current_role` holds with the roles in use and with all of them.
        values = {**self.values, session_marker("current_role"): _roles_of(facts)}
        # What a user may see is no matter of what they call the time.
        values[session_marker("current_timezone")] = "UTC"
        if expression.reads_tables:
            _, queries = self.reader.translate_filter(text, dialect=dialect, sizes=None)
            session = dict(values)
            found = [self.look_up(query, session) for query in queries]
            sql, again = self.reader.translate_filter(text, dialect=dialect, sizes=[len(each) for each in found])
            if again != queries:
                raise UserError("The values of a row filter's queries stand for other queries")
            for number, each in enumerate(found):
                values.update((mapping_marker(number, place), value) for place, value in enumerate(each))
        else:
            sql = self.reader.translate_expression(text, dialect=dialect)
        plan = self.engine.expression(sql, values, facts)
        description = plan.description
        if description.relations or any(node.slot == "subquery" for node in description.nodes):
            raise UserError(_NO_QUERY)
        inspect(description, kind=StatementKind.QUERY, limits=self.plan_limits, extra_functions=self.extra_functions)
        return plan

    @staticmethod
    def _guarded(judged: JudgedExpression) -> bool:
        """Whether an analysed expression needs a guard; refuses one that may not be part of a policy."""
        lists = allowed.policies()
        if judged.queries:
            raise UserError(_NO_QUERY)
        for name in sorted(judged.classes - (allowed.expressions().analysed - lists.denied)):
            _log.warning("Refused an expression of a policy that holds %s", name)
            raise UserError(_NOT_FIXED)
        if not judged.deterministic:
            raise UserError(_NOT_FIXED)
        return not judged.risky <= lists.never_raises or _keeps_null(judged.classes)


def _keeps_null(classes: Set[str]) -> bool:
    """Whether the catalog's format may find a condition true where it is NULL, and the engine not look again.

    Conditions on columns of partitions are left to the format, to which NULL is less than all, and equal to nothing:
    `level < 3 OR level > 7` keeps it. The engine excludes NULL itself from what is a comparison and nothing else.
    """
    names = {name.rpartition(".")[2] for name in classes}
    if not names & (_ORDERS | {"Not"}):
        return False
    return not (names <= _COMPARISON | _ORDERS | {"Not"} or names <= _COMPARISON | _ORDERS | _RANGES)


def unusable_policy() -> SqeError:
    """Return the one error for a policy that cannot be applied: nothing is read (POL-2)."""
    return ExternalError("A policy on what the statement reads cannot be applied", code=ErrorCode.EXECUTION_FAILED)


def facts_of(identity: Identity) -> tuple[PolicyFacts, ...]:
    """Return what policies may ask about a user. The last of them knows every role that the user has."""
    roles = [identity.roles]
    if identity.all_roles is not None and identity.all_roles != identity.roles:
        # SET ROLE narrows: what asks for the lack of a role must not become true by it.
        roles.append(identity.all_roles)
    groups = sorted(identity.groups)
    return tuple(
        PolicyFacts(
            lists={"current_available_roles": sorted(held), "current_user_groups": groups},
            members={"is_role_in_session": sorted(held), "is_group_member": groups},
            attributes={"current_user_attr": {name: _attribute(value) for name, value in identity.claims.items()}},
        )
        for held in roles
    )


def _roles_of(facts: PolicyFacts) -> str | None:
    return ",".join(facts.lists["current_available_roles"]) or None


def _attribute(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value)
    return None if value is None else []  # a list is no text: the bridge refuses the policy


def _written(sql: str | None) -> str:
    if sql is None:
        raise UserError("The expression is too long")
    return sql
