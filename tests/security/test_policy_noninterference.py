"""What is hidden changes nothing that a governed user observes, timing aside (TEST-4), whoever else asks (TEST-8)."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import pytest
from governed import Governed, WrittenPolicies, allow

from sqe_core.bootstrap import EMBEDDED_CATALOG, EmbeddedSqe, Sqe, build, open_embedded
from sqe_core.engine.port import Progress
from sqe_core.engine.spark.engine import SparkEngine
from sqe_core.policy.cache import DecisionCache
from sqe_core.policy.masks import MaskWriter
from sqe_core.query.run.admission import QueryLimits
from sqe_core.session.session import Session
from sqe_core.spi.errors import SqeError
from sqe_core.spi.identity import Identity, Secret
from sqe_core.spi.names import ObjectName
from sqe_core.spi.policy import (
    ConstantMask,
    Decision,
    NullMask,
    PartialMask,
    PolicyEnforcer,
    PolicyRequest,
    PolicyResponse,
    RangeMask,
)

_LIMITS = QueryLimits(timeout_secs=60, max_result_rows=0, max_sql_bytes=1 << 20)

# id, dept, name, pay (masked: null), phone (masked: constant), age (masked: range), secret (hidden), code
_SEEN = (
    "(1, 'eng', 'Ann', {0}, '{1}', {2}1, {3}, '12')",
    "(2, 'eng', 'Bo', {0}, '{1}', {2}2, {3}, 'x')",
    "(3, 'eng', NULL, NULL, '{1}', {2}3, NULL, '0')",
    "(4, 'eng', 'Cy', {0}, '{1}', {2}4, {3}, NULL)",
)
# The same rows below the same masks, over other values.
_VALUES = (("100", "canary 1", "3", "7"), ("424242", "canary 2", "3", "9"))
_KEPT = (
    [],
    [
        "(5, 'hr', 'canary', 424242, 'x', 90, 1, 'canary')",
        "(6, NULL, NULL, NULL, NULL, NULL, NULL, NULL), (-7, 'hr', 'canary', 1, 'y', -1, 0, '7')",
        "(8, 'ops', 'canary', 5, 'z', 0, 0, '2147483648'), (1, 'hr', 'Ann', 0, '', 31, 7, '12')",
        ", ".join(f"({i}, 'hr', 'canary {i}', {i}, 'p', {i}, {i}, '{i}')" for i in range(100, 400)),
    ],
)
_COLUMNS = (
    "id integer, dept varchar, name varchar, pay integer, phone varchar, age integer, secret integer, code varchar"
)

STATEMENTS = (
    "SELECT * FROM {t}",
    "SELECT * FROM {t} ORDER BY id",
    "SELECT * FROM {t} LIMIT 0",
    "SELECT id FROM {t} ORDER BY id LIMIT 2",
    "SELECT id FROM {t} ORDER BY id DESC OFFSET 1 LIMIT 9",
    "SELECT count(*) FROM {t}",
    "SELECT count(*), count(pay), count(DISTINCT phone), min(id), max(id), min(name), max(age), sum(age) FROM {t}",
    "SELECT approx_distinct(id), approx_percentile(id, 0.5) FROM {t}",
    "SELECT dept, count(*) FROM {t} GROUP BY dept",
    "SELECT phone, age, count(*) FROM {t} GROUP BY GROUPING SETS ((phone), (age), ())",
    "SELECT id FROM {t} WHERE name = 'canary'",
    "SELECT id FROM {t} WHERE pay = 424242 OR phone LIKE 'canary%'",
    "SELECT id FROM {t} WHERE id > 4",
    "SELECT id FROM {t} WHERE id IN (5, 6, -7, 8, 100)",
    "SELECT id, row_number() OVER (ORDER BY id) FROM {t}",
    "SELECT id, percent_rank() OVER (ORDER BY age), sum(id) OVER () FROM {t}",
    "SELECT a.id, b.id FROM {t} a JOIN {t} b ON a.age <> b.age",
    "SELECT a.id, b.id FROM {t} a FULL JOIN {t} b ON a.id = b.id + 1",
    "SELECT id FROM {t} WHERE id NOT IN (SELECT id FROM {t} WHERE name IS NULL)",
    "SELECT (SELECT max(id) FROM {t})",
    "SELECT (SELECT id FROM {t})",
    "SELECT (SELECT id FROM {t} WHERE id > 4)",
    "SELECT EXISTS (SELECT 1 FROM {t} WHERE id > 4)",
    "SELECT id FROM {t} EXCEPT SELECT 1",
    "SELECT id FROM {t} TABLESAMPLE BERNOULLI (100)",
    "SELECT id FROM {t} FOR TIMESTAMP AS OF TIMESTAMP '2999-01-01 00:00:00'",
    "SELECT id FROM {t} FOR TIMESTAMP AS OF TIMESTAMP '1999-01-01 00:00:00'",
    "SELECT id FROM {t} FOR VERSION AS OF 12345",
    "SELECT id FROM {t} FOR VERSION AS OF 'main'",
    "SELECT id FROM {t} FOR VERSION AS OF 'nowhere'",
    # Errors of values, of names, of types.
    "SELECT CAST(code AS integer) FROM {t}",
    "SELECT id FROM {t} WHERE CAST(code AS integer) > 1000000",
    "SELECT 10 / (id - 2) FROM {t}",
    "SELECT id + 2147483646 FROM {t}",
    "SELECT id FROM {t} WHERE 10 / (id - 5) > 100",
    "SELECT ARRAY[1, 2][id] FROM {t}",
    "SELECT CAST(phone AS integer) FROM {t}",
    "SELECT CAST(name AS date) FROM {t}",
    "SELECT CAST(id * 100 AS tinyint) FROM {t}",
    "SELECT json_parse(code) FROM {t}",
    "SELECT date_parse(name, '%Y') FROM {t}",
    "SELECT sum(id * 2000000000) FROM {t}",
    "SELECT secret FROM {t}",
    "SELECT id FROM {t} WHERE secret = 7",
    "SELECT id FROM {t} ORDER BY secret",
    "SELECT count(secret) FROM {t}",
    "SELECT secrt FROM {t}",
    "SELECT nmae FROM {t}",
    "SELECT {t}.secret FROM {t}",
    "SELECT a.secret FROM {t} a JOIN {t} b USING (secret)",
    "SELECT _file, _pos FROM {t}",
    "SELECT id FROM {t} WHERE dept",
    "SELECT id FROM {t}s",
    "SELECT name + 1 FROM {t}",
    # What is told of the table.
    "DESCRIBE {t}",
    "SHOW COLUMNS FROM {t}",
    "SHOW CREATE TABLE {t}",
    "SHOW STATS FOR {t}",
    "SHOW TABLES",
    "SHOW PARTITIONS FROM {t}",
    "SELECT * FROM information_schema.columns WHERE table_name = '{t}'",
    "SELECT * FROM information_schema.tables WHERE table_name = '{t}'",
    "DESCRIBE SELECT * FROM {t}",
    "EXPLAIN SELECT * FROM {t} WHERE id > 2 AND pay = 1",
    "EXPLAIN SELECT name, count(*) FROM {t} GROUP BY 1",
    "EXPLAIN SELECT a.id FROM {t} a JOIN {t} b ON a.id = b.id",
    "EXPLAIN SELECT secret FROM {t}",
    "EXPLAIN VERBOSE SELECT id FROM {t}",
    "EXPLAIN ANALYZE SELECT id FROM {t}",
    "SHOW GRANTS ON {t}",
    'SELECT * FROM "{t}$files"',
    'SELECT count(*) FROM "{t}$snapshots"',
    'SELECT * FROM "{t}$partitions"',
    'SELECT * FROM "{t}$manifests"',
    'SELECT * FROM "{t}$history"',
    'SELECT * FROM "{t}$refs"',
    # What writes, and what may not.
    "CREATE TABLE copied_{t} AS SELECT * FROM {t}",
    "INSERT INTO copied_{t} SELECT * FROM {t} WHERE id > 1",
    "SELECT * FROM copied_{t}",
    "UPDATE {t} SET name = 'x' WHERE id = 5",
    "DELETE FROM {t} WHERE id = 5",
    "DELETE FROM {t} WHERE secret = 1",
    "INSERT INTO {t} (id, dept) VALUES (5, 'hr')",
    "MERGE INTO {t} USING (SELECT 5 AS k) s ON id = k WHEN MATCHED THEN DELETE",
    "TRUNCATE TABLE {t}",
    "DROP TABLE {t}",
    "ALTER TABLE {t} ADD COLUMN secret integer",
    "ALTER TABLE {t} RENAME COLUMN name TO secret",
    "CREATE OR REPLACE TABLE {t} AS SELECT 1 AS id",
    "CREATE VIEW view_{t} AS SELECT id, age FROM {t}",
    "SELECT * FROM view_{t}",
    "SHOW CREATE VIEW view_{t}",
    "SELECT id, pay FROM over_{t}",
    "SELECT * FROM over_{t} WHERE 10 / (id - 5) > 0",
    "SHOW COLUMNS FROM over_{t}",
    "SHOW CREATE VIEW over_{t}",
)

# On a table with a filter alone. Hidden rows have the ids 5, 6, -7, 8, 1, and 100 on.
CHANGES = (
    "UPDATE team SET name = 'x' WHERE id = 5",
    "UPDATE team SET name = 'x' WHERE id = 1",
    "UPDATE team SET age = age + 1",
    "UPDATE team SET age = 10 / (id - 5)",
    "UPDATE team SET pay = pay * 5062",
    "UPDATE team SET age = age + 1 WHERE 10 / (id - 8) > 1000",
    "UPDATE team SET code = CAST(CAST(code AS integer) AS varchar) WHERE code = '12' OR id > 4",
    "UPDATE team SET dept = 'hr' WHERE id = 1",
    "UPDATE team SET dept = NULL WHERE id = 5",
    "UPDATE team SET age = CAST(id * 100 AS tinyint)",
    "UPDATE team SET name = 'y' WHERE id IN (SELECT id FROM team WHERE name LIKE 'canary%')",
    "UPDATE team SET name = 'y' WHERE id = (SELECT max(id) FROM team)",
    "DELETE FROM team WHERE name LIKE 'canary%'",
    "DELETE FROM team WHERE dept = 'hr' OR dept IS NULL",
    "DELETE FROM team WHERE id = 4 OR dept = 'hr'",
    "DELETE FROM team WHERE 10 / (id - 5) > 1000",
    "DELETE FROM team WHERE id NOT IN (SELECT id FROM team)",
    "DELETE FROM team WHERE CAST(code AS integer) = 12",
    "MERGE INTO team USING (VALUES (1, 'm'), (5, 'n'), (8, 'o')) AS s (k, n) ON id = k"
    " WHEN MATCHED THEN UPDATE SET name = n WHEN NOT MATCHED THEN INSERT (id, dept, name) VALUES (k, 'eng', n)",
    "MERGE INTO team USING (VALUES (100, 'm'), (100, 'n')) AS s (k, n) ON id = k WHEN MATCHED THEN UPDATE SET name = n",
    "MERGE INTO team USING (VALUES (2, 'm'), (2, 'n')) AS s (k, n) ON id = k WHEN MATCHED THEN UPDATE SET name = n",
    "MERGE INTO team USING (VALUES (6), (2)) AS s (k) ON id = k WHEN MATCHED THEN DELETE",
    "MERGE INTO team USING (VALUES (9)) AS s (k) ON id = k WHEN NOT MATCHED THEN INSERT (id, dept) VALUES (k, 'hr')",
    "DELETE FROM team WHERE id > 4",
    "DELETE FROM team WHERE true",
)

POLICIES = {
    # A filter with masks, and the same over files that are sorted apart by the column of the filter.
    "people": allow(
        "dept = 'eng'",
        pay=NullMask(),
        phone=ConstantMask(),
        age=RangeMask(width=10),
        hidden=frozenset({"secret"}),
    ),
    "staff": allow(
        "CASE WHEN dept = 'eng' THEN true END",
        "coalesce(id, 0) BETWEEN 1 AND 4",
        pay=NullMask(),
        phone=PartialMask(upper="x", digit="x"),
        age=NullMask(),
        hidden=frozenset({"secret"}),
    ),
}
_CHANGED = {"team": allow("dept = 'eng'")}


def _governed(engine: SparkEngine, owner: EmbeddedSqe, enforcer: PolicyEnforcer, *, ttl_secs: float = 0) -> Sqe:
    mount = owner.session.catalogs.find(EMBEDDED_CATALOG)
    assert mount is not None
    return build(
        engine=engine,
        mounts=[mount],
        enforcers=[enforcer],
        masks=MaskWriter(key=Secret("mask key")),
        decisions=DecisionCache(ttl_secs=ttl_secs),
        limits=_LIMITS,
    )


def _session(sqe: Sqe, issuer: str) -> Session:
    who = Identity(issuer=issuer, subject="analyst", username="analyst", provider="test")
    return sqe.open_session(who, catalog=EMBEDDED_CATALOG, protocol="test")


@pytest.fixture(scope="module")
def twins(engine: SparkEngine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Governed, Governed]]:
    """One user at two warehouses that differ in what he may not see, and in nothing else."""
    opened = []
    for values, kept in zip(_VALUES, _KEPT, strict=True):
        owner = open_embedded(tmp_path_factory.mktemp("warehouse"), engine=engine)
        for table, with_ in (("people", ""), ("staff", " WITH (partitioning = ARRAY['dept'])")):
            owner.execute(f"CREATE TABLE {table} ({_COLUMNS}){with_}").close()
            for rows in kept[:2]:
                owner.execute(f"INSERT INTO {table} VALUES {rows}").close()
            owner.execute(f"INSERT INTO {table} VALUES {', '.join(_SEEN).format(*values)}").close()
            for rows in kept[2:]:
                owner.execute(f"INSERT INTO {table} VALUES {rows}").close()
            if kept:
                owner.execute(f"DELETE FROM {table} WHERE id BETWEEN 200 AND 300").close()
            owner.execute(f"CREATE VIEW over_{table} AS SELECT id, name, pay FROM {table}").close()
        owner.execute(f"CREATE TABLE team ({_COLUMNS})").close()
        for rows in kept[:2]:
            owner.execute(f"INSERT INTO team VALUES {rows}").close()
        # In one file with hidden rows, and beside others.
        seen = [", ".join(_SEEN).format("100", "p", "3", "7"), *kept[2:]]
        owner.execute(f"INSERT INTO team VALUES {', '.join(seen)}").close()
        policies = WrittenPolicies(POLICIES | _CHANGED)
        governed = _governed(engine, owner, policies)
        opened.append((owner, Governed(governed, _session(governed, "test"), policies)))
    yield opened[0][1], opened[1][1]
    for owner, each in opened:
        each.sqe.service.close_session(each.session)
        owner.close()


@dataclass(frozen=True, kw_only=True)
class Observed:
    """All that a client is told of a statement."""

    schema: str = ""
    rows: tuple[str, ...] = ()
    batches: tuple[int, ...] = ()
    affected: int | None = None
    progress: object = None
    error: tuple[Any, ...] = ()


def _observe(who: Governed, sql: str) -> Observed:
    try:
        result = who.sqe.service.execute(who.session, sql)
        batches = list(result)
    except SqeError as error:
        told = (type(error).__name__, error.code, error.kind, error.message, error.hint, error.position)
        return Observed(error=(*told, str(error)))
    rows = [repr(list(row.items())) for batch in batches for row in batch.to_pylist()]
    schema = "" if result.schema is None else result.schema.to_string(show_field_metadata=True)
    return Observed(
        schema=schema + "".join(f" {item.nullable}" for item in result.schema or ()),
        # SQL promises no order, and files come in the order of their names, which are random.
        rows=tuple(rows if "ORDER BY id" in sql else sorted(rows)),
        batches=tuple(sorted(batch.num_rows for batch in batches)),
        affected=result.affected_rows,
        # Which of the tasks are told to be over when the last row is there is a matter of moments.
        progress=replace(result.progress(), stages_done=0, tasks_done=0, tasks_active=0),
    )


@pytest.mark.rule("TEST-4", "ENF-17", "META-4", "META-5", "ERR-4", "ERR-5", "DML-5", "TRI-7")
@pytest.mark.parametrize("table", POLICIES)
def test_what_is_hidden_changes_nothing_that_is_observed(twins: tuple[Governed, Governed], table: str) -> None:
    ours, theirs = twins
    differing, answered = [], 0
    for shape in STATEMENTS:
        sql = shape.format(t=table)
        one, other = _observe(ours, sql), _observe(theirs, sql)
        answered += not one.error
        for told in (repr(one), repr(other)):
            for canary in ("canary", "424242"):
                assert canary in sql or canary not in told, (sql, told)
        if one != other:
            differing.append(f"{sql}\n    {one}\n    {other}")
    assert not differing, "\n".join(differing)
    assert answered > 40


@pytest.mark.rule("TEST-4", "DML-5", "ERR-4", "ERR-5")
def test_what_is_hidden_changes_no_change(twins: tuple[Governed, Governed]) -> None:
    hidden = [_all_rows(who) - _visible_rows(who) for who in twins]
    assert not hidden[0]
    assert len(hidden[1]) > 100
    changed = 0
    for sql in CHANGES:
        one, other = (_observe(who, sql) for who in twins)
        assert one == other, sql
        assert _observe(twins[0], _TEAM) == _observe(twins[1], _TEAM), sql
        changed += bool(one.affected)
    assert changed > 8
    # Nor does a change touch what its author does not see.
    assert [_all_rows(who) - _visible_rows(who) for who in twins] == hidden


_TEAM = "SELECT * FROM team ORDER BY id, name, age"


def _visible_rows(who: Governed) -> frozenset[str]:
    return frozenset(_observe(who, _TEAM).rows)


def _all_rows(who: Governed) -> frozenset[str]:
    policy = who.policies.decisions.pop("team")
    try:
        return _visible_rows(who)
    finally:
        who.policies.decisions["team"] = policy


@pytest.mark.rule("ENF-17", "TRI-7")
def test_what_a_restricted_statement_reads_is_not_counted_for_its_user(twins: tuple[Governed, Governed]) -> None:
    analyst = twins[1]
    counted = analyst.sqe.service.execute(analyst.session, "SELECT id, name FROM people")
    assert counted.read_all().num_rows == 4
    assert counted.progress() == Progress()
    analyst.policies.decisions.pop("people")
    try:
        counted = analyst.sqe.service.execute(analyst.session, "SELECT id, name FROM people")
        assert counted.read_all().num_rows > 100
        assert counted.progress() != Progress()
    finally:
        analyst.policies.decisions["people"] = POLICIES["people"]


# Two users at once


@dataclass
class ByIssuer(PolicyEnforcer):
    """Decides by who issued the token: the two users have the same name and subject."""

    decisions: dict[str, Decision]

    def decide(self, request: PolicyRequest) -> PolicyResponse:
        return PolicyResponse(
            decisions=tuple(
                self.decisions[request.principal.issuer]
                if isinstance(access.resource.name, ObjectName) and access.resource.name.name in ("pays", "all_pays")
                else Decision.allow()
                for access in request.accesses
            )
        )


_TEXTS = (
    "SELECT id, pay FROM pays ORDER BY id",
    "SELECT count(*) FROM pays",
    "SELECT sum(id) FROM all_pays",
    "SELECT a.id FROM pays a JOIN all_pays b USING (id) WHERE 10 / a.divisor > 1 ORDER BY id",
    "WITH p AS (SELECT * FROM pays) SELECT max(id), min(id), count(pay) FROM p",
    "SELECT id FROM pays WHERE id IN (SELECT id FROM all_pays WHERE pay IS NOT NULL) ORDER BY id",
    "SELECT id, rank() OVER (ORDER BY id) FROM pays ORDER BY id",
    "SELECT nothing FROM pays",
)


@pytest.mark.rule("TEST-8", "POL-9", "SESS-4")
@pytest.mark.parametrize("ttl_secs", [0, 60])
def test_two_users_at_once_get_each_their_own(sqe: EmbeddedSqe, engine: SparkEngine, ttl_secs: int) -> None:
    table = "CREATE TABLE IF NOT EXISTS pays (id integer, dept varchar, pay integer, divisor integer)"
    sqe.execute(table).close()
    if not sqe.execute("SELECT count(*) FROM pays").read_all().column(0)[0].as_py():
        rows = ", ".join(f"({i}, '{'eng' if i % 2 else 'hr'}', {i * 10}, {1 + i % 2})" for i in range(1, 11))
        sqe.execute(f"INSERT INTO pays VALUES {rows}").close()
        sqe.execute("CREATE VIEW all_pays AS SELECT * FROM pays").close()
    issuers = ("https://one", "https://two")
    enforcer = ByIssuer(dict(zip(issuers, (allow("dept = 'eng'"), allow("dept = 'hr'", pay=NullMask())), strict=True)))
    governed = _governed(engine, sqe, enforcer, ttl_secs=ttl_secs)

    def answer(session: Session, sql: str) -> str:
        try:
            return repr(governed.service.execute(session, sql).read_all().to_pylist())
        except SqeError as error:
            return f"{error.code.name} {error} {error.hint}"

    expected = {}
    for issuer in issuers:
        session = _session(governed, issuer)
        expected[issuer] = [answer(session, sql) for sql in _TEXTS]
        governed.service.close_session(session)
    odd, even = (expected[issuer] for issuer in issuers)
    assert odd[0] == repr([{"id": i, "pay": i * 10} for i in range(1, 11, 2)])
    assert even[0] == repr([{"id": i, "pay": None} for i in range(2, 11, 2)])
    assert [one == other for one, other in zip(odd, even, strict=True)] == [False, True, *[False] * 5, True]

    def work(task: tuple[str, int]) -> list[str]:
        """Half of a user's statements, in a session of its own that is opened anew now and then."""
        issuer, first = task
        session, wrong = _session(governed, issuer), []
        for turn in range(50):
            place = (first + turn) % len(_TEXTS)
            told = answer(session, _TEXTS[place])
            if told != expected[issuer][place]:
                wrong.append(f"{issuer} {_TEXTS[place]}: {told}")
            if turn % 40 == 39:
                governed.service.close_session(session)
                session = _session(governed, issuer)
        governed.service.close_session(session)
        return wrong

    tasks = [(issuer, first) for first in (0, 3) for issuer in issuers]
    with ThreadPoolExecutor(len(tasks)) as pool:
        assert [each for wrong in pool.map(work, tasks) for each in wrong] == []
