"""What stands between a protocol and the query service: what is counted when, and who is told what."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from sqe_core.query.gateway import ConnectedSession
from sqe_core.query.ingest.ingestion import Ingestion
from sqe_core.spi.errors import QueryTimeoutError, ResourcesError
from sqe_core.spi.protocol import StatementRequest

ROWS = [pa.record_batch({"1": [1, 2]})]


class Service:
    """Notes whether it was asked to read a text, which is not of the form that takes rows."""

    def __init__(self) -> None:
        self.read: list[str] = []

    def insert_rows(self, session: object, sql: str, batches: object, **options: object) -> None:
        self.read.append(sql)


def connected(service: Service, take: Callable[[Any], None]) -> ConnectedSession:
    live: Any = SimpleNamespace(session=None, ensure_usable=lambda: None)
    of_service: Any = service
    return ConnectedSession(live, of_service, take=take, renew=lambda credential: None)


@pytest.mark.rule("LIM-1")
def test_no_text_is_read_for_who_has_used_up_the_limit() -> None:
    def refuse(traffic: Any) -> None:
        raise ResourcesError("too many statements")

    service = Service()
    with pytest.raises(ResourcesError, match="too many"):
        connected(service, refuse).insert_rows(StatementRequest(sql="INSERT"), ROWS)
    assert not service.read


def test_rows_for_another_statement_than_an_insert_are_left_to_the_caller() -> None:
    counted: list[Any] = []
    service = Service()
    session = connected(service, counted.append)
    assert session.insert_rows(StatementRequest(sql="UPDATE"), []) is None
    assert (service.read, counted) == ([], [])
    assert session.insert_rows(StatementRequest(sql="UPDATE"), ROWS) is None
    assert (service.read, len(counted)) == (["UPDATE"], 1)


class Batches:
    """The batches of a client that sends nothing until its statement is over."""

    def __init__(self) -> None:
        self.check: Callable[[], None] | None = None

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self

    def __next__(self) -> pa.RecordBatch:
        assert self.check is not None, "nobody would end this wait"
        self.check()
        raise StopIteration

    def watch(self, check: Callable[[], None]) -> None:
        self.check = check


@pytest.mark.rule("LIM-8")
def test_batches_that_are_waited_for_know_when_their_statement_is_over() -> None:
    asked = 0

    def check() -> None:
        nonlocal asked
        asked += 1
        if asked == 2:  # it was not over yet when the next batch was asked for
            raise QueryTimeoutError("too long")

    context: Any = SimpleNamespace(running=SimpleNamespace(check=check))
    nothing: Any = None
    ingestion = Ingestion(context, nothing, nothing)
    files: Any = SimpleNamespace(finish=lambda: pytest.fail("not all has come"))
    with pytest.raises(QueryTimeoutError):
        ingestion._receive(Batches(), files)
