"""REST catalogs under the whole pipeline, with real servers.

Iceberg's own adapter shows what the protocol can do; SeaweedFS decides per user, and hands out keys of each table.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog import load_catalog
from testbed.connected import Connected, composed
from testbed.issuer import Issuer
from testbed.making import each_ended
from testbed.meddler import Meddler
from testbed.rest_fixture import RestFixture
from testbed.seaweedfs import BROWSE, READ, REGION, SeaweedFS

from sqe_core.bootstrap import Sqe
from sqe_core.engine.spark.engine import SparkEngine
from sqe_core.spi import ErrorCode, Secret, SqeError
from sqe_core.testing.fakes import make_identity

NOBODY = make_identity("nobody")


# Iceberg's own catalog, which asks nobody for a login: what the protocol can do.


@pytest.fixture(scope="module")
def adapter() -> Iterator[RestFixture]:
    with RestFixture() as server:
        yield server.ready()


def anonymous(url: str, **keys: str) -> str:
    more = "".join(f"{key} = {value}\n" for key, value in keys.items())
    return f'[catalogs.lake]\ncatalog_url = "{url}"\nstore = "local"\n{more}auth.type = "anonymous"\n'


@pytest.fixture(scope="module")
def open_sqe(engine: SparkEngine, adapter: RestFixture, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sqe]:
    sqe = composed(engine, tmp_path_factory.mktemp("open"), anonymous(adapter.url))
    yield sqe
    sqe.release()


@pytest.fixture
def run(open_sqe: Sqe) -> Iterator[Connected]:
    with closing(Connected(open_sqe, NOBODY, "lake")) as session:
        yield session


def test_tables_change_and_remember(run: Connected, adapter: RestFixture) -> None:
    run("CREATE SCHEMA hr")
    run("CREATE TABLE hr.emp (id BIGINT, name VARCHAR) PARTITIONED BY (bucket(4, id))")
    run("INSERT INTO hr.emp VALUES (1, 'ann'), (2, 'bob'), (3, 'cyd')")
    ((first,),) = run('SELECT max(snapshot_id) FROM hr."emp$snapshots"')
    run("UPDATE hr.emp SET name = 'bea' WHERE id = 2")
    run("DELETE FROM hr.emp WHERE id = 3")
    run(
        "MERGE INTO hr.emp t USING (VALUES (1, 'amy'), (4, 'dan')) AS s(id, name) ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET name = s.name WHEN NOT MATCHED THEN INSERT (id, name) VALUES (s.id, s.name)"
    )
    run("ALTER TABLE hr.emp ADD COLUMN age INTEGER")

    assert run("SELECT id, name, age FROM hr.emp ORDER BY id") == [(1, "amy", None), (2, "bea", None), (4, "dan", None)]
    assert run(f"SELECT name FROM hr.emp FOR VERSION AS OF {first} ORDER BY id") == [("ann",), ("bob",), ("cyd",)]
    assert len(run('SELECT * FROM hr."emp$snapshots"')) == 4
    reader = load_catalog("lake", type="rest", uri=adapter.url)
    assert sorted(reader.load_table("hr.emp").scan().to_arrow()["id"].to_pylist()) == [1, 2, 4]


def test_names_come_and_go(run: Connected) -> None:
    run('CREATE SCHEMA "deep"')
    run('CREATE SCHEMA "deep.below"')
    run('CREATE TABLE "deep.below".t AS SELECT 1 AS id')
    assert ("deep.below",) in run("SHOW SCHEMAS")
    assert run('SHOW TABLES FROM "deep.below"') == [("t",)]
    run('ALTER TABLE "deep.below".t RENAME TO u')
    assert run('SELECT id FROM "deep.below".u') == [(1,)]
    assert run("SELECT table_name FROM information_schema.tables WHERE table_schema = 'deep.below'") == [("u",)]
    run('DROP TABLE "deep.below".u')
    run('DROP SCHEMA "deep.below"')
    assert ("deep.below",) not in run("SHOW SCHEMAS")
    assert run.fails('SELECT * FROM "deep.below".u').code is ErrorCode.TABLE_NOT_FOUND


def test_views(run: Connected) -> None:
    run("CREATE SCHEMA views")
    run("CREATE TABLE views.t AS SELECT 1 AS id UNION ALL SELECT 2")
    run("CREATE VIEW views.v (n) AS SELECT id + 1 FROM views.t")
    assert sorted(run("SELECT n FROM views.v")) == [(2,), (3,)]
    assert run("SHOW VIEWS FROM views") == [("v",)]
    run("CREATE OR REPLACE VIEW views.v AS SELECT 7 AS n")
    assert run("SELECT n FROM views.v") == [(7,)]
    run("DROP VIEW views.v")
    assert run.fails("SELECT * FROM views.v").code is ErrorCode.TABLE_NOT_FOUND


def test_commits_of_others_are_seen_at_once(open_sqe: Sqe, run: Connected) -> None:
    run("CREATE SCHEMA seen")
    run("CREATE TABLE seen.t AS SELECT 1 AS id")
    assert run("SELECT count(*) FROM seen.t") == [(1,)]
    with closing(Connected(open_sqe, NOBODY, "lake")) as other:
        other("INSERT INTO seen.t VALUES 2")
    assert run("SELECT count(*) FROM seen.t") == [(2,)]


# A catalog between SQE and the adapter, which says what a test wants.


@pytest.fixture
def meddler(adapter: RestFixture) -> Iterator[Meddler]:
    meddler = Meddler(adapter.url)
    yield meddler
    meddler.stop()


@pytest.fixture
def between(engine: SparkEngine, meddler: Meddler, run: Connected, tmp_path: Path) -> Iterator[Connected]:
    """A session that reaches the adapter through the meddler; there is a table `lies.t`."""
    if ("lies",) not in run("SHOW SCHEMAS"):
        run("CREATE SCHEMA lies")
        run("CREATE TABLE lies.t AS SELECT 1 AS id")
    healthy = f'[catalogs.healthy]\ntype = "sqlite"\ndirectory = "{tmp_path}/healthy"\n'
    sqe = composed(engine, tmp_path, anonymous(meddler.url, timeout_secs="3", max_retries="1") + healthy)
    with closing(Connected(sqe, NOBODY, "lake")) as session:
        yield session
    sqe.release()


EVIL = {
    "io-impl": "org.example.NoSuchFileIO",
    "metrics-reporter-impl": "org.example.NoSuchReporter",
    "rest.auth.type": "org.example.NoSuchAuth",
    "client.credentials-provider": "org.example.NoSuchProvider",
    "s3.client-factory-impl": "org.example.NoSuchFactory",
    "scan-planning-mode": "server",
    "uri": "http://127.0.0.1:9/elsewhere",
    "catalog-impl": "org.example.NoSuchCatalog",
    "header.Authorization": "Bearer stolen",
}


@pytest.mark.rule("ISO-7")
def test_a_catalog_chooses_no_classes_and_no_other_server(meddler: Meddler, between: Connected) -> None:
    def lie(method: str, path: str, body: Any) -> Any:
        if path.endswith("/config"):
            return {**body, "overrides": {**body.get("overrides", {}), **EVIL}, "defaults": EVIL}
        if "metadata" in body:
            credential = {"prefix": "file:", "config": EVIL}
            return {**body, "config": EVIL, "storage-credentials": [credential]}
        return body

    meddler.change = lie
    assert between("SELECT id FROM lies.t") == [(1,)]
    between("INSERT INTO lies.t VALUES 1")
    between("DELETE FROM lies.t WHERE id = 1")
    between("INSERT INTO lies.t VALUES 1")
    assert all("authorization" not in seen.headers for seen in meddler.seen)


@pytest.mark.rule("ISO-7")
@pytest.mark.parametrize("said", [{"rest.sigv4-enabled": "true"}, {"rest.auth.type": "sigv4"}])
def test_a_catalog_that_asks_for_signatures_gets_none_of_the_machines_keys(
    meddler: Meddler, between: Connected, said: dict[str, str]
) -> None:
    meddler.change = lambda method, path, body: {**body, "overrides": said} if path.endswith("/config") else body
    error = between.fails("SELECT id FROM lies.t")
    assert "signed with AWS keys" in str(error)
    assert error.hint is not None
    assert 'auth.type = "aws"' in error.hint
    assert all("authorization" not in seen.headers for seen in meddler.seen)


@pytest.mark.rule("ERR-1")
@pytest.mark.parametrize(
    ("status", "code"),
    [
        (401, ErrorCode.AUTHENTICATION_FAILED),
        (403, ErrorCode.TABLE_NOT_FOUND),
        (404, ErrorCode.TABLE_NOT_FOUND),
        (419, ErrorCode.AUTHENTICATION_FAILED),
        (429, ErrorCode.RESOURCE_EXHAUSTED),
        (500, ErrorCode.CATALOG_UNAVAILABLE),
        (503, ErrorCode.CATALOG_UNAVAILABLE),
    ],
)
def test_what_a_status_means_for_a_table(meddler: Meddler, between: Connected, status: int, code: ErrorCode) -> None:
    body = {"error": {"message": "Zwiebelfisch", "type": "SomeException", "code": status}}

    def answer(method: str, path: str) -> tuple[int, dict[str, str], bytes] | None:
        return (status, {}, json.dumps(body).encode()) if path.endswith("/tables/t") else None

    meddler.instead = answer
    error = between.fails("SELECT id FROM lies.t")
    assert error.code is code
    assert "Zwiebelfisch" not in f"{error} {error.hint}"
    assert between("SELECT 1") == [(1,)]


DENIED, HIDDEN, MISSING = (
    (403, {"message": "no", "type": "ForbiddenException", "code": 403}),
    (500, {"message": "'READ_ENTITY_VALUE' is not allowed for role 'bob'", "type": "RuntimeException", "code": 500}),
    (404, {"message": "no", "type": "NoSuchTableException", "code": 404}),
)


@pytest.mark.rule("ERR-5")
@pytest.mark.parametrize(
    "sql",
    ["SELECT id FROM lies.t", "DESCRIBE lies.t", 'SELECT * FROM lies."t$snapshots"', "INSERT INTO lies.t VALUES 5"],
)
def test_denied_hidden_and_missing_give_the_same_bytes_after_the_same_requests(
    meddler: Meddler, between: Connected, sql: str
) -> None:
    """Nothing is asked again because of a denial, whose answer would come seconds later."""
    between("SELECT id FROM lies.t")  # what is asked once is asked
    answers = []
    for status, error in (DENIED, HIDDEN, MISSING):
        content = json.dumps({"error": error}).encode()
        meddler.instead = lambda method, path, status=status, content=content: (  # type: ignore[misc]
            (status, {}, content) if "/tables/t" in path or "/views/t" in path else None
        )
        meddler.seen.clear()
        told = between.fails(sql)
        answers.append((str(told), told.hint, told.code, [(seen.method, seen.path) for seen in meddler.seen]))

    assert answers[0] == answers[1] == answers[2]


@pytest.mark.rule("ERR-5")
def test_a_fault_is_not_asked_again_as_it_may_be_a_denial(meddler: Meddler, between: Connected) -> None:
    between("SELECT id FROM lies.t")
    counts = {}
    for status in (500, 503):
        meddler.instead = lambda method, path, status=status: (  # type: ignore[misc]
            (status, {}, b"{}") if path.endswith("/tables/t") else None
        )
        meddler.seen.clear()
        between.fails("DESCRIBE lies.t")
        counts[status] = len([seen for seen in meddler.seen if "/tables/t" in seen.path])

    assert counts[503] > counts[500] == 1


@pytest.mark.rule("ISO-7")
def test_redirects_are_not_followed(meddler: Meddler, between: Connected, adapter: RestFixture) -> None:
    """They would carry the user's token to whomever the catalog names."""
    between("SELECT id FROM lies.t")
    other = Meddler(adapter.url)
    for status in (301, 302, 307, 308):
        meddler.instead = lambda method, path, status=status: (  # type: ignore[misc]
            (status, {"Location": other.url + path}, b"") if path.endswith("/tables/t") else None
        )
        between.fails("SELECT id FROM lies.t")
        between.fails("INSERT INTO lies.t VALUES 1")
    other.stop()
    assert other.seen == []


@pytest.mark.parametrize(
    "content", [b"<html>Zwiebelfisch</html>", b"", b"{", b"[]", b'{"metadata": {"format-version": 99}}', b"null"]
)
def test_whatever_is_said_of_a_table_is_an_error_of_ours(meddler: Meddler, between: Connected, content: bytes) -> None:
    meddler.instead = lambda method, path: (200, {}, content) if path.endswith("/tables/t") else None
    error = between.fails("SELECT id FROM lies.t")

    assert "Zwiebelfisch" not in f"{error} {error.hint}"
    assert between("SELECT 1") == [(1,)]
    between("CREATE TABLE IF NOT EXISTS healthy.default.t AS SELECT 1 AS id")
    assert between("SELECT id FROM healthy.default.t") == [(1,)]


@pytest.mark.parametrize("headers", [{}, {"Retry-After": "3600"}])
def test_silence_and_long_waits_are_bounded(meddler: Meddler, between: Connected, headers: dict[str, str]) -> None:
    release = threading.Event()

    def answer(method: str, path: str) -> tuple[int, dict[str, str], bytes] | None:
        if not path.endswith("/tables/t"):
            return None
        if not headers:
            release.wait(60)
        return 503, headers, b"{}"

    meddler.instead = answer
    began = time.monotonic()
    error = between.fails("SELECT id FROM lies.t")
    release.set()

    assert error.code is ErrorCode.CATALOG_UNAVAILABLE
    assert time.monotonic() - began < 30
    between("CREATE TABLE IF NOT EXISTS healthy.default.t AS SELECT 1 AS id")
    assert between("SELECT id FROM healthy.default.t") == [(1,)]


def test_a_denied_commit_is_a_denial_and_leaves_no_files(
    meddler: Meddler, between: Connected, adapter: RestFixture
) -> None:
    """Iceberg would take it for a commit of unknown state, and keep the files (testbed §14.5)."""
    error = {"message": "not authorized to update table", "type": "InternalServerError", "code": 500}
    meddler.instead = lambda method, path: (
        (500, {}, json.dumps({"error": error}).encode()) if method == "POST" and path.endswith("/tables/t") else None
    )
    files = sorted(adapter.warehouse.rglob("*.parquet"))
    refused = between.fails("INSERT INTO lies.t VALUES 5")

    assert refused.code is ErrorCode.ACCESS_DENIED
    assert sorted(adapter.warehouse.rglob("*.parquet")) == files
    assert between("SELECT id FROM lies.t") == [(1,)]


def test_a_commit_of_unknown_state_is_told_as_that(meddler: Meddler, between: Connected) -> None:
    meddler.instead = lambda method, path: (502, {}, b"{}") if method == "POST" and path.endswith("/tables/t") else None
    assert "did not say whether" in str(between.fails("INSERT INTO lies.t VALUES 5"))


def test_a_drop_that_only_looks_like_success_is_none(meddler: Meddler, between: Connected) -> None:
    """Some catalogs answer a forbidden DROP with 404, which reads as success (testbed §14.6)."""
    missing = {"error": {"message": "no", "type": "NoSuchTableException", "code": 404}}
    meddler.instead = lambda method, path: (404, {}, json.dumps(missing).encode()) if method == "DELETE" else None
    assert between.fails("DROP TABLE lies.t").code is ErrorCode.TABLE_NOT_FOUND
    assert between("SELECT id FROM lies.t") == [(1,)]


# SeaweedFS: each user's own token, policies of the catalog, credentials of each table.


@pytest.fixture(scope="module")
def weed(weed: SeaweedFS) -> SeaweedFS:
    weed.allow({"alice": ["s3tables:*"], "bob": BROWSE})
    return weed


@pytest.fixture(scope="module")
def personal(engine: SparkEngine, weed: SeaweedFS, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sqe]:
    text = f"""
    [catalogs.lake]
    catalog_url = "{weed.catalog_url}"
    warehouse = "s3://warehouse"
    require_vended_credentials = true
    [catalogs.lake.storage]
    s3_endpoint = "{weed.s3_url}"
    s3_region = "{REGION}"
    s3_path_style = true
    """
    sqe = composed(engine, tmp_path_factory.mktemp("personal"), text)
    yield sqe
    sqe.release()


@pytest.fixture
def person(personal: Sqe, issuer: Issuer) -> Iterator[Callable[[str], Connected]]:

    def connect(username: str) -> Connected:
        identity = make_identity(username, token=issuer.token(username))
        return Connected(personal, identity, "lake")

    yield from each_ended(connect)


@pytest.fixture
def hr(person: Callable[[str], Connected], weed: SeaweedFS) -> Connected:
    """Alice, with `hr.emp`, which bob may read, and `hr.secret`, which he may not."""
    alice = person("alice")
    if ("hr",) not in alice("SHOW SCHEMAS"):
        alice("CREATE SCHEMA hr")
        alice("CREATE TABLE hr.emp AS SELECT 1 AS id, 'ann' AS name")
        alice("CREATE TABLE hr.secret AS SELECT 42 AS id")
        weed.allow_table("hr", "emp", {"bob": READ})
    return alice


@pytest.mark.rule("AUTHN-3", "ISO-7")
def test_each_user_has_the_rights_that_the_catalog_gives(hr: Connected, person: Callable[[str], Connected]) -> None:
    bob = person("bob")
    assert bob("SELECT id, name FROM hr.emp") == [(1, "ann")]
    assert hr("SELECT id FROM hr.secret") == [(42,)]

    denied, missing = bob.fails("SELECT * FROM hr.secret"), bob.fails("SELECT * FROM hr.nil")
    assert denied.code is missing.code is ErrorCode.TABLE_NOT_FOUND
    assert str(denied).replace("secret", "…") == str(missing).replace("nil", "…")
    assert denied.hint == missing.hint


def test_denied_changes_change_nothing(hr: Connected, person: Callable[[str], Connected]) -> None:
    bob = person("bob")
    before = hr('SELECT count(*) FROM hr."emp$snapshots"')
    for sql in (
        "INSERT INTO hr.emp VALUES (2, 'eve')",
        "DELETE FROM hr.emp",
        "UPDATE hr.emp SET name = 'eve'",
        "ALTER TABLE hr.emp ADD COLUMN x INTEGER",
        "DROP TABLE hr.emp",
        "CREATE TABLE hr.mine AS SELECT 1 AS id",
        "CREATE SCHEMA mine",
    ):
        error = bob.fails(sql)
        assert error.code in (ErrorCode.ACCESS_DENIED, ErrorCode.TABLE_NOT_FOUND), (sql, error)

    assert hr("SELECT id, name FROM hr.emp") == [(1, "ann")]
    assert hr('SELECT count(*) FROM hr."emp$snapshots"') == before


def test_two_users_at_once_never_get_each_others(hr: Connected, person: Callable[[str], Connected]) -> None:
    bob, faults = person("bob"), []

    def as_alice() -> None:
        for _ in range(10):
            if hr("SELECT id FROM hr.secret") != [(42,)]:
                faults.append("alice")

    def as_bob() -> None:
        for _ in range(10):
            try:
                bob("SELECT id FROM hr.secret")
            except SqeError:
                continue
            faults.append("bob")

    threads = [threading.Thread(target=each) for each in (as_alice, as_bob)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []


def test_a_token_that_nobody_signed_reads_nothing(personal: Sqe, issuer: Issuer) -> None:
    forged = issuer.token("alice")[:-8] + "AAAAAAAA"
    identity = replace(make_identity("alice"), access_token=Secret(forged))
    with closing(Connected(personal, identity, "lake")) as session:
        for sql in ("SELECT * FROM hr.emp", "SHOW SCHEMAS"):
            error = session.fails(sql)
            assert forged not in f"{error!r} {error.hint}"
