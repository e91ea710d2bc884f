"""Lineage events: which statements make them, what they hold, and sinks that are slow, fail or hang."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from testbed.making import each_ended

from sqe_core.bootstrap.instances import configured_instances
from sqe_core.config import load
from sqe_core.observe import lineage
from sqe_core.observe.lineage import Lineage, LineageOptions
from sqe_core.observe.lineage_file import FileLineageConfig, FileLineageFactory
from sqe_core.plugins.kinds import ExtensionPoint
from sqe_core.plugins.manager import PluginManager
from sqe_core.spi.errors import ErrorCode, StartupError
from sqe_core.spi.events import ColumnSource, ObjectDecision, QueryEvent, QueryPhase
from sqe_core.spi.factory import PluginContext
from sqe_core.spi.lineage import LineageEvent, LineageEventType, LineageSink
from sqe_core.spi.names import NamespaceName, ObjectName
from sqe_core.spi.policy import Action, ResourceType
from sqe_core.testing import RecordingMetrics, make_identity

READ = ObjectName(catalog="lake", namespace=("a", "b"), name="source")
WRITTEN = ObjectName(catalog="lake", namespace=("a",), name="target")


class Kept(LineageSink):
    def __init__(self) -> None:
        self.events: list[LineageEvent] = []
        self.closed = False

    def emit(self, event: LineageEvent) -> None:
        self.events.append(event)

    def close(self) -> None:
        self.closed = True


class Hanging(Kept):
    def __init__(self) -> None:
        super().__init__()
        self.gate = threading.Event()

    def emit(self, event: LineageEvent) -> None:
        self.gate.wait(30)
        super().emit(event)


class Failing(Kept):
    def emit(self, event: LineageEvent) -> None:
        raise ValueError("https://u:canary-51@sink is down")

    def check(self) -> None:
        raise ValueError("canary-52")


def event(phase: QueryPhase, *objects: tuple[ObjectName | NamespaceName, Action], kind: str = "insert") -> QueryEvent:
    return QueryEvent(
        query_id="0190e1c0-0000-7000-8000-000000000000",
        phase=phase,
        time=datetime.now(UTC),
        principal=make_identity(),
        protocol="test",
        session_hash="h",
        statement_kind=kind,
        sql="INSERT INTO target SELECT ?",
        sql_hash="9f2c",
        objects=tuple(
            ObjectDecision(
                name=name,
                action=action,
                allowed=True,
                type=ResourceType.SCHEMA if isinstance(name, NamespaceName) else ResourceType.TABLE,
            )
            for name, action in objects
        ),
        error_code=ErrorCode.GENERIC_INTERNAL_ERROR if phase is QueryPhase.FAILED else None,
        error_message="what the client read" if phase is QueryPhase.FAILED else None,
    )


@pytest.fixture
def make() -> Iterator[Callable[..., Lineage]]:

    def build(*sinks: LineageSink, metrics: RecordingMetrics | None = None, **options: object) -> Lineage:
        found = Lineage(
            [(f"s{index}", sink) for index, sink in enumerate(sinks)],
            dataset_of=lambda name: (f"sqe://{name.catalog}", ".".join((*name.namespace, name.name))),
            options=LineageOptions(**options),  # type: ignore[arg-type]
            metrics=metrics or RecordingMetrics(),
        )
        found.start()
        return found

    yield from each_ended(build, lambda each: each.stop())


def test_a_write_has_a_start_and_an_end(make) -> None:
    sink = Kept()
    found = make(sink, job_namespace="prod", producer="https://example.com")
    objects = ((READ, Action.SELECT), (WRITTEN, Action.INSERT))
    found.observe(event(QueryPhase.RECEIVED, kind=""))
    found.observe(event(QueryPhase.STARTED, *objects))
    found.observe(event(QueryPhase.FINISHED, *objects))
    found.stop()

    assert [each.type for each in sink.events] == [LineageEventType.START, LineageEventType.COMPLETE]
    start, end = sink.events
    assert start.time == start.nominal_time == end.nominal_time < end.time
    assert {each.run_id for each in sink.events} == {"0190e1c0-0000-7000-8000-000000000000"}
    assert (end.job.namespace, end.job.name, end.job.sql) == ("prod", "insert:9f2c", "INSERT INTO target SELECT ?")
    assert end.producer == "https://example.com"
    assert [(each.namespace, each.name, each.source_name) for each in end.inputs] == [
        ("sqe://lake", "a.b.source", "lake")
    ]
    assert [(each.name, each.lifecycle_change) for each in end.outputs] == [("a.target", None)]
    assert sink.closed


def test_outputs_say_what_their_columns_are_made_of(make) -> None:
    sink = Kept()
    found = make(sink)
    made = replace(
        event(QueryPhase.FINISHED, (READ, Action.SELECT), (WRITTEN, Action.INSERT)),
        columns={"n": tuple(ColumnSource(name=READ, column="a", kind=kind) for kind in ("IDENTITY", "WINDOW"))},
        conditions=(ColumnSource(name=READ, column="b", kind="FILTER"),),
    )
    found.observe(made)
    found.stop()
    (output,) = sink.events[-1].outputs
    (column,) = output.column_lineage
    (used,), (condition,) = column.inputs, output.dataset_inputs
    assert (column.column, used.dataset_name, used.column) == ("n", "a.b.source", "a")
    assert [(each.type, each.subtype) for each in used.transformations] == [
        ("DIRECT", "IDENTITY"),
        ("DIRECT", "WINDOW"),
    ]
    assert (condition.column, [each.type for each in condition.transformations]) == ("b", ["INDIRECT"])


@pytest.mark.parametrize(
    ("phase", "end", "message"),
    [
        (QueryPhase.FAILED, LineageEventType.FAIL, "what the client read"),
        (QueryPhase.CANCELLED, LineageEventType.ABORT, None),
    ],
)
def test_what_ends_before_it_ran_has_begun_too(make, phase: QueryPhase, end: LineageEventType, message: str) -> None:
    sink = Kept()
    found = make(sink)
    found.observe(event(QueryPhase.RECEIVED, kind=""))
    found.observe(event(phase, (WRITTEN, Action.DROP), kind="drop_table"))
    found.stop()

    assert [each.type for each in sink.events] == [LineageEventType.START, end]
    assert sink.events[1].error_message == message
    assert sink.events[1].outputs[0].lifecycle_change == "DROP"


@pytest.mark.parametrize("selects", [False, True])
def test_queries_only_when_asked_for_and_listings_never(make, selects: bool) -> None:
    sink = Kept()
    found = make(sink, emit_selects=selects)
    found.observe(event(QueryPhase.FINISHED, (READ, Action.SELECT), kind="query"))
    found.observe(event(QueryPhase.FINISHED, (READ, Action.DESCRIBE), kind="describe"))
    schema = NamespaceName(catalog="lake", namespace=("a",))
    found.observe(event(QueryPhase.FINISHED, (schema, Action.CREATE_SCHEMA), kind="create_schema"))
    found.stop()
    assert [each.job.name for each in sink.events] == (["query:9f2c"] * 2 if selects else [])


def test_a_sink_that_hangs_delays_nobody(make, caplog: pytest.LogCaptureFixture, monkeypatch) -> None:
    monkeypatch.setattr(lineage, "_STOP_SECS", 2.0)
    metrics, slow, quick = RecordingMetrics(), Hanging(), Kept()
    found = make(slow, quick, metrics=metrics, capacity=3)
    began = time.monotonic()
    for number in range(10):
        found.observe(event(QueryPhase.FINISHED, (WRITTEN, Action.INSERT)))
        while len(quick.events) < 2 * (number + 1) and time.monotonic() - began < 60:
            time.sleep(0.001)
    stopped = time.monotonic()
    found.stop()
    assert time.monotonic() - stopped < 10
    slow.gate.set()

    assert len(quick.events) == 20
    assert quick.closed
    assert metrics.values["sqe_lineage_dropped_events_total"] >= 16
    assert "lineage sink s0 is too slow" in caplog.text
    assert sum("is too slow" in record.message for record in caplog.records) <= 2
    assert any("lineage sink s0 does not end" in record.message for record in caplog.records)


def test_a_sink_that_fails_is_counted_and_says_nothing_of_its_own(make, caplog: pytest.LogCaptureFixture) -> None:
    metrics, bad, good = RecordingMetrics(), Failing(), Kept()
    found = make(bad, good, metrics=metrics)
    found.observe(event(QueryPhase.FINISHED, (WRITTEN, Action.INSERT)))
    found.stop()

    assert len(good.events) == 2
    assert bad.closed
    assert metrics.values["sqe_lineage_sink_errors_total"] == 3
    assert "lineage sink s0 failed to deliver an event: ValueError" in caplog.text
    assert "canary" not in caplog.text


def test_sinks_of_the_configuration(tmp_path: Path) -> None:
    text = (
        f'[[lineage.sinks]]\ntype = "file"\nfile_path = "{tmp_path}/a.jsonl"\n'
        f'[[lineage.sinks]]\ntype = "file"\nfile_path = "{tmp_path}/b.jsonl"\n'
        f'[metrics.openlineage]\nenabled = true\nfile_path = "{tmp_path}/c.jsonl"\n'
    )
    (tmp_path / "sqe.toml").write_text(text)
    found = configured_instances(load(tmp_path / "sqe.toml", environ={}), PluginManager())
    assert [(each.name, each.settings.file_path.name) for each in found.of(ExtensionPoint.LINEAGE)] == [
        ("file", "a.jsonl"),
        ("file-2", "b.jsonl"),
        ("file-3", "c.jsonl"),
    ]

    (tmp_path / "sqe.toml").write_text(
        '[[lineage.sinks]]\ntype = "file"\npath = "x"\n[[lineage.sinks]]\ntype = "marquez"\n'
        '[metrics.openlineage]\nenabled = true\nhttp_endpoint = "http://localhost:5000"\n'
    )
    found = configured_instances(load(tmp_path / "sqe.toml", environ={}), PluginManager())
    faults = [fault.removeprefix(f"{tmp_path}/") for fault in found.faults]
    for expected in (
        "sqe.toml:1: lineage.sinks[0].file_path: is missing",
        "sqe.toml:3: lineage.sinks[0].path: unknown key",
        "sqe.toml:5: lineage.sinks[1].type: The lineage sink 'marquez' is not known, and no installed plugin",
        "sqe.toml:8: metrics.openlineage.http_endpoint: The lineage sink 'openlineage' is not known, and no installed",
    ):
        assert [fault for fault in faults if fault.startswith(expected)], (expected, faults)


def test_a_rehearsal_makes_no_file(tmp_path: Path) -> None:
    config = FileLineageConfig(file_path=tmp_path / "events.jsonl")
    FileLineageFactory().create("file", config, PluginContext(rehearsal=True)).close()
    assert not config.file_path.exists()
    with pytest.raises(StartupError, match="cannot be written"):
        FileLineageFactory().create(
            "file", FileLineageConfig(file_path=tmp_path / "no" / "x"), PluginContext(rehearsal=True)
        )


def test_lines_of_the_file_are_openlineage(make, tmp_path: Path) -> None:
    config = FileLineageConfig(file_path=tmp_path / "events.jsonl")
    found = make(FileLineageFactory().create("file", config, PluginContext()))
    found.observe(event(QueryPhase.FINISHED, (WRITTEN, Action.CREATE), kind="create_table"))
    found.stop()
    start, end = (json.loads(line) for line in config.file_path.read_text().splitlines())
    assert (start["eventType"], end["eventType"]) == ("START", "COMPLETE")
    assert end["outputs"][0]["facets"]["lifecycleStateChange"]["lifecycleStateChange"] == "CREATE"
