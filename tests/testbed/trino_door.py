"""SQE as the corpus asks it: in this process, in the dialect of Trino, with a schema for each file."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

from testbed.connected import composed
from testbed.trino_client import Answer
from testbed.trino_corpus import answers, cases
from testbed.trino_differences import by_key, fail_alone
from testbed.trino_json import json_value
from testbed.trino_runner import UNNAMED, Difference, differences

from sqe_core.engine.spark.engine import SparkEngine
from sqe_core.session.session import Session
from sqe_core.spi import SqeError
from sqe_core.spi.types import result_columns
from sqe_core.testing.fakes import make_identity


class Door:
    """A SQE with an empty catalog `lake`."""

    def __init__(self, engine: SparkEngine, folder: Path) -> None:
        self._sqe = composed(engine, folder, f'[catalogs.lake]\ntype = "sqlite"\ndirectory = "{folder}/lake"\n')

    def differences(self, file: str) -> dict[str, Difference]:
        """Run the statements of a file; return what differs, by the key of its statement."""
        session = self._sqe.open_session(make_identity("alice"), catalog="lake", protocol="test")

        def ask(sql: str) -> Answer:
            return self._ask(session, sql)

        try:
            for sql in (f"CREATE SCHEMA lake.{file}", f"USE lake.{file}"):
                made = ask(sql)
                assert made.error is None, made
            return by_key(file, differences(cases(file), answers(file), ask, fail_alone(file)))
        finally:
            self._sqe.service.close_session(session)

    def _ask(self, session: Session, sql: str) -> Answer:
        try:
            result = self._sqe.service.execute(session, sql, dialect="trino")
            if result.schema is None:
                result.close()
                return Answer(count=result.affected_rows)
            table = result.read_all()
        except SqeError as error:
            return Answer(error=UNNAMED, message=f"{error.code.name}: {str(error).splitlines()[0]}")
        columns = tuple((column.name, column.type.text) for column in result_columns(result.schema))
        values = [_values(column) for column in table.columns]
        return Answer(columns=columns, rows=tuple([list(row) for row in zip(*values, strict=True)]))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._sqe.release()


def _values(column: Any) -> list[Any]:
    try:
        return [json_value(value, column.type) for value in column.to_pylist()]
    except OverflowError:
        # Python's dates end before those of SQL.
        return [None if value is None else str(value) for value in column.cast("string").to_pylist()]
