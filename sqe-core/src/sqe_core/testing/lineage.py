"""The contract of lineage sinks."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, ClassVar

import pytest

from sqe_core.spi.catalog import Column
from sqe_core.spi.identity import Secret
from sqe_core.spi.lineage import (
    ColumnLineage,
    Dataset,
    InputField,
    LineageEvent,
    LineageEventType,
    LineageJob,
    LineageSink,
    Transformation,
)
from sqe_core.testing.contract import ProductContract

Delivered = Callable[[], Sequence[Mapping[str, Any]]]
_TOKEN = Secret("token-that-must-not-appear-5d1f")


def make_lineage_event(run: int = 1, type: LineageEventType = LineageEventType.COMPLETE) -> LineageEvent:
    """Return an event with everything in it.

    Args:
        run: makes the run's id.
        type: the event's type.
    """
    source = Dataset(namespace="sqe://lake", name="hr.people", columns=(Column(name="näme", type="string"),))
    step = Transformation(type="DIRECT", subtype="IDENTITY")
    used = InputField(
        dataset_namespace=source.namespace, dataset_name=source.name, column="näme", transformations=(step,)
    )
    target = replace(source, name="hr.copy", column_lineage=(ColumnLineage(column="näme", inputs=(used,)),))
    return LineageEvent(
        type=type,
        time=datetime(2026, 1, 1, tzinfo=UTC),
        run_id=f"0190e1c0-0000-7000-8000-{run:012d}",
        job=LineageJob(namespace="sqe", name="create_table_as:9f2c", sql="CREATE TABLE copy AS SELECT * FROM people"),
        producer="https://example.com/sqe",
        inputs=(source,),
        outputs=(target,),
        user_token=_TOKEN,
    )


class LineageSinkContract(ProductContract):
    """What every lineage sink promises.

    Fixtures to supply: `factory`, `config`, and `delivered`: a function that returns the JSON documents that arrived
    so far, in order, called after the sink was closed; with the capability `remote` also `broken`.

    Capabilities: `remote`: it delivers to something that may fail, and then `emit` raises, so that the loss is counted.
    """

    KNOWN_CAPABILITIES: ClassVar[frozenset[str]] = frozenset({"remote"})
    MOST_SECS: ClassVar[float] = 60
    """How long `emit` takes at most when nobody answers."""

    @pytest.fixture
    def delivered(self) -> Delivered:
        """Returns what arrived."""
        raise NotImplementedError("supply the fixture 'delivered'")

    @pytest.fixture
    def broken(self) -> LineageSink:
        """A sink whose other side does not answer."""
        raise NotImplementedError("supply the fixture 'broken', or do not declare 'remote'")

    @pytest.fixture
    def sink(self, product: LineageSink) -> LineageSink:
        """The sink under test."""
        return product

    def test_is_a_sink(self, sink: LineageSink) -> None:
        """The factory makes a LineageSink that can deliver."""
        assert isinstance(sink, LineageSink)
        sink.check()

    def test_delivers_in_order(self, sink: LineageSink, delivered: Delivered) -> None:
        """Events arrive as OpenLineage documents, in the order of the calls."""
        sink.emit(make_lineage_event(1, LineageEventType.START))
        sink.emit(make_lineage_event(1, LineageEventType.COMPLETE))
        sink.close()
        arrived = delivered()
        assert [document["eventType"] for document in arrived] == ["START", "COMPLETE"]
        fields = arrived[1]["outputs"][0]["facets"]["columnLineage"]["fields"]
        assert fields["näme"]["inputFields"][0]["name"] == "hr.people"

    def test_takes_every_event(self, sink: LineageSink, delivered: Delivered) -> None:
        """Whatever the end of a run, and however little is known of it; a text of several lines stays one document."""
        job = LineageJob(namespace="sqe", name="insert:9f2c")
        for type in LineageEventType:
            text = "first\nsecond" if type is LineageEventType.FAIL else None
            sink.emit(replace(make_lineage_event(1, type), job=job, inputs=(), outputs=(), error_message=text))
        sink.close()
        arrived = delivered()
        assert [document["eventType"] for document in arrived] == [type.value for type in LineageEventType]
        assert arrived[2]["run"]["facets"]["errorMessage"]["message"] == "first\nsecond"

    def test_failure_raises(self, request: pytest.FixtureRequest) -> None:
        """What was not delivered is no secret, and is known in time: nobody counts a loss that nobody tells."""
        self.need("remote")
        broken: LineageSink = request.getfixturevalue("broken")
        began = time.monotonic()
        with pytest.raises(Exception, match=r".") as caught:
            broken.emit(make_lineage_event())
        assert time.monotonic() - began < self.MOST_SECS
        assert _TOKEN.reveal() not in str(caught.value)

    def test_keeps_the_token_out(self, sink: LineageSink, delivered: Delivered) -> None:
        """The user's token is no part of a document, nor of what the sink prints."""
        sink.emit(make_lineage_event())
        sink.close()
        assert _TOKEN.reveal() not in json.dumps(delivered()) + repr(sink)

    def test_many_threads(self, sink: LineageSink, delivered: Delivered) -> None:
        """Concurrent events do not mix."""
        with ThreadPoolExecutor(max_workers=8) as pool:
            list(pool.map(lambda run: sink.emit(make_lineage_event(run)), range(100)))
        sink.close()
        assert len({document["run"]["runId"] for document in delivered()}) == 100
