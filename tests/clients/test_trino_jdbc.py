"""trino-jdbc of three ages, asked what the Flight driver is asked, and what only it knows: see the folder java."""

from __future__ import annotations

import os
import secrets
import subprocess
from pathlib import Path
from typing import Any

import pytest
from clients.conftest import trino_jar

NEWEST, OLDER, OLDEST = "483", "465", "435"
VERSIONS = [NEWEST, OLDER, OLDEST]


class TrinoJdbc:
    """Runs the Java program against a server."""

    def __init__(self, java: str, classes: Path, server: Any) -> None:
        self.java, self.classes, self.server = java, classes, server
        self.table = "j_" + secrets.token_hex(6)

    def ask(self, version: str, what: str, user: str = "root", **properties: str) -> dict[str, str]:
        """The answers by the names of their questions."""
        server = self.server
        given = {"user": user, "password": server.keys[user], "SSL": "true"}
        given = {**given, "SSLTrustStorePath": str(server.authority), **properties}
        path = os.pathsep.join([str(trino_jar(f"trino-jdbc-{version}.jar")), str(self.classes)])
        url = f"jdbc:trino://localhost:{server.trino_port}/iceberg/default"
        ran = subprocess.run(
            [
                *(self.java, "-XX:TieredStopAtLevel=1", "-Duser.timezone=UTC", "-cp", path, "TrinoCheck"),
                *(what, url, self.table, *map("=".join, given.items())),
            ],
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr[-3000:]
        answers = dict(line.partition(" = ")[::2] for line in ran.stdout.splitlines() if " = " in line)
        assert not {name: text for name, text in answers.items() if "FAILED" in text}
        return answers


@pytest.fixture
def jdbc(java: str, classes: Path, tls_server: Any) -> TrinoJdbc:
    return TrinoJdbc(java, classes, tls_server)


def check(answers: dict[str, str], expected: dict[str, str]) -> None:
    assert {name: answers.get(name) for name in expected} == expected


# What Trino's driver itself refuses, whatever server it talks to.
REFUSED = (
    "[getBestRowIdentifier, getColumnPrivileges, getCrossReference, getExportedKeys, getFunctionColumns, getFunctions, "
    "getIndexInfo, getTablePrivileges, getVersionColumns]"
)
NO_ROWS = """
    primary keys, imported keys, procedures, procedure columns, types of users, attributes, super types, super tables,
    pseudo columns, schemas of none, tables of no schema, tables of no catalog, tables of no type
"""
SET = {
    "setBoolean": "true",
    "setByte": "-8",
    "setShort": "-300",
    "setInt": "-2147483648",
    "setLong": "-9223372036854775808",
    "setFloat": "1.5",
    "setDouble": "0.1",
    "setBigDecimal": "1234567890123456789012345678.0123456789",
    "setString": "o'neil € 😀",
    "setNString": "ü",
    "setBytes": "0x00FF",
    "setDate": "2026-02-03",
    "setTime": "04:05:06.000000",
    "setNull": "null",
    "setObject null": "null",
    "setObject Long": "7",
    "setObject Integer to bigint": "7",
    "setObject String to bigint": "7",
    "setObject Boolean": "false",
    "setObject Double": "0.5",
    "setObject BigDecimal": "1.25",
    "setObject String": "text",
    "setObject bytes": "0x01",
    "setObject LocalDate": "2026-02-03",
    "setString of no type": "text",
}
OBJECTS = {
    "true": "Boolean|true",
    "CAST(-8 AS tinyint)": "Byte|-8",
    "CAST(-300 AS smallint)": "Short|-300",
    "7": "Integer|7",
    "CAST(9223372036854775807 AS bigint)": "Long|9223372036854775807",
    "CAST(1.5 AS real)": "Float|1.5",
    "CAST(0.1 AS double)": "Double|0.1",
    "CAST('1234567890123456789012345678.0123456789' AS decimal(38,10))": (
        "BigDecimal|1234567890123456789012345678.0123456789"
    ),
    "'ü€😀'": "String|ü€😀",
    "X'00FF'": "byte[]|[0, -1]",
    "DATE '2026-02-03'": "Date|2026-02-03",
    "TIME '04:05:06.007'": "Time|04:05:06",
    "TIMESTAMP '2026-02-03 04:05:06.000007'": "Timestamp|2026-02-03 04:05:06.000007",
    "TIMESTAMP '2026-02-03 04:05:06.000007 UTC'": "Timestamp|2026-02-03 04:05:06.000007",
    "INTERVAL '36' HOUR": "TrinoIntervalDayTime|1 12:00:00.000",
    "INTERVAL '14' MONTH": "TrinoIntervalYearMonth|1-2",
    "ARRAY[1, NULL]": "TrinoArray|[1, null]",
    "MAP(ARRAY['a'], ARRAY[1])": "UnmodifiableMap|{a=1}",
    "CAST(ROW(1, 'x') AS ROW(a integer, b varchar))": "Row|{a=1, b=x}",
    "NULL": "|null",
}
GOT = {
    "getBoolean": "true",
    "getByte": "-8",
    "getShort": "-300",
    "getInt": "7",
    "getLong": "9223372036854775807",
    "getFloat": "1.5",
    "getDouble": "0.1",
    "getBigDecimal": "1234567890123456789012345678.0123456789",
    "getBytes": "[0, -1]",
    "getBinaryStream": "[0, -1]",
    "getDate": "2026-02-03",
    "getTimestamp": "2026-02-03 04:05:06.000007",
    "getTimestamp zoned": "2026-02-03T04:05:06.000007Z",
    "getTimestamp calendar": "2026-02-02T19:05:06.000007Z",
    "getArray": "[1, null]:integer",
    "getObject LocalDate": "2026-02-03",
    "getObject Long": "9223372036854775807",
    "getLong of NULL": "0|true",
    "batch of rows": "[1, 1, 1, 1, 1]",
    "next batch": "[1]",
    "after batches": "[[10, even], [11, null], [12, even], [13, null], [14, even], [20, next]]",
}


@pytest.mark.parametrize("version", VERSIONS)
def test_metadata_values_statements_and_sessions(jdbc: TrinoJdbc, version: str) -> None:
    answers = jdbc.ask(version, "metadata,types,statements,session")
    metadata(answers, version, f"{jdbc.table}_metadata")
    check(answers, {name: f"[[{value}]]" for name, value in SET.items()})
    check(answers, {f"getObject {literal}": value for literal, value in OBJECTS.items()})
    check(answers, GOT)
    statements(answers, f"{jdbc.table}_statements")
    session(answers, f"{jdbc.table}_session")


def metadata(answers: dict[str, str], version: str, table: str) -> None:
    assert answers["refused"] == REFUSED
    assert int(answers["answered"]) >= 165
    check(answers, dict.fromkeys([name.strip() for name in NO_ROWS.split(",")], "[]"))
    expected = {
        "getDatabaseProductName": "Trino",
        "getUserName": "root",
        "getIdentifierQuoteString": '"',
        "getCatalogSeparator": ".",
        "getDriverVersion": version,
        "supportsBatchUpdates": "true",
        "supportsStoredProcedures": "false",
        "isReadOnly": "false",
        "nullsAreSortedAtEnd": "true",
        "catalogs": "[iceberg, system]",
        "schemas like": "[default]",
        "tables": f"[iceberg:default:{table}:TABLE]",
        "tables like": f"[{table}, {table}_view]",
        "tables escaped": f"[{table}]",
        "views": f"[{table}_view]",
        "table types": "[TABLE, VIEW]",
        "system": "[tables:TABLE]",
        "system columns": "[table_catalog:varchar, table_schema:varchar, table_name:varchar, table_type:varchar]",
        "columns": (
            "[id:-5:bigint:0:NO:1, name:12:varchar:1:YES:2, price:3:decimal(38,10):1:YES:3, at:93:timestamp(6):1:YES:4]"
        ),
        "columns like": "[name]",
        "decimal": "[38:10:10]",
        "comment": "[the key]",
        "columns of a view": "[id:bigint]",
    }
    check(answers, expected)
    assert "iceberg:default" in answers["schemas"]
    assert "system:jdbc" in answers["schemas"]
    assert all(f"{name}:" in answers["type info"] for name in ("bigint", "varchar", "decimal", "varbinary"))


def statements(answers: dict[str, str], table: str) -> None:
    expected = {
        "create": "0",
        "insert": "2",
        "execute": "true",
        "execute update": "false",
        "prepared insert": "1",
        "null parameters": "1",
        "batch": "1",
        "prepared query": "[one, thrée €, batch 12]",
        "parameter count": "2",
        "values": ("3|thrée €|1234567890123456789012345678.0123456789|2026-02-03|2026-02-03 04:05:06.007|true|0.5|8|2"),
        "nulls": f"[[{', '.join(['null'] * 9)}]]",
        "result types": "[id:-5, name:12, price:3, day:91, at:93, ok:16, ratio:8, small:4, raw:-3]",
        "nested": "[[[1, 2], {a=1}, {a=1, b=x}]]",
        "rows": str(sum(range(100_000))),
        "prepare": "false",
        "execute prepared": "[[1]]",
        "describe input": "[[0, bigint]]",
        "deallocate": "false",
        "call": f"[[rollback_to_snapshot, iceberg.default.{table}, null, null, null, null, ok]]",
        "rolled back": "[[1], [2]]",
        "update of rows": "SQLException: SQL is not an update statement: SELECT 1",
        "autocommit": "true",
    }
    check(answers, expected)
    assert "few does not exist" in answers["forgotten"]
    assert "line 1:15: Table nowhere does not exist" in answers["missing"]
    assert "line 1:1: Unexpected SELEC" in answers["syntax"]


def session(answers: dict[str, str], table: str) -> None:
    expected = {
        "progress": "50000:FINISHED:50000:100.0:true:true",
        "counts": "false:2:2:false:-1",
        "large update": "2",
        "delete": "1",
        "merge": "2",
        "create as": "2",
        "warnings": "null:null",
        "parameters": "bigint:name:bigint",
        "current names": "iceberg.default",
        "place after USE": f"iceberg.{table}",
        "place after setSchema": "[[iceberg, default]]",
        "property": "7m",
        "client info": "the check",
        "reads in a transaction": "[[2]]:[[2]]:false",
        "a transaction is rolled back": "true",
        "afterwards": "[[1]]",
    }
    check(answers, expected)
    assert "nope does not exist" in answers["unknown property"]


def test_sign_in(jdbc: TrinoJdbc) -> None:
    assert jdbc.ask(NEWEST, "login", "etl") == {"user": "[[etl]]", "valid": "true"}
    wrong = jdbc.ask(NEWEST, "login", "etl", password="sqe_wrong")
    assert "Authentication failed" in wrong["user"] + wrong.get("connection", "")


@pytest.mark.parametrize("encoding", ["json+zstd", "json+lz4"])
def test_large_results_are_spooled(jdbc: TrinoJdbc, encoding: str) -> None:
    spooled = jdbc.ask(NEWEST, "large", encoding=encoding)
    words = sum(len(f"a row of some length: {number}") for number in range(300_000))
    assert spooled == {"large": f"300000:{sum(range(300_000))}:{words}", "left early": "true", "small": "[[1, x]]"}


def test_running_statements(jdbc: TrinoJdbc) -> None:
    answers = jdbc.ask(NEWEST, "running", "etl")
    assert answers["a million"] == f"1000000:{sum(range(1_000_000))}"
    assert answers["left early"] == answers["afterwards"] == "[[1]]"
    assert answers["max rows"] == answers["large max rows"] == "7"
    assert answers["cancel"].startswith("SQLException")
    assert "after 0 s" in answers["cancel"] or "after 1 s" in answers["cancel"]
    assert answers["cancel while reading"].startswith("ResultSet is closed")
    assert "ran longer than 2 s" in answers["timeout"]
