"""Where a catalog cannot know who asks, what no grant covers is its maker's and the administrators' (features §6.2)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import pyarrow as pa
import pytest

from sqe_core.bootstrap import Sqe, compose
from sqe_core.config.loading import load
from sqe_core.engine.spark.engine import SparkEngine
from sqe_core.session.session import Session
from sqe_core.spi.errors import ErrorCode, SqeError
from sqe_core.spi.protocol import IngestMode, IngestRequest
from sqe_core.testing import make_identity

WITH_LOGINS = """
[auth]
admin_roles = ["root"]
[[auth.providers]]
type = "anonymous"
"""


class People:
    """Sessions of alice, bob and root at one server."""

    def __init__(self, sqe: Sqe) -> None:
        self.sqe = sqe
        self.sessions: dict[str, Session] = {
            name: sqe.open_session(make_identity(name, roles=[name]), catalog="lake", protocol="test")
            for name in ("alice", "bob", "root")
        }

    def run(self, name: str, sql: str) -> list[list[Any]]:
        result = self.sqe.service.execute(self.sessions[name], sql)
        return [list(row.values()) for batch in result for row in batch.to_pylist()]

    def refusal(self, name: str, sql: str) -> SqeError:
        with pytest.raises(SqeError) as caught:
            self.run(name, sql)
        return caught.value

    def close(self) -> None:
        for session in self.sessions.values():
            self.sqe.service.close_session(session)


Opened = Callable[[str], People]


@pytest.fixture
def opened(engine: SparkEngine, tmp_path: Path) -> Iterator[Opened]:
    made: list[People] = []

    def people(text: str) -> People:
        file = tmp_path / "sqe.toml"
        file.write_text(
            dedent(f'[catalogs.lake]\ntype = "sqlite"\ndirectory = "{tmp_path}/lake"\n[policy]\nengine = "in-memory"\n')
            + text
        )
        made.append(People(compose(load(file, environ={}), engine=engine)))
        return made[-1]

    yield people
    for each in made:
        each.close()


@pytest.mark.rule("POL-2")
def test_what_somebody_made_is_theirs_until_it_is_granted(opened: Opened) -> None:
    people = opened(WITH_LOGINS)
    rows = pa.table({"a": [1]})
    for sql in (
        "CREATE TABLE mine AS SELECT 1 AS a",
        "CREATE TABLE empty_one (a integer)",
        "CREATE TABLE alike (LIKE mine)",
        "CREATE VIEW seen AS SELECT a FROM mine",
        "ALTER TABLE alike RENAME TO renamed",
    ):
        people.run("alice", sql)
    request = IngestRequest(schema=None, table="brought", mode=IngestMode.CREATE)
    people.sqe.service.ingest(people.sessions["alice"], request, rows.schema, iter(rows.to_batches())).close()
    made = ["brought", "empty_one", "mine", "renamed", "seen"]
    assert [row[0] for row in people.run("alice", "SHOW TABLES")] == made
    assert [row[0] for row in people.run("root", "SHOW TABLES")] == made
    assert people.run("root", "SELECT a FROM mine") == [[1]]
    assert people.run("bob", "SHOW TABLES") == []
    assert people.run("bob", "SELECT table_name FROM information_schema.columns WHERE table_schema = 'default'") == []
    for name in made:
        for sql in ("SELECT * FROM {}", "DESCRIBE {}", "DROP TABLE {}", "INSERT INTO {} VALUES (2)", "DELETE FROM {}"):
            assert people.refusal("bob", sql.format(name)).code is ErrorCode.TABLE_NOT_FOUND, (sql, name)
    assert people.refusal("bob", "DROP SCHEMA default CASCADE").code is ErrorCode.ACCESS_DENIED
    people.run("bob", "CREATE TABLE bobs AS SELECT 2 AS a")
    assert people.refusal("alice", "SELECT * FROM bobs").code is ErrorCode.TABLE_NOT_FOUND
    (told,) = people.run("root", "EXPLAIN ACCESS SELECT * FROM mine FOR USER 'bob'")
    assert told[2] is False

    people.run("root", "GRANT SELECT ON mine TO PUBLIC")
    assert people.run("bob", "SELECT a FROM mine") == [[1]]
    assert str(people.refusal("bob", "DROP TABLE mine")) == "You may not DROP lake.default.mine"
    assert str(people.refusal("bob", "INSERT INTO mine VALUES (3)")) == "You may not INSERT into lake.default.mine"
    people.run("alice", "INSERT INTO mine VALUES (3)")
    people.run("alice", "DROP TABLE mine")


@pytest.mark.parametrize("text", ["", WITH_LOGINS.replace("[auth]", 'uncovered = "catalog"\n[auth]')])
def test_without_logins_or_on_request_the_catalog_alone_decides(opened: Opened, text: str) -> None:
    people = opened(text)
    people.run("alice", "CREATE TABLE open_one AS SELECT 1 AS a")
    assert people.run("bob", "SELECT a FROM open_one") == [[1]]
    people.run("bob", "DROP TABLE open_one")
