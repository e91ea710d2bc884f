"""The contract of catalogs behind a real engine: what users do with them. Starts a JVM."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

import pytest

from sqe_core.bootstrap import EmbeddedSqe, open_embedded
from sqe_core.catalog.registry import Mount
from sqe_core.session.session import Session
from sqe_core.spi.catalog import CatalogBackend, CatalogContext
from sqe_core.spi.errors import ErrorCode, SqeError
from sqe_core.spi.factory import PluginContext
from sqe_core.spi.identity import Identity
from sqe_core.testing.catalog import ALICE, BOB
from sqe_core.testing.contract import ProductContract

Run = Callable[..., list[tuple[Any, ...]]]

_MISSING = {ErrorCode.SCHEMA_NOT_FOUND, ErrorCode.TABLE_NOT_FOUND}


@pytest.fixture(scope="session")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedSqe]:
    """An SQE without policies of its own, in which everybody may do everything; it starts an engine."""
    opened = open_embedded(tmp_path_factory.mktemp("embedded"))
    yield opened
    opened.close()


@contextmanager
def mounted(embedded: EmbeddedSqe, backend: CatalogBackend) -> Iterator[Run]:
    """Mount a catalog under a new name, and run statements on it: `run(sql, who=ALICE, session="first")`.

    Args:
        embedded: where.
        backend: the catalog.
    """
    sqe, mount = embedded.sqe, Mount(name=f"c_{secrets.token_hex(6)}", backend=backend)
    sqe.catalogs.add(mount)
    sessions: dict[tuple[str, str], Session] = {}

    def run(sql: str, *, who: Identity = ALICE, session: str = "first") -> list[tuple[Any, ...]]:
        key = (who.username, session)
        if key not in sessions:
            sessions[key] = sqe.open_session(who, catalog=mount.name, protocol="test")
        with sqe.service.execute(sessions[key], sql) as result:
            return [tuple(row.values()) for batch in result for row in batch.to_pylist()]

    try:
        yield run
    finally:
        for each in sessions.values():
            sqe.service.close_session(each)
        sqe.catalogs.remove(mount)


class CatalogEngineContract(ProductContract):
    """What every catalog promises to those who query it.

    Fixtures to supply: `factory`, `config`; without the capability `writes` also `readable`, the name of a table that
    is there, as `schema.table`; with `denies` also `denied`, the name of one that exists and that `BOB` may not read;
    and `embedded`, an SQE to mount it in, which your `conftest.py` imports from here, or makes of `open_embedded` with
    what else its engine needs.

    Capabilities: `writes`, `views`, `denies` (the catalog itself decides who sees what).
    """

    CONTEXT: ClassVar[type[PluginContext]] = CatalogContext
    KNOWN_CAPABILITIES: ClassVar[frozenset[str]] = frozenset({"writes", "views", "denies"})

    @pytest.fixture
    def readable(self) -> str:
        """A table that is there."""
        raise NotImplementedError("supply the fixture 'readable', or declare 'writes'")

    @pytest.fixture
    def denied(self) -> str:
        """A table that BOB may not read."""
        raise NotImplementedError("supply the fixture 'denied', or do not declare 'denies'")

    @pytest.fixture
    def backend(self, product: CatalogBackend) -> CatalogBackend:
        """The catalog under test."""
        return product

    @pytest.fixture
    def run(self, embedded: EmbeddedSqe, backend: CatalogBackend) -> Iterator[Run]:
        """Runs a statement on the mounted catalog, in one of several sessions, and returns the rows."""
        with mounted(embedded, backend) as run:
            yield run

    @pytest.fixture
    def schema(self, run: Run) -> Iterator[str]:
        """A schema that is empty at first; what is in it goes with it."""
        self.need("writes")
        schema = f"s_{secrets.token_hex(6)}"
        run(f"CREATE SCHEMA {schema}")
        yield schema
        run(f"DROP SCHEMA IF EXISTS {schema} CASCADE")

    def test_reads(self, run: Run, request: pytest.FixtureRequest) -> None:
        """It is mounted, lists its schemas, and a table of it can be read."""
        if self.can("writes"):
            assert run("SHOW SCHEMAS")
            return
        readable: str = request.getfixturevalue("readable")
        schema, _, table = readable.rpartition(".")
        assert (schema,) in run("SHOW SCHEMAS")
        assert table in {row[0] for row in run(f"SHOW TABLES FROM {schema}")}
        assert run(f"SELECT count(*) AS n FROM {readable}")[0][0] >= 0

    def test_writes(self, run: Run, schema: str) -> None:
        """What was written is read, by the one who wrote it."""
        run(f"CREATE TABLE {schema}.t (id bigint, name varchar, at timestamp)")
        run(f"INSERT INTO {schema}.t VALUES (1, 'zoë', TIMESTAMP '2026-01-01 10:00:00'), (2, NULL, NULL)")
        assert run(f"SELECT id, name FROM {schema}.t ORDER BY id") == [(1, "zoë"), (2, None)]
        run(f"ALTER TABLE {schema}.t ADD COLUMN more int")
        run(f"UPDATE {schema}.t SET more = 7 WHERE id = 2")
        assert run(f"SELECT more FROM {schema}.t ORDER BY id") == [(None,), (7,)]

    def test_others_see_it_at_once(self, run: Run, schema: str) -> None:
        """A session that read a table reads what another one committed since."""
        run(f"CREATE TABLE {schema}.t AS SELECT 1 AS id")
        assert run(f"SELECT count(*) AS n FROM {schema}.t", session="second") == [(1,)]
        run(f"INSERT INTO {schema}.t VALUES (2)")
        assert run(f"SELECT count(*) AS n FROM {schema}.t", session="second") == [(2,)]

    def test_names_come_and_go(self, run: Run, schema: str) -> None:
        """Listings show what is there, and nothing that was."""
        assert (schema,) in run("SHOW SCHEMAS", session="second")
        assert run(f"SHOW TABLES FROM {schema}", session="second") == []
        run(f"CREATE TABLE {schema}.t (id int)")
        assert [row[0] for row in run(f"SHOW TABLES FROM {schema}", session="second")] == ["t"]
        run(f"DROP TABLE {schema}.t")
        assert run(f"SHOW TABLES FROM {schema}", session="second") == []
        assert self._code(run, f"SELECT id FROM {schema}.t") in _MISSING
        run(f"DROP SCHEMA {schema}")
        assert (schema,) not in run("SHOW SCHEMAS", session="second")

    def test_missing_schema(self, run: Run) -> None:
        """A schema that is not there is told as such: it is not empty, and nothing failed."""
        assert self._code(run, "SHOW TABLES FROM no_such_schema_5d1f") is ErrorCode.SCHEMA_NOT_FOUND
        assert self._code(run, "SELECT 1 AS one FROM no_such_schema_5d1f.t") in _MISSING
        if self.can("writes"):
            assert self._code(run, "CREATE TABLE no_such_schema_5d1f.t (id int)") is ErrorCode.SCHEMA_NOT_FOUND

    def test_missing_table(self, run: Run, request: pytest.FixtureRequest) -> None:
        """So is a table."""
        schema: str = request.getfixturevalue("schema" if self.can("writes") else "readable").partition(".")[0]
        assert self._code(run, f"SELECT 1 AS one FROM {schema}.no_such_table_5d1f") is ErrorCode.TABLE_NOT_FOUND
        if self.can("writes"):
            assert self._code(run, f"DROP TABLE {schema}.no_such_table_5d1f") is ErrorCode.TABLE_NOT_FOUND

    def test_taken_name(self, run: Run, schema: str) -> None:
        """A table is not made twice, and the first one stays as it was."""
        run(f"CREATE TABLE {schema}.t AS SELECT 1 AS id")
        assert self._code(run, f"CREATE TABLE {schema}.t (other int)") is ErrorCode.DUPLICATE_TABLE
        run(f"CREATE TABLE IF NOT EXISTS {schema}.t (other int)")
        assert run(f"SELECT id FROM {schema}.t") == [(1,)]

    def test_views(self, run: Run, request: pytest.FixtureRequest) -> None:
        """Views are kept; where the catalog has none, they are refused."""
        if not self.can("writes"):
            pytest.skip("writes is not declared")
        schema: str = request.getfixturevalue("schema")
        run(f"CREATE TABLE {schema}.t AS SELECT 1 AS id")
        if not self.can("views"):
            assert self._code(run, f"CREATE VIEW {schema}.v AS SELECT id FROM {schema}.t") is ErrorCode.NOT_SUPPORTED
            return
        run(f"CREATE VIEW {schema}.v AS SELECT id FROM {schema}.t")
        assert run(f"SELECT id FROM {schema}.v", session="second") == [(1,)]
        run(f"DROP VIEW {schema}.v")

    def test_read_only_refuses_writes(self, run: Run, request: pytest.FixtureRequest) -> None:
        """A catalog that takes no writes refuses each, and keeps what it has."""
        if self.can("writes"):
            pytest.skip("writes is declared")
        readable: str = request.getfixturevalue("readable")
        before = run(f"SELECT count(*) AS n FROM {readable}")
        schema = readable.rpartition(".")[0]
        for sql in (
            f"CREATE TABLE {schema}.new_5d1f (id int)",
            f"DELETE FROM {readable}",
            f"DROP TABLE {readable}",
            "CREATE SCHEMA new_5d1f",
        ):
            assert self._code(run, sql) in {ErrorCode.NOT_SUPPORTED, ErrorCode.ACCESS_DENIED}, sql
        assert run(f"SELECT count(*) AS n FROM {readable}") == before

    def test_denied_is_missing(self, run: Run, request: pytest.FixtureRequest) -> None:
        """What the catalog shows to somebody else only is, for BOB, not there: code and text are those of no table."""
        self.need("denies")
        denied: str = request.getfixturevalue("denied")
        assert run(f"SELECT count(*) AS n FROM {denied}")
        schema, _, table = denied.rpartition(".")
        assert self._refusal(run, denied, BOB) == self._refusal(run, f"{schema}.no_such_{table}", BOB)

    def test_listings_agree(self, run: Run, backend: CatalogBackend, schema: str) -> None:
        """What is listed before the engine is up is what the engine lists."""
        run(f"CREATE TABLE {schema}.t (id int)")
        quick = backend.quick_metadata(ALICE)
        if quick is not None:
            assert (schema,) in quick.list_namespaces()
            assert list(quick.list_tables((schema,))) == ["t"]

    @staticmethod
    def _code(run: Run, sql: str) -> ErrorCode:
        with pytest.raises(SqeError) as caught:
            run(sql)
        return caught.value.code

    @staticmethod
    def _refusal(run: Run, name: str, who: Identity) -> tuple[ErrorCode, str, str | None]:
        with pytest.raises(SqeError) as caught:
            run(f"SELECT * FROM {name}", who=who)
        error = caught.value
        table = name.rpartition(".")[2]
        return error.code, error.message.replace(table, "…"), (error.hint or "").replace(table, "…")
