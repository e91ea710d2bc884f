"""No token and no secret of a run is anywhere but where it is needed (ERR-6, OBS-2, SESS-7)."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import adbc_driver_flightsql.dbapi as flight_sql
import psutil
import pytest
from identity.people import Bed, Server
from testbed.keycloak import CLIENT_SECRET

# The driver closes a statement twice when its session has ended.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning")

# A token of any kind that Keycloak or SeaweedFS signs, in a text of any kind.
TOKEN = re.compile(r"eyJ[A-Za-z0-9_-]{16,}\.?[A-Za-z0-9_-]*")
SHOWN = (
    "SHOW CATALOGS",
    "SHOW SESSION",
    "SHOW CREATE TABLE lake.hr.emp",
    "EXPLAIN SELECT * FROM lake.hr.emp",
    "EXPLAIN ANALYZE SELECT * FROM lake.hr.emp",
    "SELECT * FROM lake.information_schema.tables",
    "SELECT * FROM lake.information_schema.columns",
    'SELECT * FROM lake.hr."emp$properties"',
    'SELECT * FROM lake.hr."emp$files"',
    "SELECT * FROM system.runtime.queries",
    "SELECT * FROM system.runtime.sessions",
    "SELECT * FROM system.metadata.catalogs",
    "SHOW SESSIONS",
    "SHOW QUERIES",
    "SET",
    "SET -v",
    "SELECT * FROM lake.hr.emp WHERE id = 1 / (id - 1)",
    "SELECT current_user, session_user",
)


@pytest.fixture
def run_of_both(server: Server, connect: Callable[[str], flight_sql.Connection], bed: Bed) -> list[str]:
    """Let two people do what they may and what they may not, and return everything that was answered."""
    texts: list[str] = []
    tokens = [bed.keycloak.access_token(user) for user in ("alice", "bob")]
    for connection in (connect("alice"), connect("bob"), *map(server.connect_with, tokens)):
        with connection:
            for statement in (*SHOWN, "INSERT INTO lake.hr.emp VALUES (1 / 0, 'x')", "SELECT * FROM nessie.fin.pay"):
                try:
                    texts.append(str(server.run(connection, statement)))
                except flight_sql.Error as error:
                    texts.append(str(error))
    with pytest.raises(flight_sql.Error) as raised, server.connect_with(tokens[0][:-5] + "AAAAA") as bad:
        server.run(bad, "SELECT 1")
    return [*texts, str(raised.value)]


@pytest.mark.rule("ERR-6", "OBS-2")
def test_nothing_that_is_shown_holds_a_secret(bed: Bed, server: Server, run_of_both: list[str]) -> None:
    places = {
        "answers": "\n".join([*run_of_both, *server.errors]),
        "log": "".join(server.raw),
        "metrics": server.ask("/metrics", port=server.metrics_port)[1].decode(),
        "status": server.ask("/api/v1/status")[1].decode(),
        "audit": (server.folder / "audit.log").read_text(),
    }
    for process in server.processes():
        try:
            places[f"arguments of {process.name()}"] = "\n".join(process.cmdline())
            places[f"environment of {process.name()}"] = str(process.environ())
        except psutil.NoSuchProcess:
            continue
    places |= dict(_files(server.folder))
    secrets = {CLIENT_SECRET, bed.store.access_key, bed.store.secret_key, *server.tokens}
    assert len(places["log"]) > 1000
    assert len(server.tokens) >= 3
    for place, text in places.items():
        for secret in secrets:
            assert secret not in text, place
            # Part of one is too much, and so is the signature alone.
            assert secret[-40:] not in text, place
        found = TOKEN.search(text)
        assert found is None, f"{place}: {text[max(0, found.start() - 60) : found.start() + 20]}"


def test_the_pattern_finds_tokens(bed: Bed) -> None:
    assert TOKEN.search(f"x={bed.keycloak.access_token('alice')}")


def _files(folder: Path) -> list[tuple[str, str]]:
    """Whatever the server has written, but for what the operator gave it."""
    given = {"client-secret", "sqe.toml"}
    files = [path for path in folder.rglob("*") if path.is_file() and path.name not in given]
    return [(str(path.relative_to(folder)), path.read_bytes().decode("latin-1")) for path in files]
