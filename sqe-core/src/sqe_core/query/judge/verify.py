"""Step 7: the analysed plan is what was promised, node by node (ENF-11).

The plan comes from the rewriter and is not trusted: this module knows only the description of the plan, what was
expected, and the lists. A table may be read only so:

    SubqueryAlias(visible name)            the cover: without it Spark would give hidden columns back (ENF-4)
      Project(marker.c1, marker.c2)        exactly the expected columns, in order
        [Filter(barrier)                   only where expected, and then always
          SubqueryAlias(marker)
            Project(…)
              Filter(policy)]
        SubqueryAlias(marker)              a fresh random name per relation and statement
          SubqueryAlias(alias.ns.table)
            DataSourceV2Relation           of the expected catalog, table and version, without options

Rows of the client in files of ours are a DataSourceV2Relation without catalog and name, known by a token of this
statement; each is read once. The target of a write stands bare in its command, and in UPDATE, DELETE and MERGE also
below it, where Spark reads the rows to change; there it is read as above by who may see some of its rows only.
"""

from __future__ import annotations

import datetime
import logging
import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any, NoReturn

from sqe_core.engine.port import ROW_REFUSED, PlanDescription, PlanNode, TimeTravel
from sqe_core.query.judge import allowed
from sqe_core.spi.errors import InternalError, NotSupportedError, ResourcesError
from sqe_core.sql.statement import StatementKind

_log = logging.getLogger(__name__)

_LOGICAL = "org.apache.spark.sql.catalyst.plans.logical."
_RELATION = "org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation"
_ALIAS = _LOGICAL + "SubqueryAlias"
_PROJECT = _LOGICAL + "Project"
_FILTER = _LOGICAL + "Filter"
_SPOOL = "sqe.bridge.spool.SpoolTable"
_APPEND = _LOGICAL + "AppendData"
_DELTA = _LOGICAL + "WriteDelta"
_WITH = _LOGICAL + "WithCTE"
_RESOLVED = "org.apache.spark.sql.catalyst.analysis."
# Leaves that hold no data of a catalog.
_HARMLESS_LEAVES = frozenset(
    {
        _LOGICAL + "LocalRelation",
        _LOGICAL + "OneRowRelation",
        _LOGICAL + "Range",
        _LOGICAL + "CTERelationRef",
        _LOGICAL + "UnionLoopRef",
        _RESOLVED + "ResolvedInlineTable",
    }
)
_TARGETS = frozenset({_RESOLVED + "ResolvedTable", _RESOLVED + "ResolvedIdentifier"})
_TARGET_SLOTS = frozenset({"table", "originalTable", "targetTable"})
_READS_ITS_TARGET = frozenset({StatementKind.UPDATE, StatementKind.DELETE, StatementKind.MERGE, StatementKind.TRUNCATE})
# What calls may invoke: Iceberg's transforms, by class or by name, and the static functions of our templates.
_INVOKED = ("org.apache.iceberg.spark.functions.", "iceberg.")
_OWN_FUNCTIONS = frozenset(
    f"sqe.bridge.functions.Sql{name}"
    for name in ("Bytes", "Json", "Math", "Network", "Statistics", "Text", "Time", "Zone")
)
# What Iceberg knows a row by.
_ROW_COLUMNS = frozenset({"_spec_id", "_partition", "_file", "_pos", "_row_id", "_last_updated_sequence_number"})
_DELETED = 1  # RowDeltaUtils.DELETE_OPERATION
_BARRIER = "(spark_partition_id() >= 0)"
_NAME_PART = re.compile(r"`((?:[^`]|``)*)`|(\w+)")
# What may be copied below a barrier: a column compared with constants, or tested for NULL.
_COLUMN = r"(?:`(?:[^`]|``)*`|\w+)(?:\.(?:`(?:[^`]|``)*`|\w+))+"
_TYPE = r"[A-Z]+(?:\(\d+(?:, ?\d+)?\))?"
_TEXT = r"'(?:[^'\\]|\\.)*'"
_LITERAL = (
    r"(?:NULL|TRUE|FALSE|true|false|-?\d+(?:\.\d+)?(?:E[+-]?\d+)?(?:L|S|Y|D|BD)?"
    rf"|X?{_TEXT}|(?:DATE|TIMESTAMP|TIMESTAMP_NTZ|TIMESTAMP_LTZ|TIME) {_TEXT}"
    rf"|CAST\((?:{_TEXT}|-?\d+(?:\.\d+)?) AS {_TYPE}\))"
)
_COPY = re.compile(
    rf"\((?:(?P<plain>{_COLUMN})|CAST\((?P<cast>{_COLUMN}) AS {_TYPE}\))"
    rf" (?:(?:=|<=>|<|<=|>|>=) {_LITERAL}|IN \({_LITERAL}(?:, ?{_LITERAL})*\)|IS (?:NOT )?NULL)\)"
    rf"|\({_LITERAL} (?:=|<=>|<|<=|>|>=) (?:(?P<flipped>{_COLUMN})|CAST\((?P<flipped_cast>{_COLUMN}) AS {_TYPE}\))\)",
    re.DOTALL,
)
_DEFAULT = re.compile(rf"(?:CAST\()*{_LITERAL}(?: AS {_TYPE}\))*")
_PARTITION_FORMS = ("to_json(r.partition) as partition", "cast(null as string) as partition")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedRelation:
    """A table that the plan must read, or write, and how.

    Attributes:
        identity: the random name of the mounted catalog, and the parts of the name in it.
        marker: the alias of the raw table inside the secured text; None for a write target.
        columns: the projected columns in order; for a metadata table its expressions, with `r` for the marker.
        filter_sql: the policy's condition as the engine writes it when analysed; the barrier stands above it (ENF-14).
        masks: what the engine writes for the value of each masked column, when analysed.
        untouched: columns of a target that the statement may not give a value to, other than their default.
        changed: whether this is the target of the statement, as it reads the rows that it changes.
        view: whether the marker stands above the plan of a view, whose own tables are expected apart.
    """

    identity: tuple[str, ...]
    marker: str | None = None
    columns: tuple[str, ...] = ()
    metadata: bool = False
    time_travel: TimeTravel | None = None
    filter_sql: str | None = None
    masks: Mapping[str, str] = field(default_factory=dict)
    view: bool = False
    write_target: bool = False
    untouched: frozenset[str] = frozenset()
    changed: bool = False


def verify(
    analysed: PlanDescription,
    *,
    expected: Sequence[ExpectedRelation],
    kind: StatementKind,
    spools: Set[str] = frozenset(),
    max_partitions: int = 10_000,
) -> None:
    """Refuse an analysed plan that is not exactly what the expected relations allow.

    Raises:
        InternalError: the plan deviates; the details go to the log of the server, none to the client.
        NotSupportedError: it holds a function or clause that only analysis could name.
    """
    read = {entry.marker: entry for entry in expected if entry.marker is not None and not entry.write_target}
    verifier = _Verifier(analysed, kind, read)
    verifier.spools.update(spools)
    verifier.targets.update({entry.identity: entry for entry in expected if entry.write_target})
    if len(verifier.by_marker) + len(verifier.targets) != len(expected):
        _deviates("the expected relations are not told apart")
    verifier.check_classes()
    verifier.check_functions()
    verifier.check_leaves()
    verifier.check_views()
    verifier.check_changed_rows()
    verifier.check_written_rows()
    verifier.check_references()
    verifier.check_partitions(max_partitions)
    verifier.check_all_seen()


def _deviates(what: str) -> NoReturn:
    _log.error("An analysed plan is not what was promised and does not run: %s", what)
    raise InternalError("The statement could not be secured and was not run")


@dataclass(slots=True)
class _Verifier:
    plan: PlanDescription
    kind: StatementKind
    by_marker: Mapping[str, ExpectedRelation]
    targets: dict[tuple[str, ...], ExpectedRelation] = field(default_factory=dict)
    spools: set[str] = field(default_factory=set)
    seen: set[object] = field(default_factory=set)

    # What stands in the plan at all

    def check_classes(self) -> None:
        """ENF-6, and: a query has no command nodes, a command just one, on top."""
        nodes = self.plan.nodes
        if not nodes or any(
            node.id != place or not (node.parent == -1 if place == 0 else 0 <= node.parent < place)
            for place, node in enumerate(nodes)
        ):
            _deviates("its description is no tree")
        lists = allowed.plans().analysed
        permitted, commands = lists.of(self.kind), lists.commands.get(self.kind, frozenset())
        for node in nodes:
            if node.type not in permitted:
                _deviates(f"{node.type} in a statement of kind {self.kind.value}")
        found = [node for node in nodes if node.type in commands]
        if commands and (len(found) != 1 or not self._is_on_top(found[0])):
            _deviates(f"{len(found)} commands")
        if not commands and self.kind is not StatementKind.QUERY:
            _deviates(f"no statement of kind {self.kind.value} is executed by the engine")
        expressions = allowed.expressions()
        for name in sorted(self.plan.expressions - expressions.analysed):
            reason = expressions.denied.get(name)
            if reason is None:
                _deviates(f"expression {name}")
            _log.warning("Refused an analysed statement that holds %s", name)
            raise NotSupportedError(reason)

    def check_functions(self) -> None:
        """FUNC-1: code is invoked in Iceberg's transforms and our own functions only."""
        for call in self.plan.functions:
            if call.parts[0] not in _OWN_FUNCTIONS and not call.parts[0].startswith(_INVOKED):
                _deviates(f"it invokes {'.'.join(call.parts)}")

    def _is_on_top(self, command: PlanNode) -> bool:
        node = command
        while node.parent != -1:
            slot, node = node.slot, self.plan.nodes[node.parent]
            if node.type != _WITH or slot != "plan":
                return False
        return True

    # Where data comes from, and where it goes

    def check_leaves(self) -> None:
        """Every leaf is harmless, or a table that is read or written as expected."""
        inner = {node.parent for node in self.plan.nodes if node.slot != "subquery"}
        lists = allowed.plans().analysed
        for node in self.plan.nodes:
            if node.type == _RELATION:
                self._check_relation(node)
            elif node.type in _TARGETS:
                self._check_target(node, _identity(node))
            elif node.id not in inner and node.type not in _HARMLESS_LEAVES:
                if node.type not in lists.commands.get(self.kind, frozenset()):
                    _deviates(f"{node.type} without anything below it")
                # Iceberg's own ALTER TABLE commands carry the name of their table.
                self._check_target(node, _strings(node.fields.get("table")))

    def _check_relation(self, node: PlanNode) -> None:
        if node.fields.get("spool") is not None:
            self._check_spool(node)
            return
        identity = _identity(node)
        if node.fields.get("options"):
            _deviates(f"options on {identity}")
        marker_alias = self._marker_alias(node, identity)
        if marker_alias is None:
            if node.fields.get("timeTravel") is not None or node.fields.get("snapshotId") is not None:
                _deviates(f"a version of {identity} is no target")
            self._check_bare(node, identity)
            return
        marker = _strings(marker_alias.fields.get("identifier"))[0]
        entry = self.by_marker[marker]
        if entry.view or entry.identity != identity:
            _deviates(f"{identity} stands where {entry.identity} was expected")
        _check_version(node, entry)
        self._check_cover(marker_alias, entry)
        self.seen.add(marker)

    def check_views(self) -> None:
        """VIEW-2: what a policy keeps of a view is kept directly above the view's plan, wherever that stands."""
        named = [
            (node, _strings(node.fields.get("identifier"))[0])
            for node in self.plan.nodes
            if node.type == _ALIAS and len(_strings(node.fields.get("identifier"))) == 1
        ]
        marked = [(node, name) for node, name in named if name in self.by_marker and self.by_marker[name].view]
        inner = {id(node) for node, _ in marked}
        for node, name in marked:
            again = self._above(self._above(self._above(node, _FILTER), _PROJECT), _ALIAS)
            if again is not None and _strings(again.fields.get("identifier")) == (name,):
                inner.discard(id(again))  # the name below the barrier
        for node, name in marked:
            if id(node) in inner:
                self._check_cover(node, self.by_marker[name])
                self.seen.add(name)

    def check_written_rows(self) -> None:
        """DML-2, DML-3: below an INSERT stands what every row has to satisfy, and kept columns get their default."""
        for entry in self.targets.values():
            if entry.filter_sql is None and not entry.untouched:
                continue
            write = self._write(entry)
            node = self._child(write, "query")
            if entry.filter_sql is not None:
                if node.type != _FILTER or node.fields.get("condition") != _written(entry, write.type == _DELTA):
                    _deviates(f"rows for {entry.identity} are not checked")
                node = self._child(node, "child")
                if node.type != _ALIAS or _strings(node.fields.get("identifier")) != (entry.marker,):
                    _deviates(f"rows for {entry.identity} are checked under another name")
                node = self._child(node, "child")
            if entry.untouched:
                self._check_untouched(node, entry)

    def check_changed_rows(self) -> None:
        """DML-3: the target is read below its policy, and what is not read stays as it is."""
        for entry in self.by_marker.values():
            if not entry.changed:
                continue
            if entry.identity not in self.targets or self.kind not in _READS_ITS_TARGET:
                _deviates(f"{entry.identity} is no target")
            write = self._write(entry)
            # Spark may drop whole files by the condition of the write, without reading them.
            if write.type == _DELTA and entry.filter_sql not in (None, write.fields.get("guard")):
                _deviates(f"hidden rows of {entry.identity} would be changed")

    def _write(self, entry: ExpectedRelation) -> PlanNode:
        """The one command that adds rows and marks rows as gone, and leaves all others where they are."""
        writes = [node for node in self.plan.nodes if node.type in (_APPEND, _DELTA)]
        if len(writes) != 1:
            _deviates(f"{len(writes)} writes to {entry.identity}")
        return writes[0]

    def _check_untouched(self, node: PlanNode, entry: ExpectedRelation) -> None:
        items = node.fields.get("projectList") if node.type == _PROJECT else None
        if not isinstance(items, Sequence):
            _deviates(f"rows for {entry.identity} come without their columns")
        given = {}
        for item in items:
            value, _, column = str(item).rpartition(" AS ")
            given[_attribute(column or value)[-1:]] = value
        for column in entry.untouched:
            if _DEFAULT.fullmatch(given.get((column,), "")) is None:
                _deviates(f"a value for a column of {entry.identity} that is kept")

    def _child(self, parent: PlanNode, slot: str) -> PlanNode:
        found = [node for node in self.plan.nodes if node.parent == parent.id and node.slot == slot]
        if len(found) != 1:
            _deviates(f"{parent.simple_type} has {len(found)} of {slot}")
        return found[0]

    def _check_spool(self, node: PlanNode) -> None:
        token = node.fields["spool"]
        if token not in self.spools or token in self.seen or node.fields.get("tableClass") != _SPOOL:
            _deviates("rows of a client that this statement did not bring")
        if node.fields.get("catalog") is not None or node.fields.get("identifier") is not None:
            _deviates("a table of a catalog in the place of a client's rows")
        if node.fields.get("options") or self._in_subquery(node):
            _deviates("a client's rows in another place")
        if self._above(node, _ALIAS) is None:
            _deviates("a client's rows without a cover")
        self.seen.add(token)

    def _marker_alias(self, node: PlanNode, identity: tuple[str, ...]) -> PlanNode | None:
        """Return the alias with a marker above a relation, with Spark's own alias in between."""
        above = self._above(node, _ALIAS)
        if above is None or _strings(above.fields.get("identifier")) != identity:
            return None
        alias = self._above(above, _ALIAS)
        name = _strings(alias.fields.get("identifier")) if alias is not None else ()
        return alias if len(name) == 1 and name[0] in self.by_marker else None

    def _check_cover(self, marker_alias: PlanNode, entry: ExpectedRelation) -> None:
        """The nodes from the marker up to the cover, in their order."""
        assert entry.marker is not None
        node = marker_alias
        if entry.filter_sql is not None:
            node = self._require(node, _FILTER, entry)
            if not _is_filter(node, entry):
                _deviates(f"another filter on {entry.identity}")
            node = self._require(node, _PROJECT, entry)
            if any(_attribute(item)[:-1] != (entry.marker,) for item in _strings(node.fields.get("projectList"))):
                _deviates(f"a computed column below the barrier of {entry.identity}")
            node = self._require(node, _ALIAS, entry)
            if _strings(node.fields.get("identifier")) != (entry.marker,):
                _deviates(f"another name below the barrier of {entry.identity}")
            node = self._require(node, _FILTER, entry)
            if _normal(node.fields.get("condition")) != _BARRIER:
                _deviates(f"no barrier on {entry.identity}")
        project = self._require(node, _PROJECT, entry)
        items = project.fields.get("projectList")
        if not isinstance(items, Sequence) or not _is_projection(items, entry):
            _deviates(f"another projection of {entry.identity}")
        cover = self._require(project, _ALIAS, entry)
        if set(_strings(cover.fields.get("identifier"))) & self.by_marker.keys():
            _deviates(f"a marker covers {entry.identity}")

    def _require(self, node: PlanNode, type_name: str, entry: ExpectedRelation) -> PlanNode:
        above = self._above(node, type_name)
        if above is None:
            _deviates(f"no {type_name.rsplit('.', 1)[-1]} above {node.simple_type} of {entry.identity}")
        return above

    def _above(self, node: PlanNode | None, type_name: str) -> PlanNode | None:
        """Return the parent when it is of a class and holds the node as its child, not in an expression."""
        if node is None or node.parent == -1 or node.slot != "child":
            return None
        parent = self.plan.nodes[node.parent]
        return parent if parent.type == type_name else None

    def _check_bare(self, node: PlanNode, identity: tuple[str, ...]) -> None:
        """A table without a marker is the target of the statement, in the command or read by it."""
        if node.parent == -1:
            _deviates(f"{identity} stands alone")
        parent = self.plan.nodes[node.parent]
        commands = allowed.plans().analysed.commands.get(self.kind, frozenset())
        in_command = parent.type in commands and node.slot in _TARGET_SLOTS
        restricted = any(entry.changed and entry.identity == identity for entry in self.by_marker.values())
        if not in_command and (restricted or self.kind not in _READS_ITS_TARGET or self._in_subquery(node)):
            _deviates(f"{identity} is read without being secured")
        branch = node.fields.get("branch")
        if branch is not None and branch != "main" and identity[-1] != f"branch_{branch}":
            _deviates(f"a branch of {identity} that nobody named")
        self._check_target(node, identity)

    def _check_target(self, node: PlanNode, identity: tuple[str, ...]) -> None:
        if identity not in self.targets:
            _deviates(f"{node.simple_type} names {identity}, which is no target")
        self.seen.add(identity)

    def _in_subquery(self, node: PlanNode) -> bool:
        while node.parent != -1:
            if node.slot == "subquery":
                return True
            node = self.plan.nodes[node.parent]
        return False

    # The rest

    def check_references(self) -> None:
        """A reference to a common table expression leads to one in this plan, where its leaves were checked."""
        for holder, its_id, reference, its_target in (
            ("CTERelationDef", "id", "CTERelationRef", "cteId"),
            ("UnionLoop", "id", "UnionLoopRef", "loopId"),
        ):
            defined = {node.fields.get(its_id) for node in self.plan.nodes if node.type == _LOGICAL + holder} - {None}
            for node in self.plan.nodes:
                if node.type == _LOGICAL + reference and node.fields.get(its_target) not in defined:
                    _deviates(f"a {reference} leads outside of the plan")

    def check_partitions(self, most: int) -> None:
        """LIM-6, for hints whose number only analysis reads."""
        for node in self.plan.nodes:
            for name in ("numPartitions", "optNumPartitions"):
                number = node.fields.get(name)
                if isinstance(number, int) and number > most:
                    raise ResourcesError(f"A hint asks for {number} partitions; {most} are allowed")

    def check_all_seen(self) -> None:
        """Analysis removes no relation, so each expected one must be there; a CTE may repeat one."""
        missing = (self.by_marker.keys() | self.targets.keys() | self.spools) - self.seen
        if missing:
            _deviates(f"{len(missing)} expected relations are missing")


def _check_version(node: PlanNode, entry: ExpectedRelation) -> None:
    """NAME-5: the version that the user named, or the current one."""
    actual, travel = node.fields.get("timeTravel"), entry.time_travel
    if travel is None:
        expected = None
        branch = node.fields.get("branch")
        if node.fields.get("snapshotId") is not None or branch not in (None, "main"):
            _deviates(f"a version of {entry.identity} that nobody named")
    elif not travel.literal:
        _deviates(f"a computed version of {entry.identity}")
    elif travel.version is not None:
        expected = f"VERSION AS OF '{travel.version}'"
    else:
        expected = f"TIMESTAMP AS OF {_micros(travel.timestamp)}"
    if actual != expected:
        _deviates(f"another version of {entry.identity}")


def _micros(timestamp: str | None) -> int | None:
    """Return the microseconds since 1970 of a timestamp in UTC, the pinned zone of every session."""
    try:
        moment = datetime.datetime.fromisoformat(timestamp or "")
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=datetime.UTC)
    return (moment - datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)) // datetime.timedelta(microseconds=1)


def _identity(node: PlanNode) -> tuple[str, ...]:
    catalog, identifier = node.fields.get("catalog"), _strings(node.fields.get("identifier"))
    if not isinstance(catalog, str) or not identifier:
        _deviates(f"{node.simple_type} without a name")
    return (catalog, *identifier)


def _strings(value: Any) -> tuple[str, ...]:
    """Return a list of texts; anything else is as good as none."""
    if not isinstance(value, Sequence) or isinstance(value, str) or not all(isinstance(one, str) for one in value):
        return ()
    return tuple(value)


def _is_projection(items: Sequence[Any], entry: ExpectedRelation) -> bool:
    if entry.changed:
        kept = {(entry.marker, column) for column in _ROW_COLUMNS}
        if any(_attribute(str(item)) not in kept for item in items[len(entry.columns) :]):
            return False
        items = items[: len(entry.columns)]
    if len(items) != len(entry.columns) or not items:
        return False
    if not entry.metadata:
        return all(
            isinstance(item, str) and _is_column(item, column, entry)
            for item, column in zip(items, entry.columns, strict=True)
        )
    prefix = f"{entry.marker}.".lower()
    return all(
        isinstance(item, str) and _normal(item).replace(prefix, "r.") in _metadata_forms(column)
        for item, column in zip(items, entry.columns, strict=True)
    )


def _written(entry: ExpectedRelation, delta: bool) -> str:
    raised = f"raise_error('USER_RAISED_EXCEPTION', map('errorMessage', '{ROW_REFUSED}'))"
    refusal = f"(IF((SPARK_PARTITION_ID() >= 0), CAST({raised} AS BOOLEAN), true))"
    holds = f"((SPARK_PARTITION_ID() >= 0) AND {entry.filter_sql})"
    if delta:
        holds = f"(({entry.marker}.__row_operation = {_DELETED}) OR {holds})"
    return f"(IF({holds}, true, {refusal}))"


def _is_filter(node: PlanNode, entry: ExpectedRelation) -> bool:
    """The policy's own condition, and behind it only copies that cannot fail on any row (ENF-15)."""
    if node.fields.get("condition") == entry.filter_sql:
        return True
    spine = node.fields.get("spine")
    if entry.view or not isinstance(spine, Sequence):
        return False  # a view's column may be computed
    for step in spine:
        before, behind, casts_are_safe = step
        if casts_are_safe is not True or not isinstance(behind, str) or not _is_safe_copy(behind, entry):
            return False
        if before == entry.filter_sql:
            return True
    return False


def _is_safe_copy(sql: str, entry: ExpectedRelation) -> bool:
    form = _COPY.fullmatch(sql)
    if form is None:
        return False
    column = _attribute(form["plain"] or form["cast"] or form["flipped"] or form["flipped_cast"] or "")
    return (
        len(column) == 2 and column[0] == entry.marker and column[1] in entry.columns and column[1] not in entry.masks
    )


def _is_column(item: str, column: str, entry: ExpectedRelation) -> bool:
    """The column itself, or exactly the expression that it reads as."""
    mask = entry.masks.get(column)
    if mask is None:
        return _attribute(item) == (entry.marker, column)
    head = f"{mask} AS "
    return item.startswith(head) and _attribute(item[len(head) :]) == (column,)


def _metadata_forms(column: str) -> tuple[str, ...]:
    return _PARTITION_FORMS if column.startswith("{partition}") else (_normal(column),)


def _attribute(sql: str) -> tuple[str, ...]:
    """Return the parts of a qualified column, or nothing when the text is any other expression."""
    parts, place = [], 0
    while True:
        part = _NAME_PART.match(sql, place)
        if part is None:
            return ()
        parts.append(part.group(2) if part.group(1) is None else part.group(1).replace("``", "`"))
        place = part.end()
        if place == len(sql):
            return tuple(parts)
        if sql[place] != ".":
            return ()
        place += 1


def _normal(sql: object) -> str:
    """Return SQL for comparing: without quotes of names, case and spacing."""
    return " ".join(str(sql).replace("`", "").lower().split())
