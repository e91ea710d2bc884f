"""Our server between a real identity provider and two real catalogs, and clients that people log in with."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import adbc_driver_flightsql.dbapi as flight_sql
import psutil
import pytest
from testbed.keycloak import CLIENT_SECRET, SUBJECTS, Keycloak
from testbed.nessie import Nessie
from testbed.seaweedfs import REGION, SeaweedFS
from testbed.sqe_server import SqeServer

ALICE, BOB = SUBJECTS["alice"], SUBJECTS["bob"]
KEYS_SECS = 30
"""How old the keys of the identity provider get in the server, the least that it takes."""


@dataclass(frozen=True)
class Bed:
    """The servers around ours."""

    keycloak: Keycloak
    store: SeaweedFS
    nessie: Nessie


class Server(SqeServer):
    """Our server, which talks at debug level."""

    def __init__(self, bed: Bed, folder: Path) -> None:
        secret = folder / "client-secret"
        secret.touch(0o600)
        secret.write_text(CLIENT_SECRET)
        self.errors: list[str] = []
        """The texts of all errors that its clients saw."""
        self.tokens: set[str] = set()
        """The tokens that its clients sent."""
        super().__init__(folder, configuration(bed, folder), SQE_LOG="trace")

    def connect(self, user: str) -> flight_sql.Connection:
        """Log in with user and password, which the server sends to the identity provider."""
        return flight_sql.connect(self.uri, db_kwargs={"username": user, "password": user}, autocommit=True)

    def connect_with(self, token: str) -> flight_sql.Connection:
        """Log in with a token that the client brings."""
        self.tokens.add(token)
        header = "adbc.flight.sql.authorization_header"
        return flight_sql.connect(self.uri, db_kwargs={header: f"Bearer {token}"}, autocommit=True)

    def run(self, connection: flight_sql.Connection, text: str) -> list[tuple[Any, ...]]:
        """Return the rows of a statement."""
        try:
            with connection.cursor() as cursor:
                cursor.execute(text)
                return [tuple(row) for row in cursor.fetchall()]
        except Exception as error:
            self.errors.append(str(error))
            raise

    def refusal(self, connection: flight_sql.Connection, text: str) -> str:
        """Return what a client reads that may not do something."""
        with pytest.raises(flight_sql.Error) as raised:
            self.run(connection, text)
        return str(raised.value)

    def metric(self, name: str) -> float:
        """Return the sum of a metric's samples."""
        return sum(value for (each, _), value in self.samples().items() if each == name)

    def audit(self) -> list[dict[str, Any]]:
        """Return the events of the audit log."""
        return [json.loads(line) for line in (self.folder / "audit.log").read_text().splitlines()]

    def processes(self) -> Sequence[psutil.Process]:
        """Return it and its children."""
        return [psutil.Process(self.process.pid), *self.children()]


PAGE = Path(__file__).parents[2] / "docs/identity.md"


def configuration(bed: Bed, folder: Path) -> str:
    """The example of the page with the addresses of the test, and what only the tests need."""
    (example,) = re.findall(r"```toml\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    tls = example[example.index("[coordinator.tls]") : example.index("[[auth.providers]]")]
    # Tests cannot wait for minutes until a withdrawn key counts no more.
    quick = f"leeway_secs = 0\njwks_refresh_secs = {KEYS_SECS}\ntimeout_secs = 60\n"
    changes = {
        tls: "[auth]\ntoken_refresh_buffer_secs = 6\n",
        "https://login.example.com/realms/main": bed.keycloak.issuer,
        'groups_claim = "groups"\n': f'groups_claim = "groups"\n{quick}',
        "/run/secrets/sqe-client": str(folder / "client-secret"),
        "https://catalog.example.com": bed.store.catalog_url,
        "https://s3.example.com": bed.store.s3_url,
        "s3_path_style = true\n": "s3_path_style = true\ns3_allow_http = true\n",
    }
    for before, after in changes.items():
        assert before in example, f"{PAGE.name} has no {before!r} any more"
        example = example.replace(before, after)
    return f"""{example}
[metrics]
audit_log_path = "{folder / "audit.log"}"
[catalogs.nessie]
type = "nessie"
catalog_url = "{bed.nessie.catalog_url}"
warehouse = "lake"
[catalogs.nessie.storage]
s3_endpoint = "{bed.store.s3_url}"
s3_region = "{REGION}"
s3_path_style = true
s3_allow_http = true
s3_access_key = "{bed.store.access_key}"
s3_secret_key = "{bed.store.secret_key}"
"""
