"""A statement that is sent with several rows of parameters."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from sqe_core.protocols.flight.each_row import for_each
from sqe_core.spi.errors import UserError
from sqe_core.spi.protocol import StatementRequest


def test_a_statement_without_rows_is_refused_and_held_by_nobody() -> None:
    closed: list[str] = []

    def begin(request: StatementRequest) -> Any:
        return SimpleNamespace(schema=None, plan=lambda: None, close=lambda: closed.append(request.sql))

    requests = [StatementRequest(sql="INSERT INTO t VALUES (?)")] * 2
    with pytest.raises(UserError, match="This statement returns no rows"):
        for_each(begin, requests).plan()
    assert closed == ["INSERT INTO t VALUES (?)"]
