"""SQE without a server, composed from a configuration, and people who are connected to it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sqe_core.bootstrap import Sqe, compose
from sqe_core.config.loading import load
from sqe_core.engine.spark.engine import SparkEngine
from sqe_core.spi import Identity, SqeError

OPEN = '[policy]\nengine = "passthrough"\ni_understand_no_enforcement = true\n'


class Connected:
    """One person, connected."""

    def __init__(self, sqe: Sqe, identity: Identity, catalog: str) -> None:
        self._sqe = sqe
        self.session = sqe.open_session(identity, catalog=catalog, protocol="test")

    def __call__(self, sql: str) -> list[tuple[Any, ...]]:
        table = self._sqe.service.execute(self.session, sql).read_all()
        return list(zip(*(column.to_pylist() for column in table.columns), strict=True))

    def fails(self, sql: str) -> SqeError:
        with pytest.raises(SqeError) as caught:
            self(sql)
        return caught.value

    def close(self) -> None:
        self._sqe.service.close_session(self.session)


def composed(engine: SparkEngine, folder: Path, text: str) -> Sqe:
    file = folder / "sqe.toml"
    file.write_text(OPEN + text)
    return compose(load(file, environ={}), engine=engine)
