"""Where a catalog cannot know who asks, what no grant covers is its maker's and the administrators' (features §6.2)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent

import pyarrow as pa
import pytest
from testbed.making import each_ended
from testbed.users import Users

from sqe_core.bootstrap import compose
from sqe_core.config.loading import load
from sqe_core.engine.spark.engine import SparkEngine
from sqe_core.spi.errors import ErrorCode
from sqe_core.spi.protocol import IngestMode, IngestRequest
from sqe_core.testing import make_identity

WITH_LOGINS = """
[auth]
admin_roles = ["root"]
[[auth.providers]]
type = "anonymous"
"""


Opened = Callable[[str], Users]
ALICE, BOB, ROOT = (make_identity(name, roles=[name]) for name in ("alice", "bob", "root"))


@pytest.fixture
def opened(engine: SparkEngine, tmp_path: Path) -> Iterator[Opened]:

    def people(text: str) -> Users:
        file = tmp_path / "sqe.toml"
        file.write_text(
            dedent(f'[catalogs.lake]\ntype = "sqlite"\ndirectory = "{tmp_path}/lake"\n[policy]\nengine = "in-memory"\n')
            + text
        )
        return Users(compose(load(file, environ={}), engine=engine))

    yield from each_ended(people)


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
        people.run(ALICE, sql)
    request = IngestRequest(schema=None, table="brought", mode=IngestMode.CREATE)
    people.sqe.service.ingest(people.session(ALICE), request, rows.schema, iter(rows.to_batches())).close()
    made = ["brought", "empty_one", "mine", "renamed", "seen"]
    assert [row[0] for row in people.run(ALICE, "SHOW TABLES")] == made
    assert [row[0] for row in people.run(ROOT, "SHOW TABLES")] == made
    assert people.run(ROOT, "SELECT a FROM mine") == [(1,)]
    assert people.run(BOB, "SHOW TABLES") == []
    assert people.run(BOB, "SELECT table_name FROM information_schema.columns WHERE table_schema = 'default'") == []
    for name in made:
        for sql in ("SELECT * FROM {}", "DESCRIBE {}", "DROP TABLE {}", "INSERT INTO {} VALUES (2)", "DELETE FROM {}"):
            assert people.refusal(BOB, sql.format(name)).code is ErrorCode.TABLE_NOT_FOUND, (sql, name)
    assert people.refusal(BOB, "DROP SCHEMA default CASCADE").code is ErrorCode.ACCESS_DENIED
    people.run(BOB, "CREATE TABLE bobs AS SELECT 2 AS a")
    assert people.refusal(ALICE, "SELECT * FROM bobs").code is ErrorCode.TABLE_NOT_FOUND
    (told,) = people.run(ROOT, "EXPLAIN ACCESS SELECT * FROM mine FOR USER 'bob'")
    assert told[2] is False

    people.run(ROOT, "GRANT SELECT ON mine TO PUBLIC")
    assert people.run(BOB, "SELECT a FROM mine") == [(1,)]
    assert str(people.refusal(BOB, "DROP TABLE mine")) == "You may not DROP lake.default.mine"
    assert str(people.refusal(BOB, "INSERT INTO mine VALUES (3)")) == "You may not INSERT into lake.default.mine"
    people.run(ALICE, "INSERT INTO mine VALUES (3)")
    people.run(ALICE, "DROP TABLE mine")


@pytest.mark.parametrize("text", ["", WITH_LOGINS.replace("[auth]", 'uncovered = "catalog"\n[auth]')])
def test_without_logins_or_on_request_the_catalog_alone_decides(opened: Opened, text: str) -> None:
    people = opened(text)
    people.run(ALICE, "CREATE TABLE open_one AS SELECT 1 AS a")
    assert people.run(BOB, "SELECT a FROM open_one") == [(1,)]
    people.run(BOB, "DROP TABLE open_one")
