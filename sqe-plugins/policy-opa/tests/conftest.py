"""A server on loopback that answers like OPA, or as badly as a test wants."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from testbed.clocks import TurnedClock
from testbed.making import each_ended

from sqe_http.testing import HttpFake, Reply, Request, make_certificate
from sqe_policy_opa.config import OpaConfig
from sqe_policy_opa.enforcer import OpaEnforcer


def result(value: Any, **envelope: Any) -> Reply:
    """An answer of OPA."""
    return Reply(body={"result": value, **envelope})


class FakeOpa(HttpFake):
    """Decides with Python functions, keeps documents, and tells what it was asked."""

    def __init__(self, certificate: tuple[str, str] | None = None) -> None:
        super().__init__(certificate)
        self.documents: dict[str, Any] = {}
        self.one: Callable[[Any], Any] = one
        self.all: Callable[[Any], Any] = all_of_them

    def config(self, **keys: Any) -> OpaConfig:
        """Settings for this server: patient, without retries."""
        return OpaConfig(**{"url": self.url, "timeout_secs": 20, "max_retries": 0, **keys})

    def honest(self, request: Request) -> Reply:
        """Answer as OPA does."""
        keys = [unquote(part) for part in request.path.removeprefix("/v1/data/").split("/")]
        match request.method, keys:
            case "POST", ["sqe", "policy", "evaluate"]:
                return result(self.one(request.document["input"]))
            case "POST", ["sqe", "authz"]:
                return result(self.all(request.document["input"]), decision_id="d-1")
            case "POST", _:
                return Reply(body=b"{}")
            case "PUT", ["sqe", "grants", table, role]:
                self.documents.setdefault(table, {})[role] = request.document
                return Reply(status=204)
            case "DELETE", ["sqe", "grants", table, role]:
                gone = self.documents.get(table, {}).pop(role, None)
                return Reply(status=404, body=b"{}") if gone is None else Reply(status=204)
            case "GET", ["sqe", "grants"]:
                return result(self.documents) if self.documents else Reply(body=b"{}")
            case "GET", ["sqe", "grants", table] if '"' in table:
                return Reply(status=500, body=b'{"code": "internal_error"}')  # as OPA 1.21 does
            case "GET", ["sqe", "grants", table]:
                return result(self.documents[table]) if table in self.documents else Reply(body=b"{}")
        return Reply(status=404, body=b"{}")


def one(question: Any) -> Any:
    """`people` may be read, `secrets` may not, `clients` with restrictions."""
    resource = question["resource"]
    if resource["catalog"] != "lake":
        return {"allow": False}
    match resource["name"]:
        case "clients":
            return {"allow": True, "row_filters": ["id > 0"], "column_masks": {"name": "hash"}}
        case "people" | None:
            return {"allow": True}
    return {"allow": False}


def all_of_them(question: Any) -> Any:
    """The same for all tables at once."""
    entries: dict[str, Any] = {}
    for table in question["tables"]:
        key = ".".join(part for part in (table["catalog"], table["schema"], table["table"]) if part)
        answer = one({"resource": {"catalog": table["catalog"], "name": table["table"]}})
        if answer["allow"]:
            entries[key] = {
                "row_filters": answer.get("row_filters", []),
                "masks": answer.get("column_masks", {}),
            }
    return {"per_table": entries}


@pytest.fixture
def opa() -> Iterator[FakeOpa]:
    """The server."""
    fake = FakeOpa()
    yield fake
    fake.stop()


@pytest.fixture
def clock() -> TurnedClock:
    """The clock of breaker and listings."""
    return TurnedClock()


@pytest.fixture
def enforcers() -> Iterator[list[OpaEnforcer]]:
    """What a test puts here is closed at its end."""
    made: list[OpaEnforcer] = []
    yield made
    for enforcer in made:
        enforcer.close()


@pytest.fixture
def fake_opa() -> Iterator[Callable[..., FakeOpa]]:
    """Makes further servers."""
    yield from each_ended(lambda certificate=None: FakeOpa(certificate), lambda fake: fake.stop())


@pytest.fixture
def certificate(tmp_path: Path) -> Callable[[str], tuple[str, str]]:
    """Makes certificates that are their own authority, each for an alternative name."""

    def make(name: str) -> tuple[str, str]:
        return make_certificate(tmp_path, name, subject=name.replace(":", "-"))

    return make
