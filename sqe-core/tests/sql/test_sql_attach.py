"""ATTACH, DETACH and secrets: the texts that people try, and errors that repeat nothing of them."""

from __future__ import annotations

from typing import Any

import pytest

from sqe_core.spi.errors import SqeError, UserError
from sqe_core.sql.reader import Reader
from sqe_core.sql.statement import Statement, StatementKind, TextLimits
from sqe_core.sql.statements.attachments import Attach, CreateSecret, Detach, DropSecret, ShowSecrets

CANARY = "kanarienvogel"


def read(sql: str, dialect: str = "sqe") -> Statement:
    return Reader().read(sql, dialect=dialect, limits=TextLimits(max_bytes=100_000))


def values_of(statement: Statement) -> dict[str, Any]:
    assert isinstance(statement, CreateSecret)
    return {key: value.reveal() for key, value in statement.values.items()}


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE SECRET s (TYPE bearer, TOKEN 'abc')",
        "create secret s (type = bearer, token = 'abc')",
        "CREATE SECRET s (TYPE 'BEARER', \"Token\" => 'abc')",
        "CREATE SECRET S (TOKEN 'abc', TYPE Bearer)",
        "CREATE SECRET \"s\" (TYPE bearer, TOKEN := 'abc');",
    ],
)
def test_a_secret(sql: str) -> None:
    statement = read(sql)
    assert isinstance(statement, CreateSecret)
    assert (statement.name, statement.type, values_of(statement)) == ("s", "bearer", {"token": "abc"})
    assert (statement.lasting, statement.replace, statement.if_not_exists) == (None, False, False)
    assert statement.kind is StatementKind.SECRET


def test_forms_of_create_and_drop_secret() -> None:
    made = read("CREATE OR REPLACE PERSISTENT SECRET s (TYPE basic, USERNAME me, PASSWORD 'it''s')")
    assert isinstance(made, CreateSecret)
    assert (made.replace, made.lasting, values_of(made)) == (True, True, {"username": "me", "password": "it's"})
    kept = read("CREATE TEMPORARY SECRET IF NOT EXISTS s (TYPE aws, PROFILE Dev)")
    assert isinstance(kept, CreateSecret)
    assert (kept.if_not_exists, kept.lasting, values_of(kept)) == (True, False, {"profile": "Dev"})
    assert read("DROP SECRET IF EXISTS s") == DropSecret(name="s", if_exists=True)
    assert isinstance(read("SHOW SECRETS LIKE 'p%'"), ShowSecrets)


@pytest.mark.parametrize(
    "sql",
    [
        "ATTACH '/data' AS lake (TYPE sqlite)",
        "attach database '/data' as LAKE (type SQLITE)",
        "ATTACH '/data' AS \"lake\" WITH (type = 'sqlite')",
    ],
)
def test_attach(sql: str) -> None:
    statement = read(sql)
    assert isinstance(statement, Attach)
    assert (statement.name, statement.type, statement.location) == ("lake", "sqlite", "/data")
    assert (dict(statement.options), statement.secret) == ({}, None)


def test_options_of_attach() -> None:
    statement = read("ATTACH OR REPLACE '' AS x (TYPE glue, REGION = 'eu-west-1', Warehouse 'W', DEPTH -2, SECRET S)")
    assert isinstance(statement, Attach)
    assert dict(statement.options) == {"region": "eu-west-1", "warehouse": "W", "depth": "-2"}
    assert (statement.secret, statement.replace, statement.location) == ("s", True, "")
    again = read("ATTACH IF NOT EXISTS '/d' AS x (TYPE sqlite, SECRET \"S\")")
    assert isinstance(again, Attach)
    assert (again.if_not_exists, again.secret) == (True, "S")


def test_detach() -> None:
    for sql, if_exists in (("DETACH x", False), ("DETACH DATABASE IF EXISTS X", True), ('detach catalog "x";', False)):
        statement = read(sql)
        assert isinstance(statement, Detach)
        assert (statement.name, statement.if_exists) == ("x", if_exists)
    named = read("DETACH catalog")
    assert isinstance(named, Detach)
    assert named.name == "catalog"


@pytest.mark.parametrize(
    ("sql", "message", "hint"),
    [
        ("ATTACH 'x' AS y", "ATTACH needs TYPE", "write ATTACH '<location>' AS name"),
        ("ATTACH 'x'", "expected AS and the name", "write ATTACH"),
        ("ATTACH x AS y (TYPE sqlite)", "expected the location in single quotes", "write ATTACH"),
        ("ATTACH 'x' AS y (TYPE sqlite, READ_ONLY)", "expected a value", None),
        ("ATTACH 'x' AS y (TYPE sqlite, READ_ONLY true)", "ATTACH has no READ_ONLY", "grants"),
        ("ATTACH 'x' AS y (TYPE sqlite, type jdbc)", "An option may be given once", None),
        ("ATTACH 'x' AS a.b (TYPE sqlite)", "which is one word", None),
        ("ATTACH OR REPLACE IF NOT EXISTS 'x' AS y (TYPE sqlite)", "no IF NOT EXISTS after OR REPLACE", None),
        ("ATTACH 'x' AS y (TYPE ?)", "Parameters cannot stand here", None),
        ("CREATE SECRET (TYPE bearer)", "expected the name of a secret", "write CREATE SECRET name"),
        ("CREATE SECRET s (TOKEN 'a')", "CREATE SECRET needs TYPE", None),
        ("CREATE SECRET s", 'expected "("', None),
        ("ALTER SECRET s SET x", "ALTER SECRET is not supported", "CREATE OR REPLACE SECRET"),
        ("CREATE CATALOG c USING iceberg WITH (a = 'b')", "CREATE CATALOG is not supported", "write ATTACH"),
        ("DROP CATALOG c", "DROP CATALOG is not supported", "DETACH name"),
        ("SHOW SECRET s", "", "use SHOW SECRETS"),
    ],
)
def test_what_is_wrong(sql: str, message: str, hint: str | None) -> None:
    with pytest.raises(UserError) as caught:
        read(sql)
    assert message in caught.value.message
    assert hint is None or hint in (caught.value.hint or "")


@pytest.mark.rule("OBS-2")
@pytest.mark.parametrize("dialect", ["sqe", "trino", "spark"])
@pytest.mark.parametrize(
    "sql",
    [
        f"CREATE SECRET s (TYPE bearer, TOKEN '{CANARY})",
        f"CREATE SECRET s (TYPE bearer TOKEN {CANARY})",
        f"CREATE SECRET s (TYPE bearer, '{CANARY}')",
        f"CREATE SECRET s (TYPE bearer, TOKEN '{CANARY}' {CANARY})",
        f"CREATE SECRET s TYPE bearer, TOKEN {CANARY}",
        f"CREATE SECRET '{CANARY}'",
        f"CREATE SECRET s (TOKEN {CANARY}",
        f"CREATE SECRET s (TYPE bearer, TOKEN '{CANARY}', TOKEN '{CANARY}')",
        f"CREATE SECRET s (TYPE bearer, TOKEN ({CANARY}))",
        f"ATTACH 'jdbc:postgresql://u:{CANARY}@h/d' AS x (TYPE jdbc WAREHOUSE '{CANARY}')",
        f"ATTACH 'x' AS {CANARY}.y (TYPE jdbc)",
        f"ATTACH 'x' AS y (TYPE jdbc, SECRET '{CANARY}' '{CANARY}')",
        f"CREATE CATALOG c USING jdbc WITH (\"connection-password\" = '{CANARY}')",
    ],
)
def test_an_error_repeats_nothing(sql: str, dialect: str) -> None:
    try:
        read(sql, dialect)
    except SqeError as error:
        assert CANARY not in f"{error.message} {error.hint} {error!r}"


@pytest.mark.rule("OBS-2")
@pytest.mark.parametrize("dialect", ["sqe", "trino"])
def test_what_cannot_be_read_is_not_repeated_either(dialect: str) -> None:
    with pytest.raises(UserError) as caught:
        read("CREATE SECRET s (TYPE bearer, TOKEN 4711__4712)", dialect)
    assert "4711" not in caught.value.message
    assert caught.value.hint == "values stand in single quotes, and a quote inside is written twice"


@pytest.mark.rule("OBS-2")
def test_a_statement_does_not_print_what_is_secret() -> None:
    for sql in (
        f"CREATE SECRET s (TYPE bearer, TOKEN '{CANARY}')",
        f"ATTACH 'postgresql://u:{CANARY}@h/d' AS x (TYPE jdbc, WAREHOUSE '{CANARY}')",
    ):
        statement = read(sql)
        assert CANARY not in repr(statement)
