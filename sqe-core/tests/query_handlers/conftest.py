"""The fixtures of this folder."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from handler_lake import Lake, open_lake

from sqe_core.query.service import StatementOptions
from sqe_core.spi.errors import SqeError
from sqe_core.spi.identity import Identity


@dataclass
class Trino:
    """The lake, asked in Trino's words."""

    lake: Lake

    def ask(self, who: Identity, sql: str, *parameters: Any, **options: Any) -> tuple[list[str], list[tuple[Any, ...]]]:
        """The names of the columns, and the rows."""
        result = self.lake.sqe.service.execute(
            self.lake.session(who), sql, parameters=parameters, dialect="trino", options=StatementOptions(**options)
        ).read_all()
        return result.schema.names, list(zip(*(column.to_pylist() for column in result.columns), strict=True))

    def rows(self, who: Identity, sql: str, *parameters: Any) -> list[tuple[Any, ...]]:
        return self.ask(who, sql, *parameters)[1]

    def refusal(self, who: Identity, sql: str, *parameters: Any) -> SqeError:
        with pytest.raises(SqeError) as caught:
            self.ask(who, sql, *parameters)
        return caught.value


@pytest.fixture
def lake() -> Iterator[Lake]:
    """An SQE with two catalogs in memory, one of which holds two tables."""
    found = open_lake()
    yield found
    found.sqe.close()


@pytest.fixture
def trino(lake: Lake) -> Trino:
    """The same for Trino's clients."""
    return Trino(lake)
