"""Read restrictions of a catalog on everything that reads: the catalog is a stand-in, Spark is real."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from governed import Governed, WrittenPolicies

from sqe_core.bootstrap import build
from sqe_core.catalog.backends import SqliteBackend
from sqe_core.catalog.registry import Mount
from sqe_core.engine.spark.engine import SparkEngine
from sqe_core.policy.masks import MaskWriter
from sqe_core.query.run.admission import QueryLimits
from sqe_core.spi.catalog import CatalogBackend, CatalogMetadata, ReadRestrictions, SupportsReadRestrictions
from sqe_core.spi.errors import ErrorKind, SqeError
from sqe_core.spi.identity import Identity, Secret
from sqe_core.testing import make_identity

ALICE, BOB = make_identity("alice", token="alice's"), make_identity("bob", token="bob's")
CANARY = "CANARY-7c1f"

ROWS = (
    "(1, 'EU', '4111-1111-1111-4444', 'ann@x.org', 10, 7000000000, DATE '2024-07-15', 1.5E0)",
    "(2, 'EU', 'abc', NULL, -2000000000, -5, NULL, CAST('NaN' AS double))",
    f"(3, 'US', '{CANARY}', 'böb 😀1@x', NULL, NULL, DATE '1999-12-31', 2.5E0)",
    f"(4, NULL, '{CANARY}', 'eve', 5, 5, DATE '2024-01-01', NULL)",
)
FIELDS = {name: place + 1 for place, name in enumerate(("id", "region", "card", "mail", "n", "big", "born", "score"))}


@dataclass(eq=False)
class RestrictingBackend(CatalogBackend, SupportsReadRestrictions):
    """A catalog in a file that also restricts, as a REST catalog would."""

    inner: SqliteBackend
    documents: dict[tuple[str, str], Mapping[str, Any]] = field(default_factory=dict)
    uuids: dict[str, str] = field(default_factory=dict)
    renamed: frozenset[int] = frozenset()

    def spark_properties(self, identity: Identity) -> Mapping[str, str]:
        return self.inner.spark_properties(identity)

    def quick_metadata(self, identity: Identity) -> CatalogMetadata | None:
        return self.inner.quick_metadata(identity)

    def read_restrictions(self, namespace: tuple[str, ...], name: str, identity: Identity) -> ReadRestrictions | None:
        assert identity.access_token is not None
        assert identity.access_token.reveal() == f"{identity.username}'s"
        document = self.documents.get((identity.username, name))
        if document is None:
            return None
        return ReadRestrictions(table_uuid=self.uuids[name], document=document, renamed=self.renamed)


@dataclass
class Lake:
    """Two users of one catalog, with tokens of their own."""

    backend: RestrictingBackend
    users: dict[str, Governed]

    def restrict(self, user: str, table: str, *actions: tuple[str, str], where: Any = None, **fields: int) -> None:
        ids = {**FIELDS, **fields}
        document: dict[str, Any] = {
            "required-column-projections": [{"action": action, "field-id": ids[name]} for name, action in actions]
        }
        if where is not None:
            document["required-row-filter"] = where
        self.backend.documents[user, table] = document
        for each in self.users.values():
            each.sqe.service._parts.authorizer.flush()

    def alice(self, sql: str) -> list[list[Any]]:
        return self.users["alice"].run(sql)

    def bob(self, sql: str) -> list[list[Any]]:
        return self.users["bob"].run(sql)

    def refusal(self, sql: str, user: str = "alice") -> SqeError:
        return self.users[user].refusal(sql)


@pytest.fixture(scope="module")
def backend(engine: SparkEngine, tmp_path_factory: pytest.TempPathFactory) -> RestrictingBackend:
    """The catalog with its tables."""
    folder: Path = tmp_path_factory.mktemp("restricted")
    backend = RestrictingBackend(SqliteBackend.at(folder, "sqe.db"))
    maker = _open(engine, backend, BOB)
    maker.run(
        "CREATE TABLE t (id integer, region varchar, card varchar, mail varchar, n integer, big bigint, born date,"
        " score double)"
    )
    maker.run(f"INSERT INTO t VALUES {ROWS[0]}")
    maker.run(f"INSERT INTO t VALUES {', '.join(ROWS[1:])}")
    maker.run("CREATE TABLE o (id integer, note varchar)")
    maker.run("INSERT INTO o VALUES (1, 'one'), (3, 'three'), (4, 'four')")
    maker.run("CREATE VIEW v AS SELECT id, card FROM t")
    session = maker.session
    mount = session.catalogs.find("lake")
    assert mount is not None
    for name in ("t", "o"):
        table = session.metadata(mount).load_table(("default",), name)
        backend.uuids[name] = table.uuid
        if name == "t":
            assert {column.name: column.field_id for column in table.columns} == FIELDS
    maker.sqe.service.close_session(session)
    return backend


def _open(engine: SparkEngine, backend: RestrictingBackend, who: Identity) -> Governed:
    policies = WrittenPolicies()
    sqe = build(
        engine=engine,
        mounts=[Mount(name="lake", backend=backend)],
        enforcers=[policies],
        masks=MaskWriter(key=Secret("mask key")),
        limits=QueryLimits(timeout_secs=120, max_result_rows=0, max_sql_bytes=1 << 20),
    )
    canaries = frozenset({CANARY}) if who is ALICE else frozenset[str]()
    return Governed(sqe, sqe.open_session(who, catalog="lake", protocol="test"), policies, canaries)


@pytest.fixture
def lake(engine: SparkEngine, backend: RestrictingBackend) -> Iterator[Lake]:
    backend.documents.clear()
    backend.renamed = frozenset()
    lake = Lake(backend, {who.username: _open(engine, backend, who) for who in (ALICE, BOB)})
    yield lake
    for user in lake.users.values():
        user.sqe.service.close_session(user.session)


EU = {"type": "eq", "left": {"type": "reference", "id": 2}, "right": {"type": "literal", "value": "EU"}}


@pytest.mark.rule("POL-8", "ENF-16")
def test_one_users_filter_holds_however_the_table_is_read(lake: Lake) -> None:
    lake.restrict("alice", "t", where=EU)
    assert lake.alice("SELECT id FROM t ORDER BY id") == [[1], [2]]
    assert lake.bob("SELECT count(*) FROM t") == [[4]]
    assert lake.alice("SELECT count(*), max(id) FROM t") == [[2, 2]]
    assert lake.alice("SELECT id FROM t WHERE 1 / (id - 3) < 99 AND region <> 'x' ORDER BY id") == [[1], [2]]
    assert lake.alice("SELECT o.id FROM o LEFT JOIN t USING (id) WHERE t.id IS NULL ORDER BY o.id") == [[3], [4]]
    assert lake.alice("WITH c AS (SELECT * FROM t) SELECT (SELECT max(id) FROM c), count(*) FROM c") == [[2, 2]]
    assert lake.alice("SELECT id FROM v ORDER BY id") == [[1], [2]]
    assert lake.bob("SELECT id FROM v ORDER BY id") == [[1], [2], [3], [4]]
    first = lake.bob('SELECT snapshot_id FROM "t$snapshots" ORDER BY committed_at')[0][0]
    assert lake.alice(f"SELECT id FROM t FOR VERSION AS OF {first}") == [[1]]
    lake.refusal('SELECT * FROM "t$files"')
    assert CANARY not in str(lake.alice("EXPLAIN SELECT card FROM t WHERE id > 1"))


@pytest.mark.rule("POL-8", "ENF-17")
def test_rows_that_a_catalog_withholds_raise_no_error(lake: Lake) -> None:
    lake.restrict("alice", "t", where=EU)
    assert lake.alice("SELECT count(*) FROM t WHERE CAST(id AS integer) / (3 - id) > -9 AND length(card) > 0") == [[2]]
    lake.restrict(
        "alice",
        "t",
        where={"type": "not", "child": {"type": "eq", "left": {"type": "reference", "id": 2}, "right": "US"}},
    )
    # Region is NULL in one row: what is not known keeps no row.
    assert lake.alice("SELECT id FROM t WHERE 1 / (4 - id) > -9 ORDER BY id") == [[1], [2]]
    lake.restrict("alice", "t", where=False)
    assert lake.alice("SELECT count(*) FROM t") == [[0]]
    lake.restrict("alice", "t", where={"type": "is-nan", "child": {"type": "reference", "id": 8}})
    assert lake.alice("SELECT id FROM t") == [[2]]
    lake.restrict("alice", "t", where={"type": "starts-with", "term": "card", "value": "411"})
    assert lake.alice("SELECT id FROM t") == [[1]]


def _hashed(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


@pytest.mark.rule("POL-12")
def test_actions_are_those_of_the_specification_to_the_byte(lake: Lake) -> None:
    lake.restrict(
        "alice", "t", ("card", "show-last-4"), ("mail", "mask-alphanum"), ("born", "truncate-to-month"), where=EU
    )
    born = "CAST(born AS varchar)"
    assert lake.alice(f"SELECT card, mail, {born} FROM t ORDER BY id") == [
        ["nnnn-nnnn-nnnn-4444", "xxx@x.xxx", "2024-07-01"],
        ["abc", None, None],
    ]
    lake.restrict("alice", "t", ("card", "show-first-4"), ("mail", "show-last-4"), ("born", "truncate-to-year"))
    assert lake.alice(f"SELECT card, mail, {born} FROM t WHERE id IN (1, 3) ORDER BY id") == [
        ["4111-nnnn-nnnn-nnnn", "xxx@x.org", "2024-01-01"],
        ["CANAxx-nxnx"[:4] + "xx-nxnx", "xxxxxn@x"[:4] + "😀1@x", "1999-01-01"],
    ]
    lake.restrict(
        "alice", "t", *((name, "sha-256-global") for name in ("card", "n", "big")), ("mail", "replace-with-null")
    )
    got = lake.alice("SELECT card, n, big, mail FROM t ORDER BY id")
    for (card, n, big, mail), row in zip(
        got,
        [("4111-1111-1111-4444", 10, 7000000000), ("abc", -2000000000, -5), (CANARY, None, None), (CANARY, 5, 5)],
        strict=True,
    ):
        assert card == _hashed(row[0].encode()).hex()
        assert mail is None
        assert n == (None if row[1] is None else struct.unpack("<i", _hashed(struct.pack("<i", row[1]))[:4])[0])
        assert big == (None if row[2] is None else struct.unpack("<q", _hashed(struct.pack("<q", row[2]))[:8])[0])
    lake.restrict(
        "alice", "t", *((name, "mask-to-fixed-value") for name in ("card", "n", "big", "born", "score")), where=EU
    )
    assert lake.alice(f"SELECT DISTINCT card, n, big, {born}, score FROM t") == [["XXXXXXXX", 0, 0, "1970-01-01", 0.0]]


@pytest.mark.rule("POL-12")
def test_a_local_hash_joins_within_a_statement_only(lake: Lake) -> None:
    lake.restrict("alice", "t", ("card", "sha-256-query-local"))
    both = "SELECT count(*), min(a.card) FROM t a JOIN v b ON a.card = b.card WHERE a.id = 1"
    (first,), (second,) = lake.alice(both), lake.alice(both)
    assert first[0] == second[0] == 1
    assert first[1] != second[1]
    assert first[1] != _hashed(b"4111-1111-1111-4444").hex()


@pytest.mark.rule("POL-8")
def test_masked_values_are_all_that_a_statement_meets(lake: Lake) -> None:
    lake.restrict("alice", "t", ("card", "mask-to-fixed-value"))
    assert lake.alice(f"SELECT count(*) FROM t WHERE card = '{CANARY}'") == [[0]]
    assert lake.alice("SELECT card, count(*) FROM t GROUP BY card") == [["XXXXXXXX", 4]]
    lake.alice("CREATE TABLE copied AS SELECT card FROM t")
    assert lake.bob("SELECT DISTINCT card FROM copied") == [["XXXXXXXX"]]
    lake.bob("DROP TABLE copied")


@pytest.mark.rule("DML-2", "DML-4")
def test_who_reads_a_part_changes_no_more_than_it(lake: Lake) -> None:
    lake.restrict("alice", "o", where={"type": "lt", "term": "id", "value": 4}, id=1)
    for sql in (
        "DROP TABLE o",
        "TRUNCATE TABLE o",
        "ALTER TABLE o ADD COLUMN x integer",
        "INSERT OVERWRITE o SELECT 1, 'x'",
        "CREATE OR REPLACE TABLE o AS SELECT 1 AS id",
    ):
        lake.refusal(sql)
    lake.refusal("INSERT INTO o VALUES (9, 'not mine')")
    lake.restrict("alice", "o", ("note", "replace-with-null"), note=2)
    for sql in (
        "DELETE FROM o WHERE note = 'one'",
        "UPDATE o SET id = 1 WHERE note = 'one'",
        "INSERT INTO o VALUES (9, 'x')",
    ):
        lake.refusal(sql)
    assert lake.bob("SELECT id, note FROM o ORDER BY id") == [[1, "one"], [3, "three"], [4, "four"]]


@pytest.mark.rule("POL-6")
def test_a_column_that_was_renamed_keeps_old_versions_closed(lake: Lake) -> None:
    first = lake.bob('SELECT snapshot_id FROM "t$snapshots" ORDER BY committed_at')[0][0]
    lake.restrict("alice", "t", ("card", "replace-with-null"))
    old = f"SELECT card FROM t FOR VERSION AS OF {first}"
    assert lake.alice(old) == [[None]]
    lake.backend.renamed = frozenset({FIELDS["card"]})
    lake.restrict("alice", "t", ("card", "replace-with-null"))
    lake.refusal(old)
    assert lake.alice("SELECT DISTINCT card FROM t") == [[None]]


@pytest.mark.rule("POL-2", "POL-4")
@pytest.mark.parametrize(
    "document",
    [
        {"required-row-filter": {"type": "new-operator", "left": 1}},
        {"required-column-projections": [{"action": "new-action", "field-id": 3}]},
        {"required-column-projections": [{"action": "mask-alphanum", "field-id": 77}]},
        {"something-new": True},
    ],
)
def test_what_is_not_understood_is_not_read(lake: Lake, document: Mapping[str, Any]) -> None:
    lake.backend.documents["alice", "t"] = document
    for sql in (
        "SELECT 1 FROM t",
        "SELECT id FROM v",
        "CREATE TABLE c2 AS SELECT id FROM t",
        "EXPLAIN SELECT * FROM t",
    ):
        error = lake.refusal(sql)
        assert error.kind is ErrorKind.EXTERNAL or "View" in error.message
        assert "new" not in error.message
    assert lake.bob("SELECT count(*) FROM t") == [[4]]


@pytest.mark.rule("META-2")
def test_users_are_told_how_much_is_kept_from_them(lake: Lake) -> None:
    lake.restrict("alice", "t", ("card", "show-last-4"), ("mail", "replace-with-null"), where=EU)
    assert lake.alice("SHOW EFFECTIVE POLICY ON t") == [
        ["row_filter", None, "1", None],
        ["column_mask", "card", "show-last-4", None],
        ["column_mask", "mail", "null", None],
    ]
    (row,) = lake.alice("EXPLAIN ACCESS SELECT * FROM t")
    assert row[3:5] == [1, "card: show-last-4, mail: null"]
    # The text of a view is for those who read all that it reads.
    assert lake.alice("SELECT view_definition FROM information_schema.views WHERE table_name = 'v'") == [[None]]
    assert "SELECT" in lake.bob("SELECT view_definition FROM information_schema.views WHERE table_name = 'v'")[0][0]
