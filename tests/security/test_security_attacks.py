"""Every statement of attacks.toml through the whole pipeline: refused with the code that the corpus says, or harmless.

Nothing that comes back tells a secret (TEST-2).
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from sqe_core.bootstrap import EMBEDDED_CATALOG, OWNER, EmbeddedSqe
from sqe_core.spi.errors import ErrorCode, ErrorKind, SqeError

DIALECTS = ("sqe", "trino", "spark")
CANARY = "canary-7f3a91-content-of-a-file"
# What no client may ever read, unless it wrote it itself.
NEVER = (
    *("_sqe_", "org.apache", "Caused by", "at sqe.", "py4j", "java.lang", "java.util", "site-packages", "Exception"),
    *("Spark", "spark.sql", "RelationV2", "SubqueryAlias", "Traceback", CANARY),
)

with (Path(__file__).parent / "attacks.toml").open("rb") as file:
    ATTACKS: list[dict[str, Any]] = tomllib.load(file)["attack"]


def name_of(attack: Mapping[str, Any]) -> str:
    return f"{attack['rule']} {attack.get('dialect', '')} {attack['sql'][:60]}".replace("\n", " ")


@dataclass
class Arena:
    """A warehouse with tables to steal, and what the statements are filled in with."""

    sqe: EmbeddedSqe
    folder: Path
    warehouse: Path
    values: Mapping[str, str]

    def run(self, sql: str, dialect: str = "sqe") -> list[list[Any]]:
        result = self.sqe.sqe.service.execute(self.sqe.session, sql, dialect=dialect)
        return [list(row.values()) for batch in result for row in batch.to_pylist()]

    def fill(self, sql: str) -> str:
        for name, value in self.values.items():
            sql = sql.replace("{" + name + "}", value)
        return sql

    def check_silence(self, sql: str, *texts: object) -> None:
        """Nothing of the server stands in what came back."""
        shown = "\n".join(str(text) for text in texts)
        hidden = [*NEVER, self.values["alias"], self.values["other"], str(self.warehouse)]
        for word in hidden:
            assert word in sql or word not in shown, f"{word!r} in {shown!r}"


@pytest.fixture(scope="module")
def arena(sqe: EmbeddedSqe, warehouse: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Arena]:
    base = tmp_path_factory.mktemp("server")
    secret, folder = base / "secret.csv", base / "empty"
    secret.write_text(f"{CANARY}\n")
    folder.mkdir()
    other = sqe.sqe.open_session(OWNER, catalog=EMBEDDED_CATALOG, protocol="test")
    arena = Arena(sqe, folder, warehouse, {})
    for sql in (
        "CREATE TABLE t (a integer, b varchar, d date)",
        "INSERT INTO t VALUES (1, 'one', DATE '2020-01-01'), (2, 'two', DATE '2021-01-01')",
        "CREATE TABLE secret (a integer, b varchar)",
        "INSERT INTO secret VALUES (7, 'seven')",
        "CREATE VIEW v AS SELECT a, b FROM t",
    ):
        arena.run(sql)
    sqe.sqe.service.execute(other, "SELECT * FROM t").close()
    mount = sqe.session.catalogs.find(EMBEDDED_CATALOG)
    assert mount is not None
    arena.values = {
        "file": str(secret),
        "folder": str(folder),
        "alias": sqe.session.alias_of(mount),
        "other": other.alias_of(mount),
        "snapshot": str(arena.run('SELECT snapshot_id FROM "t$snapshots"')[0][0]),
        "deep_type": "array<" * 70 + "int" + ">" * 70,
        "deep_array": "array(" * 70 + "1" + ")" * 70,
        "deep": "SELECT " + "(" * 3000 + "1" + ")" * 3000,
        "joins": "SELECT 1 FROM " + ", ".join(f"t t{number}" for number in range(600)),
    }
    assert arena.values["alias"] != arena.values["other"]
    yield arena
    sqe.sqe.service.close_session(other)


def attempt(arena: Arena, attack: Mapping[str, Any], dialect: str) -> tuple[str, SqeError | list[list[Any]]]:
    for sql in attack.get("setup", ()):
        arena.run(sql)
    try:
        return "ok", arena.run(arena.fill(attack["sql"]), dialect)
    except SqeError as error:
        return error.code.name, error
    finally:
        for sql in attack.get("teardown", ()):
            arena.run(sql)


@pytest.mark.rule("TEST-2")
@pytest.mark.parametrize("attack", ATTACKS, ids=name_of)
def test_an_attack_ends_as_the_corpus_says(arena: Arena, attack: Mapping[str, Any]) -> None:
    expected = attack["expect"] if isinstance(attack["expect"], list) else [attack["expect"]]
    home = attack.get("dialect", "spark")
    for dialect in DIALECTS:
        code, outcome = attempt(arena, attack, dialect)
        where = f"in {dialect}: {code} {outcome}"
        sql = arena.fill(attack["sql"])
        if isinstance(outcome, SqeError):
            arena.check_silence(sql, outcome, outcome.message, outcome.hint)
            assert outcome.kind is not ErrorKind.INTERNAL, where
            assert outcome.code not in (ErrorCode.GENERIC_INTERNAL_ERROR, ErrorCode.EXECUTION_FAILED), where
        else:
            arena.check_silence(sql, outcome)
        if dialect == home:
            assert code in expected, where
            if "rows" in attack and code == "ok":
                assert outcome == attack["rows"], where
        elif attack.get("elsewhere") != "ok":
            assert code != "ok", where


@pytest.mark.rule("STMT-3")
def test_nothing_was_written_or_changed(arena: Arena) -> None:
    """Runs after the attacks: the folder is empty, the tables are what they were, nothing new exists."""
    assert list(arena.folder.iterdir()) == []
    assert arena.run("SELECT a, b FROM t ORDER BY a") == [[1, "one"], [2, "two"]]
    assert arena.run("SELECT * FROM secret") == [[7, "seven"]]
    assert arena.run("SELECT count(*) FROM v") == [[2]]
    assert {row[0] for row in arena.run("SHOW TABLES")} == {"t", "secret", "v"}
    assert {row[0] for row in arena.run("SHOW SCHEMAS")} == {"default", "information_schema"}
    assert len(arena.run('SELECT snapshot_id FROM "t$snapshots"')) == 1


def test_the_corpus_is_big_and_well_formed() -> None:
    assert len(ATTACKS) >= 150
    for attack in ATTACKS:
        known = {"rule", "sql", "expect", "rows", "dialect", "elsewhere", "setup", "teardown"}
        assert attack.keys() <= known, attack
        codes = attack["expect"] if isinstance(attack["expect"], list) else [attack["expect"]]
        for code in codes:
            assert code == "ok" or ErrorCode[code] is not ErrorCode.GENERIC_INTERNAL_ERROR
    texts = [(attack["sql"], attack.get("dialect")) for attack in ATTACKS]
    assert len(set(texts)) == len(texts)
