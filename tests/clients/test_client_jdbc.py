"""Arrow's Flight SQL JDBC driver, which DBeaver, Tableau and other tools use. The questions are in the folder java."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest


class Jdbc:
    def __init__(self, java: str, driver: Path, classes: Path) -> None:
        self.command = [java, "--add-opens=java.base/java.nio=ALL-UNNAMED"]
        self.path = os.pathsep.join([str(driver), str(classes)])

    def ask(self, what: str, url: str, table: str = "-", zone: str = "UTC", **properties: str) -> dict[str, str]:
        """The answers of the Java program by the names of its questions."""
        ran = subprocess.run(
            [
                *self.command,
                f"-Duser.timezone={zone}",
                "-cp",
                self.path,
                "JdbcCheck",
                what,
                url,
                table,
                *map("=".join, properties.items()),
            ],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr[-3000:]
        answers = dict(line.partition(" = ")[::2] for line in ran.stdout.splitlines() if " = " in line)
        assert not {name: text for name, text in answers.items() if text.startswith("FAILED")}
        return answers


@pytest.fixture(scope="session")
def jdbc(java: str, driver: Path, classes: Path) -> Jdbc:
    return Jdbc(java, driver, classes)


@pytest.fixture
def url(server: Any) -> str:
    return f"jdbc:arrow-flight-sql://127.0.0.1:{server.port}/?useEncryption=false"


@pytest.fixture
def login(server: Any) -> dict[str, str]:
    return {"user": "etl", "password": server.keys["etl"]}


def test_sign_in(jdbc: Jdbc, url: str, login: dict[str, str]) -> None:
    found = {"user": "[[etl]]", "place": "[[iceberg, default]]", "valid": "true"}
    assert jdbc.ask("login", url, **login) == found
    assert jdbc.ask("login", url, token=login["password"]) == found
    wrong = jdbc.ask("login", url, user="etl", password="sqe_wrong")
    assert "Authentication failed" in wrong["connection"]
    assert "user" not in wrong


def test_a_catalog_in_the_url(jdbc: Jdbc, url: str, login: dict[str, str]) -> None:
    said = jdbc.ask("login", f"{url}&catalog=iceberg", **login)
    assert said["place"] == "[[iceberg, default]]"
    assert "Channel shutdown invoked" in said["connection"]  # the driver closes itself twice
    assert "Cannot set session option for catalog" in jdbc.ask("login", f"{url}&catalog=nope", **login)["connection"]


def test_tls(jdbc: Jdbc, tls_server: Any, java: str, tmp_path: Path) -> None:
    url = f"jdbc:arrow-flight-sql://localhost:{tls_server.port}/"
    login = {"user": "etl", "password": tls_server.keys["etl"]}
    authority = str(tls_server.folder / "localhost.pem")
    store = str(tmp_path / "trust.p12")
    keytool = [java, "-m", "java.base/sun.security.tools.keytool.Main", "-importcert", "-noprompt", "-file", authority]
    subprocess.run(
        [*keytool, "-keystore", store, "-storepass", "changeit", "-alias", "sqe"], check=True, capture_output=True
    )
    for trusted in (
        {"tlsRootCerts": authority},
        {"trustStore": store, "trustStorePassword": "changeit", "useSystemTrustStore": "false"},
        {"disableCertificateVerification": "true"},
    ):
        assert jdbc.ask("login", url, **login, **trusted)["user"] == "[[etl]]"
    assert "user" not in jdbc.ask("login", url, **login)
    assert "user" not in jdbc.ask("login", f"{url}?useEncryption=false", **login)


# What a tool is told

TRUE = """
    allTablesAreSelectable isCatalogAtStart nullPlusNonNullIsNull nullsAreSortedAtEnd supportsANSI92EntryLevelSQL
    supportsBatchUpdates supportsCatalogsInDataManipulation supportsCatalogsInTableDefinitions supportsColumnAliasing
    supportsConvert supportsCorrelatedSubqueries supportsExpressionsInOrderBy supportsFullOuterJoins supportsGroupBy
    supportsGroupByUnrelated supportsLikeEscapeClause supportsMixedCaseQuotedIdentifiers supportsNamedParameters
    supportsNonNullableColumns supportsOrderByUnrelated supportsOuterJoins supportsSchemasInDataManipulation
    supportsSchemasInTableDefinitions supportsSubqueriesInComparisons supportsSubqueriesInExists supportsSubqueriesInIns
    supportsSubqueriesInQuantifieds supportsTableCorrelationNames supportsUnion supportsUnionAll
"""
FALSE = """
    isReadOnly nullsAreSortedAtStart nullsAreSortedHigh nullsAreSortedLow supportsGetGeneratedKeys
    supportsIntegrityEnhancementFacility supportsMixedCaseIdentifiers supportsMultipleResultSets
    supportsMultipleTransactions supportsPositionedDelete supportsPositionedUpdate supportsSavepoints
    supportsSelectForUpdate supportsStoredFunctionsUsingCallSyntax supportsStoredProcedures supportsTransactions
    usesLocalFilePerTable usesLocalFiles
"""
NO_ROWS = """
    primary keys, imported keys, exported keys, cross reference, index info, best row, version columns, procedures,
    procedure columns, functions, function columns, types of users, attributes, super types, super tables,
    table privileges, column privileges, pseudo columns, client info, schemas of none, tables of no schema,
    tables of no catalog, tables of no type
"""


def test_metadata(jdbc: Jdbc, url: str, login: dict[str, str], cursor: Any, table: str) -> None:
    columns = "id bigint NOT NULL COMMENT 'the key', name varchar, price decimal(38,10), at timestamp"
    cursor.execute(f"CREATE TABLE {table} ({columns})")
    cursor.execute(f"CREATE VIEW {table}_view AS SELECT id FROM {table}")
    answers = jdbc.ask("metadata", url, table, **login)
    no_rows = [name.strip() for name in NO_ROWS.split(",")]
    for names, answer in ((TRUE.split(), "true"), (FALSE.split(), "false"), (no_rows, "[]")):
        assert {name: answers[name] for name in names} == dict.fromkeys(names, answer)
    assert {text for name, text in answers.items() if name.startswith("getMax")} == {"0"}
    expected = {
        "getDatabaseProductName": "SQE Coordinator",
        "getUserName": "etl",
        "getIdentifierQuoteString": '"',
        "getSearchStringEscape": "\\",
        "getCatalogSeparator": ".",
        "getCatalogTerm": "catalog",
        "getSchemaTerm": "schema",
        "getDefaultTransactionIsolation": "0",
        "isolation 0": "true",
        "isolation 8": "false",
        "results 1003": "true:true:false",  # forward only, read only
        "results 1005": "false:false:false",
        "schemas like": "[default]",
        "tables": f"[iceberg:default:{table}:TABLE]",
        "tables like": f"[{table}, {table}_view]",
        "tables escaped": f"[{table}]",
        "views": f"[{table}_view]",
        "table types": "[SYSTEM TABLE, TABLE, VIEW]",
        "system": "[tables:SYSTEM TABLE]",
        "system columns": "[table_catalog:varchar, table_schema:varchar, table_name:varchar, table_type:varchar]",
        "columns": "[id:-5:bigint:0:NO:1, name:12:varchar:1:YES:2, price:3:decimal(38,10):1:YES:3, "
        "at:93:timestamp(6):1:YES:4]",
        "columns like": "[name]",
        "decimal": "[38:10:10]",
        "comment": "[the key]",
        "columns of a view": "[id:bigint]",
    }
    assert {name: answers[name] for name in expected} == expected
    assert "qualify" in answers["getSQLKeywords"]
    assert "coalesce" in answers["getSystemFunctions"]
    assert "date_trunc" in answers["getTimeDateFunctions"]
    assert "iceberg" in answers["catalogs"]
    assert "iceberg:default" in answers["schemas"]


# Values

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
    "setDate": "2026-02-03",
    "setDate calendar": "2026-02-03",
    "setTime": "04:05:06",
    "setString of no type": "text",
    "setTimestamp": "2026-02-03 04:05:06.007",
    "setTimestamp calendar": "2026-02-03 04:05:06.007",
    "setTimestamp zoned": "2026-02-03 04:05:06.007",
    "setNull": "null",
    "setObject null": "null",
    "setObject Long": "7",
    "setObject Integer to bigint": "7",
    "setObject String to bigint": "7",
    "setObject Boolean": "false",
    "setObject Double": "0.5",
    "setObject BigDecimal": "1.25",
    "setObject String": "text",
    "setObject Timestamp": "2026-02-03 04:05:06.0",
    "setArray": "[1,2]",
}
"""What docs/clients.md says works; it names those that the driver does not have."""
NOT_IN_THE_DRIVER = """
    setURL, setCharacterStream, setAsciiStream, setBinaryStream, setObject LocalDate, setObject LocalTime,
    setObject LocalDateTime, setObject OffsetDateTime
"""
GOT = {
    "getBoolean": "true",
    "getByte": "-8",
    "getShort": "-300",
    "getInt": "7",
    "getLong": "9223372036854775807",
    "getFloat": "1.5",
    "getDouble": "0.1",
    "getBigDecimal": "1234567890123456789012345678.0123456789",
    "getCharacterStream": "ü€😀",
    "getBytes": "[0, -1]",
    "getBinaryStream": "[0, -1]",
    "getDate": "2026-02-03",
    "getTime": "04:05:06.007",
    "getTimestamp": "2026-02-03 04:05:06.000007",
    "getTimestamp zoned": "2026-02-03T04:05:06.000007Z",
    "getTimestamp calendar": "2026-02-02T19:05:06.000007Z",
    "getArray": "[1, null]:INTEGER",
    "getObject LocalDate": "2026-02-03",
    "getObject LocalDateTime": "2026-02-03T04:05:06.000007",
    "getObject Instant": "2026-02-03T04:05:06.000007Z",
    "getObject OffsetDateTime": "2026-02-03T04:05:06.000007Z",
    "getObject Long": "9223372036854775807",
    "findColumn": "SQLException: column 'nope' not found",
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
    "TIME '04:05:06.007'": "ArrowFlightJdbcTime|04:05:06.007",
    "TIMESTAMP '2026-02-03 04:05:06.000007'": "Timestamp|2026-02-03 04:05:06.000007",
    "TIMESTAMP '2026-02-03 04:05:06.000007 UTC'": "Timestamp|2026-02-03 04:05:06.000007",
    "INTERVAL '36' HOUR": "Duration|PT36H",
    "INTERVAL '14' MONTH": "PeriodDuration|P14M PT0S",
    "ARRAY[1, NULL]": "JsonStringArrayList|[1,null]",
    "MAP(ARRAY['a'], ARRAY[1])": 'JsonStringHashMap|{"a":1}',
    "CAST(ROW(1, 'x') AS ROW(a integer, b varchar))": 'JsonStringHashMap|{"a":1,"b":"x"}',
    "NULL": "|null",
}


# What the driver shifts by the zone of its JVM, as docs/clients.md says; everything else is the same in each.
SHIFTED = {
    "UTC": {},
    "America/New_York": {
        "setTime": "23:05:06",
        "getTime": "23:05:06.007",
        "getTimestamp": "2026-02-03 09:05:06.000007",
        "getTimestamp zoned": "2026-02-03T14:05:06.000007Z",
        "getTimestamp calendar": "2026-02-03T00:05:06.000007Z",
        "TIME '04:05:06.007'": "ArrowFlightJdbcTime|23:05:06.007",
    },
}


@pytest.mark.parametrize("zone", SHIFTED)
def test_setters_getters_and_batches(jdbc: Jdbc, url: str, login: dict[str, str], table: str, zone: str) -> None:
    answers = jdbc.ask("types", url, table, zone, **login)
    sent, got, objects = ({name: SHIFTED[zone].get(name, each[name]) for name in each} for each in (SET, GOT, OBJECTS))
    assert {name: answers[name] for name in SET} == {name: f"[[{value}]]" for name, value in sent.items()}
    for name in NOT_IN_THE_DRIVER.split(","):
        assert answers[name.strip()].startswith("SQLException"), name
    assert {name: answers[name] for name in GOT} == got
    assert {literal: answers[f"getObject {literal}"] for literal in OBJECTS} == objects
    assert answers["getString NULL"] == "null|true"
    assert answers["meta 7"].startswith("INTEGER:4:")
    assert answers["batch of statements"] == "the driver cannot"
    assert answers["batch of rows"] == "[5]"
    assert answers["next batch"] == "[1]"
    rows = ["[10, even]", "[11, null]", "[12, even]", "[13, null]", "[14, even]", "[20, next]"]
    assert answers["after batches"] == f"[{', '.join(rows)}]"


def test_statements(jdbc: Jdbc, url: str, server: Any, table: str) -> None:
    answers = jdbc.ask("statements", url, table, user="root", password=server.keys["root"])
    assert answers["create"] == "0"
    assert answers["insert"] == "2"
    assert answers["execute"] == "true"
    assert answers["execute update"] == "false"
    assert answers["prepared insert"] == "1"
    assert answers["null parameters"] == "1"
    assert answers["batch"] == "3"
    assert answers["prepared query"] == "[one, thrée €, batch 12]"
    assert answers["parameter count"] == "2"
    assert answers["values"] == (
        "3|thrée €|1234567890123456789012345678.0123456789|2026-02-03|2026-02-03 04:05:06.007|true|0.5|8|2"
    )
    assert answers["nulls"] == f"[[{', '.join(['null'] * 9)}]]"
    assert answers["result types"] == ("[id:-5, name:12, price:3, day:91, at:93, ok:16, ratio:8, small:4, raw:-3]")
    place = f"iceberg:default:{table}"
    assert answers["result columns"] == (
        f"[38:10:{place}:false:false:false:true, 19:0:null:null:null:false:true:false:true,"
        f" 0:0:{place}:true:false:false:true]"
    )
    assert answers["nested"] == '[[[1,2], {"a":1}, {"a":1,"b":"x"}]]'
    assert answers["zoned"].startswith("[[2026-01-02 03:04:05.000006")
    assert answers["rows"] == str(sum(range(100_000)))
    assert answers["prepare"] == answers["deallocate"] == "false"
    assert answers["execute prepared"] == "[[1]]"
    assert answers["describe input"] == "[[0, bigint]]"
    assert "few" in answers["forgotten"]
    assert answers["call"] == f"[[rollback_to_snapshot, iceberg.default.{table}, null, null, null, null, ok]]"
    assert answers["rolled back"] == "[[1], [2]]"
    assert "Table nowhere does not exist" in answers["missing"]
    assert "Unexpected SELEC" in answers["syntax"]
    assert answers["autocommit"] == "true"


def seconds(answer: str) -> int:
    found = re.search(r" after (\d+) s$", answer)
    assert found, answer
    return int(found[1])


@pytest.mark.parametrize("parts", [{}, {"x-sqe-endpoints": "4"}])
def test_running_statements(jdbc: Jdbc, url: str, login: dict[str, str], parts: dict[str, str]) -> None:
    """Properties that the driver does not know are headers of its calls."""
    answers = jdbc.ask("running", url, **login, **parts)
    assert answers["a million"] == f"1000000:{sum(range(1_000_000))}"
    assert answers["left early"] == answers["afterwards"] == "[[1]]"
    assert answers["max rows"] == answers["large max rows"] == "7"
    assert answers["cancel"].startswith("SQL")
    assert seconds(answers["cancel"]) < 5
    assert answers["cancel while reading"].startswith("Statement canceled")
    assert seconds(answers["cancel while reading"]) < 5
    assert "timed out after 2 SECONDS" in answers["timeout"]
    assert 1 <= seconds(answers["timeout"]) < 6


def test_the_number_of_endpoints_is_a_property(jdbc: Jdbc, url: str, login: dict[str, str]) -> None:
    answers = jdbc.ask("running", url, **login, **{"x-sqe-endpoints": "many"})
    assert "x-sqe-endpoints must be a number" in answers["a million"]
