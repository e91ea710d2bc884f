"""Read restrictions over the wire: a REST catalog on loopback, real tables, real Spark, two users with their tokens.

The server wraps a real table's metadata, as its catalog wrote it, and adds what it restricts for who asks.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

from sqe_catalog_polaris.config import RestConfig
from sqe_catalog_polaris.kinds import make_backend
from sqe_core.bootstrap import Sqe, build
from sqe_core.catalog.backends import SqliteBackend
from sqe_core.catalog.registry import Mount
from sqe_core.engine.spark.engine import SparkEngine
from sqe_core.policy.builtin import AllowAllEnforcer
from sqe_core.query.run.admission import QueryLimits
from sqe_core.session.session import Session
from sqe_core.spi.catalog import CatalogContext
from sqe_core.spi.errors import ErrorKind, SqeError
from sqe_core.spi.identity import Identity
from sqe_core.testing import make_identity
from sqe_http.testing import HttpFake, Reply, Request

ALICE, BOB = make_identity("alice", token="token-of-alice"), make_identity("bob", token="token-of-bob")
LIMITS = QueryLimits(timeout_secs=120, max_result_rows=0, max_sql_bytes=1 << 20)
CANARY = "CANARY-93ad"


class RestServer(HttpFake):
    """Serves the tables of a warehouse, read only, and says what each user may not read of them."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.file = file
        self.restrictions: dict[tuple[str, str], Any] = {}
        self.loads: list[tuple[str, str]] = []
        self.broken = False

    def honest(self, request: Request) -> Reply:
        status, body = self.answer(request.path, request.headers.get("authorization", ""))
        content = json.dumps(body).encode()
        headers = {"Content-Type": "application/json", "Content-Length": str(len(content))}
        return Reply(status=status, headers=headers, body=content if request.method == "GET" else b"")

    def answer(self, path: str, authorization: str) -> tuple[int, Any]:
        user = authorization.removeprefix("Bearer token-of-")
        if user not in ("alice", "bob"):
            return 401, {"error": {"message": "who?", "type": "NotAuthorizedException", "code": 401}}
        parts = [unquote(part) for part in path.split("/")[2:]]
        match parts:
            case ["config"]:
                return 200, {"defaults": {}, "overrides": {}}
            case ["namespaces", "default", "tables", name]:
                self.loads.append((user, name))
                return self._table(user, name)
            case ["namespaces", "default"]:
                return 200, {"namespace": ["default"], "properties": {}}
            case ["namespaces"]:
                return 200, {"namespaces": [["default"]]}
        return 404, {"error": {"message": "no", "type": "NoSuchViewException", "code": 404}}

    def _table(self, user: str, name: str) -> tuple[int, Any]:
        with closing(sqlite3.connect(f"file:{self.file}?mode=ro", uri=True)) as connection:
            found = connection.execute(
                "SELECT metadata_location FROM iceberg_tables WHERE table_name = ?", (name,)
            ).fetchone()
        if found is None:
            return 404, {"error": {"message": "no", "type": "NoSuchTableException", "code": 404}}
        metadata = json.loads(Path(urlsplit(found[0]).path).read_text())
        body = {"metadata-location": found[0], "metadata": metadata, "config": {}}
        if (user, name) in self.restrictions:
            body["read-restrictions"] = self.restrictions[user, name]
        return 200, body


@dataclass
class Users:
    """Who works on the catalog, each with a session of their own."""

    sqe: Sqe
    server: RestServer
    sessions: dict[str, Session]

    def run(self, who: str, sql: str) -> list[tuple[Any, ...]]:
        result = self.sqe.service.execute(self.sessions[who], sql)
        rows = [tuple(row.values()) for batch in result for row in batch.to_pylist()]
        assert who == "bob" or CANARY in sql or CANARY not in repr(rows)
        return rows

    def refusal(self, who: str, sql: str) -> SqeError:
        with pytest.raises(SqeError) as caught:
            self.run(who, sql)
        assert CANARY not in f"{caught.value} {caught.value.hint}"
        return caught.value

    def restrict(self, table: str, document: Any, user: str = "alice") -> None:
        self.server.restrictions[user, table] = document
        self.sqe.service._parts.authorizer.flush()


@pytest.fixture(scope="module")
def server(engine: SparkEngine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RestServer]:
    """Tables that were written through SQE, behind a server of the protocol."""
    folder = tmp_path_factory.mktemp("lake")
    sqe = build(
        engine=engine,
        mounts=[Mount(name="lake", backend=SqliteBackend.at(folder, "sqe.db"))],
        enforcers=[AllowAllEnforcer()],
        limits=LIMITS,
    )
    session = sqe.open_session(BOB, catalog="lake", protocol="test")
    for sql in (
        "CREATE TABLE people (id integer, region varchar, ssn varchar)",
        f"INSERT INTO people VALUES (1, 'EU', '123-45-6789'), (2, 'US', '{CANARY}')",
        "ALTER TABLE people ADD COLUMN pay integer",
        "INSERT INTO people VALUES (3, 'EU', NULL, 50)",
        "CREATE TABLE swapped (a varchar, b varchar)",
        f"INSERT INTO swapped VALUES ('{CANARY}', 'shown')",
        "ALTER TABLE swapped RENAME COLUMN a TO c",
        "ALTER TABLE swapped RENAME COLUMN b TO a",
        "ALTER TABLE swapped RENAME COLUMN c TO b",
    ):
        for _ in sqe.service.execute(session, sql):
            pass
    sqe.service.close_session(session)
    server = RestServer(folder / "sqe.db")
    yield server
    server.stop()


@pytest.fixture
def users(engine: SparkEngine, server: RestServer, tmp_path: Path) -> Iterator[Users]:
    server.restrictions.clear()
    server.loads.clear()
    server.broken = False
    config = RestConfig(catalog_url=server.url, store="local", access_delegation="none", max_retries=1)
    sqe = build(
        engine=engine,
        mounts=[
            Mount(name="lake", backend=make_backend("lake", config, CatalogContext())),
            Mount(name="own", backend=SqliteBackend.at(tmp_path, "sqe.db")),
        ],
        enforcers=[AllowAllEnforcer()],
        limits=LIMITS,
    )

    def opened(who: Identity) -> Session:
        return sqe.open_session(who, catalog="lake", protocol="test")

    users = Users(sqe, server, {"alice": opened(ALICE), "bob": opened(BOB)})
    yield users
    for session in users.sessions.values():
        sqe.service.close_session(session)
    sqe.release()


EU: dict[str, Any] = {
    "required-row-filter": {
        "type": "eq",
        "left": {"type": "reference", "id": 2},
        "right": {"type": "literal", "value": "EU"},
    },
    "required-column-projections": [{"action": "show-last-4", "field-id": 3}],
}


@pytest.mark.rule("POL-8")
def test_what_the_catalog_restricts_holds_for_its_user_alone(users: Users) -> None:
    users.restrict("people", EU)
    assert users.run("alice", "SELECT * FROM people ORDER BY id") == [
        (1, "EU", "nnn-nn-6789", None),
        (3, "EU", None, 50),
    ]
    assert users.run("bob", "SELECT count(*) FROM people WHERE ssn = '123-45-6789' OR id = 2") == [(2,)]
    assert users.run("alice", f"SELECT count(*) FROM people WHERE ssn = '{CANARY}'") == [(0,)]
    assert users.run("alice", "SELECT count(*) FROM people WHERE 1 / (id - 2) < 9") == [(2,)]
    assert set(users.server.loads) == {("alice", "people"), ("bob", "people")}
    # Nothing of [policy] allows it: there is no engine that filters.
    assert users.run("alice", "SHOW EFFECTIVE POLICY ON people")[0][:3] == ("row_filter", None, "1")


@pytest.mark.rule("DML-6", "VIEW-2")
def test_copies_views_and_old_versions_hold_no_more(users: Users) -> None:
    users.restrict("people", EU)
    users.run("alice", "CREATE TABLE own.default.copy AS SELECT * FROM people")
    assert users.run("bob", "SELECT id, ssn FROM own.default.copy ORDER BY id") == [(1, "nnn-nn-6789"), (3, None)]
    users.run("bob", "CREATE VIEW own.default.all_people AS SELECT id, ssn FROM lake.default.people")
    assert users.run("alice", "SELECT id FROM own.default.all_people ORDER BY id") == [(1,), (3,)]
    assert users.run("bob", "SELECT count(*) FROM own.default.all_people") == [(3,)]
    first = users.run("bob", 'SELECT snapshot_id FROM "people$snapshots" ORDER BY committed_at')[0][0]
    assert users.run("alice", f"SELECT * FROM people FOR VERSION AS OF {first}") == [(1, "EU", "nnn-nn-6789")]
    users.refusal("alice", 'SELECT * FROM "people$files"')
    users.run("alice", "INSERT INTO own.default.copy SELECT * FROM people")
    assert users.run("bob", "SELECT count(*) FROM own.default.copy") == [(4,)]


@pytest.mark.rule("DML-2", "DML-4")
def test_nobody_changes_what_they_see_in_part(users: Users) -> None:
    users.restrict("people", EU)
    for sql in (
        "DELETE FROM people WHERE ssn = 'x'",
        "UPDATE people SET pay = 1",
        "TRUNCATE TABLE people",
        "DROP TABLE people",
        "INSERT INTO people (id, ssn) VALUES (9, 'x')",
        "MERGE INTO people p USING (SELECT 1 AS id) s ON p.id = s.id WHEN MATCHED THEN DELETE",
    ):
        users.refusal("alice", sql)
    assert users.run("bob", "SELECT count(*) FROM people") == [(3,)]


@pytest.mark.rule("POL-6")
def test_columns_that_changed_their_names_are_meant_by_their_ids(users: Users) -> None:
    users.restrict("swapped", {"required-column-projections": [{"action": "replace-with-null", "field-id": 1}]})
    assert users.run("alice", "SELECT a, b FROM swapped") == [("shown", None)]
    first = users.run("bob", 'SELECT snapshot_id FROM "swapped$snapshots" ORDER BY committed_at')[0][0]
    assert users.run("bob", f"SELECT a FROM swapped FOR VERSION AS OF {first}") == [(CANARY,)]
    users.refusal("alice", f"SELECT a FROM swapped FOR VERSION AS OF {first}")
    users.refusal("alice", f"SELECT b FROM swapped FOR VERSION AS OF {first}")


@pytest.mark.rule("POL-2", "POL-14")
@pytest.mark.parametrize(
    "document",
    [
        {"required-row-filter": {"type": "in-region", "term": "region", "value": "EU"}},
        {"required-row-filter": {"type": "eq", "term": "nowhere", "value": "EU"}},
        {"required-column-projections": [{"action": "apply-expression", "field-id": 3, "expression": True}]},
        {"required-column-projections": [{"action": "replace-with-null", "field-id": 300}]},
        {"required-joins": []},
        [],
    ],
)
def test_what_is_not_understood_is_not_read(users: Users, document: Any) -> None:
    users.restrict("people", document)
    for sql in ("SELECT id FROM people", "CREATE TABLE own.default.stolen AS SELECT * FROM people"):
        assert users.refusal("alice", sql).kind is ErrorKind.EXTERNAL
    assert users.run("bob", "SELECT count(*) FROM people") == [(3,)]
