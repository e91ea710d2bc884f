"""Step 3: a parsed plan may consist of listed things only, and of so many. Nothing was executed when this refuses.

What a plan may hold is data: see `allowed/`. This module compares, and says what is refused and what to use instead.
"""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqe_core.engine.port import FunctionCall, PlanDescription, PlanNode, Relation
from sqe_core.query.errors.suggestions import did_you_mean
from sqe_core.query.errors.wording import shown
from sqe_core.query.judge import allowed
from sqe_core.query.judge.amplifiers import AmplifierLimits, check_amplifiers
from sqe_core.query.judge.table_clauses import (
    UNSUPPORTED_FORM,
    check_added_columns,
    check_altered_columns,
    check_new_columns,
    check_table_properties,
    check_table_spec,
    check_unset_properties,
    records,
    text_map,
)
from sqe_core.spi.errors import ErrorCode, NotSupportedError, Position, ResourcesError, UserError
from sqe_core.spi.names import RESERVED_PREFIXES
from sqe_core.sql.statement import PositionMap, StatementKind

_log = logging.getLogger(__name__)

_JOINS = frozenset({"Join", "LateralJoin", "AsOfJoin"})
# What the engine takes for the notation of CREATE TABLE and never for JSON.
_TYPE_TEXT = re.compile(r"\s*[A-Za-z_`]")
# They answer in that notation.
_INFERS_SCHEMA = frozenset({"schema_of_json", "schema_of_csv", "schema_of_xml"})
# Arrow refuses to read deeper ones.
_MAX_TYPE_NESTING = 60
_WITH = "org.apache.spark.sql.catalyst.plans.logical.UnresolvedWith"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanLimits:
    """Bounds on the size of a plan, views included (LIM-5, LIM-6)."""

    max_relations: int = 500
    max_joins: int = 250
    max_subqueries: int = 500
    max_nodes: int = 20_000
    max_expressions: int = 500_000
    max_depth: int = 1_000
    max_columns: int = 5_000
    max_groupings: int = 4_096
    amplifiers: AmplifierLimits = field(default_factory=AmplifierLimits)


def inspect(
    description: PlanDescription,
    *,
    kind: StatementKind,
    limits: PlanLimits,
    extra_functions: frozenset[str] = frozenset(),
    positions: PositionMap | None = None,
) -> None:
    """Refuse a parsed plan that holds anything unlisted, or is not just what it was recognised as (ENF-1).

    `extra_functions` are SQE's own function templates, in lower case; places are found in the user's text only.
    """
    inspector = _Inspector(description, kind, limits, extra_functions, positions)
    inspector.check_size()
    inspector.check_nodes()
    inspector.check_parameters()
    inspector.check_expressions()
    inspector.check_relations()
    inspector.check_functions()
    inspector.check_commands()


@dataclass(frozen=True, slots=True)
class _Inspector:
    description: PlanDescription
    kind: StatementKind
    limits: PlanLimits
    extra_functions: frozenset[str]
    positions: PositionMap | None

    def check_size(self) -> None:
        """LIM-5."""
        nodes = self.description.nodes
        types = Counter(node.simple_type for node in nodes)
        columns = max((len(node.fields.get("columns") or ()) for node in nodes), default=0)
        groupings = sum(node.fields.get("groupings") or 0 for node in nodes)
        for what, count, most in (
            ("tables", len(self.description.relations), self.limits.max_relations),
            ("joins", sum(types[name] for name in _JOINS), self.limits.max_joins),
            ("subqueries", sum(node.slot == "subquery" for node in nodes), self.limits.max_subqueries),
            ("operations", len(nodes), self.limits.max_nodes),
            ("expressions", self.description.expression_count, self.limits.max_expressions),
            ("levels", self.description.depth, self.limits.max_depth),
            ("columns", columns, self.limits.max_columns),
            ("groupings", groupings, self.limits.max_groupings),
        ):
            if count > most:
                raise ResourcesError(
                    f"The statement has {count} {what}; {most} are allowed", hint="split it into several statements"
                )

    def check_nodes(self) -> None:
        """ENF-6, STMT-1, STMT-3: the plan of a query holds no command, the plan of a command just that one."""
        lists = allowed.plans()
        commands = lists.parsed.commands.get(self.kind, frozenset())
        if not commands and self.kind is not StatementKind.QUERY:
            raise NotSupportedError(UNSUPPORTED_FORM)
        permitted = lists.parsed.of(self.kind)
        for node in self.description.nodes:
            if node.type not in permitted:
                self._refuse_class(node.type, lists.denied)
        found = [node for node in self.description.nodes if node.type in commands]
        if commands and (len(found) != 1 or not self._is_on_top(found[0])):
            raise NotSupportedError(UNSUPPORTED_FORM, hint="send one statement at a time")

    def check_expressions(self) -> None:
        lists = allowed.expressions()
        for name in sorted(self.description.expressions - lists.parsed):
            self._refuse_class(name, lists.denied)

    def check_parameters(self) -> None:
        """STMT-4."""
        if self.description.parameters:
            name = self.description.parameters[0]
            # Markers without a name are called by their place in the translated text, which says nothing to a user.
            which = f"parameter :{shown(name)}" if name.isidentifier() and not _is_ours(name) else "a parameter"
            raise UserError(
                f"The statement has {which} without a value",
                code=ErrorCode.INVALID_ARGUMENTS,
                condition="INVALID_PARAMETER_USAGE",
            )

    def check_relations(self) -> None:
        """NAME-5, STMT-4."""
        for relation in self.description.relations:
            position = self._position(relation)
            if relation.streaming:
                raise NotSupportedError("STREAM is not supported; name the table itself", position=position)
            if relation.options:
                raise NotSupportedError("Options on a table are not supported", position=position)
            if relation.time_travel is not None and not relation.time_travel.literal:
                raise NotSupportedError(
                    "Time travel takes a literal version or timestamp", position=position, hint="write the value itself"
                )

    def check_functions(self) -> None:
        """FUNC-1 to FUNC-3, LIM-6."""
        for call in self.description.functions:
            name = self._function_name(call)
            if name is not None:
                self._check_options(name, call)
                self._check_schema(name, call)
        check_amplifiers(self.description.functions, self.limits.amplifiers, position_of=self._position)

    def check_commands(self) -> None:
        """STMT-3, STMT-7: what the fields of commands ask for."""
        for node in self.description.nodes:
            fields = node.fields
            if fields.get("withSchemaEvolution"):
                raise NotSupportedError("WITH SCHEMA EVOLUTION is not supported", hint="use ALTER TABLE … ADD COLUMN")
            if fields.get("writeOptions"):
                raise NotSupportedError("OPTIONS are not supported")
            match node.simple_type:
                case "CreateTable" | "ReplaceTable" | "CreateTableAsSelect" | "ReplaceTableAsSelect":
                    check_table_spec(fields.get("tableSpec"))
                    check_new_columns(records(fields.get("columns")))
                case "AddColumns":
                    check_added_columns(records(fields.get("columnsToAdd")))
                case "AlterColumns":
                    check_altered_columns(records(fields.get("specs")))
                case "SetTableProperties":
                    check_table_properties(text_map(fields.get("properties")))
                case "UnsetTableProperties":
                    check_unset_properties(fields.get("propertyKeys"))
                case "UnresolvedHint":
                    self._check_hint(fields)

    def _is_on_top(self, command: PlanNode) -> bool:
        """Whether only WITH stands above a command, and not as one of its definitions."""
        node = command
        while node.parent != -1:
            slot, node = node.slot, self.description.nodes[node.parent]
            if node.type != _WITH or slot != "child":
                return False
        return True

    def _refuse_class(self, name: str, denied: Mapping[str, str]) -> None:
        reason = denied.get(name)
        _log.warning("Refused a %s statement that holds %s", self.kind.value, name)
        raise NotSupportedError(reason or UNSUPPORTED_FORM)

    def _function_name(self, call: FunctionCall) -> str | None:
        """Return the name of an allowed function, None for a transform of Iceberg's; refuse any other."""
        lists = allowed.functions()
        name = call.parts[-1].lower()
        if len(call.parts) == 2 and call.parts[0].lower() == "system" and name in lists.transforms:
            return None
        known, denied = (
            (lists.table, {**lists.denied, **lists.denied_table})
            if call.table_valued
            else (lists.callable, lists.denied)
        )
        if len(call.parts) == 1 and (name in known or name in self.extra_functions):
            return name
        position = self._position(call)
        if len(call.parts) == 1 and name in denied:
            raise NotSupportedError(denied[name], position=position)
        what = "Table function" if call.table_valued else "Function"
        raise UserError(
            f"{what} {shown('.'.join(call.parts))} does not exist",
            code=ErrorCode.FUNCTION_NOT_FOUND,
            position=position,
            hint=did_you_mean(name, sorted(known)),
        )

    def _check_options(self, name: str, call: FunctionCall) -> None:
        options = allowed.function_options().get(name)
        if options is None or len(call.literals) <= options.position:
            return
        position = self._position(call)
        given = call.literals[options.position]
        if not isinstance(given, Mapping):
            raise NotSupportedError(f"The options of {name} must be a map of literals", position=position)
        for key in given:
            if str(key).lower() not in options.keys:
                raise NotSupportedError(
                    f"Option {shown(str(key))} of {name} is not supported",
                    position=position,
                    hint=did_you_mean(str(key).lower(), sorted(options.keys)),
                )

    def _check_schema(self, name: str, call: FunctionCall) -> None:
        """FUNC-3: in JSON a type may carry text that the engine evaluates as SQL, and nobody has judged that."""
        place = allowed.schema_arguments().get(name)
        if place is None or len(call.literals) <= place:
            return
        position = self._position(call)
        given = call.literals[place]
        if call.calls.get(place) in _INFERS_SCHEMA:
            return
        if not isinstance(given, str) or not _TYPE_TEXT.match(given):
            raise NotSupportedError(
                f"The schema of {name} must be a literal such as 'a INT, b ARRAY<STRING>'", position=position
            )
        if _nesting(given) > _MAX_TYPE_NESTING:
            raise ResourcesError(f"A type may be nested {_MAX_TYPE_NESTING} levels deep", position=position)

    def _check_hint(self, fields: Mapping[str, Any]) -> None:
        name = fields.get("name")
        if not isinstance(name, str) or name.upper() not in allowed.hints():
            return  # STMT-4: the engine drops it
        most = self.limits.amplifiers.max_partitions
        for number in _numbers(fields.get("parameters")):
            if number > most:
                raise ResourcesError(f"Hint {name.upper()} asks for {number} partitions; {most} are allowed")

    def _position(self, place: FunctionCall | Relation) -> Position | None:
        if self.positions is None:
            return None
        return self.positions.locate(place.start, place.parts[-1])


def _nesting(type_text: str) -> int:
    """How many brackets are open at most at the same time."""
    depth = deepest = 0
    for bracket in re.findall("[<(>)]", type_text):
        depth += 1 if bracket in "<(" else -1
        deepest = max(deepest, depth)
    return deepest


def _numbers(value: object) -> Iterator[int]:
    """Yield every whole number in a rendered field."""
    if isinstance(value, bool):
        return
    if isinstance(value, int):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _numbers(inner)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for inner in value:
            yield from _numbers(inner)


def _is_ours(name: str) -> bool:
    return name.startswith(("sqe_p", *RESERVED_PREFIXES))
