"""Arrow's Flight SQL JDBC driver, which DBeaver, Tableau and other tools use. The questions are in JdbcCheck.java."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pyspark
import pytest

from sqe_core.engine.spark.jars import LockedJar, fetch_jars
from sqe_core.engine.spark.options import EngineOptions

HERE = Path(__file__).parent
_FIRST_JAVA = 17  # the driver needs 11; running a source file with a text switch needs this


@pytest.fixture(scope="session")
def driver() -> Path:
    """The driver, fetched once into the cache and verified."""
    lock = tomllib.loads((HERE / "clients.lock.toml").read_text())["jar"]
    spark_jars = list((Path(pyspark.__file__).parent / "jars").glob("ivy-*.jar"))
    (jar,) = fetch_jars(EngineOptions(), spark_jars, lock=[LockedJar(**entry) for entry in lock])
    return jar


@pytest.fixture(scope="session")
def java() -> str:
    """A Java that can compile; the one that SQE brings along cannot."""
    home = os.environ.get("JAVA_HOME")
    candidates = [str(Path(home) / "bin" / "java")] if home else []
    for candidate in [*candidates, *filter(None, [shutil.which("java")])]:
        modules = subprocess.run([candidate, "--list-modules"], capture_output=True, text=True, check=False)
        version = subprocess.run([candidate, "-version"], capture_output=True, text=True, check=False)
        found = re.search(r'version "(\d+)', version.stderr)
        if "jdk.compiler" in modules.stdout and found and int(found[1]) >= _FIRST_JAVA:
            return candidate
    pytest.fail(f"The tests of JDBC need a JDK {_FIRST_JAVA} or later in JAVA_HOME or on the PATH")


class Jdbc:
    def __init__(self, java: str, driver: Path, port: int) -> None:
        self.java, self.driver = java, driver
        self.url = f"jdbc:arrow-flight-sql://127.0.0.1:{port}/?useEncryption=false"

    def ask(self, what: str, table: str, *login: str) -> dict[str, str]:
        """The answers of JdbcCheck.java by the names of its questions."""
        ran = subprocess.run(
            [
                self.java,
                "--add-opens=java.base/java.nio=ALL-UNNAMED",
                *("-cp", str(self.driver), str(HERE / "JdbcCheck.java"), what, self.url, table, *login),
            ],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr[-3000:]
        pairs = [line.partition(" = ")[::2] for line in ran.stdout.splitlines() if " = " in line]
        answers = dict(pairs)
        assert not {name: text for name, text in answers.items() if text.startswith("FAILED")}
        return answers


@pytest.fixture
def jdbc(java: str, driver: Path, server: Any) -> Jdbc:
    return Jdbc(java, driver, server.port)


def test_sign_in(jdbc: Jdbc, server: Any) -> None:
    key = server.keys["etl"]
    assert jdbc.ask("login", "-", "etl", key) == {"user": "[[etl]]"}
    assert jdbc.ask("login", "-", key) == {"user": "[[etl]]"}
    assert "Authentication failed" in jdbc.ask("login", "-", "etl", "sqe_wrong")["user"]


def test_metadata(jdbc: Jdbc, server: Any, cursor: Any, table: str) -> None:
    cursor.execute(f"CREATE TABLE {table} (id bigint NOT NULL, name varchar, price decimal(38,10), at timestamp)")
    cursor.execute(f"CREATE VIEW {table}_view AS SELECT id FROM {table}")
    answers = jdbc.ask("metadata", table, "etl", server.keys["etl"])
    assert answers["product"].startswith("SQE Coordinator ")
    assert answers["quote"] == '"'
    assert answers["read only"] == answers["transactions"] == "false"
    assert answers["max columns"] == answers["max statement"] == "0"
    assert "qualify" in answers["keywords"]
    assert answers["nulls at end"] == answers["outer joins"] == "true"
    assert "iceberg" in answers["catalogs"]
    assert "iceberg:default" in answers["schemas"]
    assert answers["schemas like"] == "[default]"
    assert answers["tables"] == f"[iceberg:default:{table}:TABLE]"
    assert answers["tables of no schema"] == "[]"
    assert answers["views"] == f"[{table}_view]"
    assert answers["table types"] == "[TABLE, VIEW]"
    assert (
        answers["columns"]
        == "[id:-5:bigint:0:1, name:12:varchar:1:2, price:3:decimal(38,10):1:3, at:93:timestamp(6):1:4]"
    )
    assert answers["decimal"] == "[38:10]"
    for keys in ("primary keys", "imported keys", "exported keys", "cross reference"):
        assert answers[keys] == "[]"


def test_statements(jdbc: Jdbc, server: Any, table: str) -> None:
    answers = jdbc.ask("statements", table, "etl", server.keys["etl"])
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
    assert answers["nested"] == '[[[1,2], {"a":1}, {"a":1,"b":"x"}]]'
    assert answers["zoned"].startswith("[[2026-01-02 03:04:05.000006")
    assert answers["rows"] == str(sum(range(100_000)))
    assert "Table nowhere does not exist" in answers["missing"]
    assert "Unexpected SELEC" in answers["syntax"]
    assert answers["autocommit"] == "true"
