"""Requests for a table's files that the catalog signs, for the person who reads or writes.

SeaweedFS is the store and the catalog; what it says of signing, and the signer, stand between.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from testbed.connected import Connected, composed
from testbed.gate import Gate
from testbed.issuer import Issuer
from testbed.meddler import Answer, Meddler, Seen
from testbed.seaweedfs import BROWSE, READ, REGION, SeaweedFS
from testbed.signer import READ as MAY_READ
from testbed.signer import WRITE as MAY_WRITE
from testbed.signer import Signer

from sqe_core.bootstrap import Sqe
from sqe_core.engine.spark.engine import SparkEngine
from sqe_core.spi import ErrorCode
from sqe_core.testing.fakes import make_identity

SIGNING = {"s3.remote-signing-enabled": "true"}
OLDER_PATH = "v1/aws/s3/sign"


@pytest.fixture(scope="module")
def weed(weed: SeaweedFS) -> SeaweedFS:
    weed.allow({"alice": ["s3tables:*"], "bob": [*BROWSE, *READ, "s3tables:UpdateTableMetadataLocation"]})
    return weed


class SigningCatalog(Meddler):
    """Gives no keys, and signs."""

    def __init__(self, weed: SeaweedFS, gate: Gate) -> None:
        super().__init__(weed.catalog_url)
        self.gate = gate
        self.signer = Signer(weed.access_key, weed.secret_key, REGION)
        self.config: dict[str, str] = SIGNING
        self.change = self._without_keys
        self.serve = self._sign

    def _without_keys(self, method: str, path: str, body: Any) -> Any:
        if "metadata" not in body:
            return body
        store = {"s3.endpoint": self.gate.url, "s3.path-style-access": "true", "client.region": REGION}
        body.pop("storage-credentials", None)
        return {**body, "config": {**store, **self.config}}

    def _sign(self, request: Seen) -> Answer | None:
        return self.signer.answer(request) if request.method == "POST" and request.path.endswith("/sign") else None

    def signing_paths(self) -> set[str]:
        return {seen.path for seen in self.seen if seen.path.endswith("/sign")}


@pytest.fixture(scope="module")
def catalog(weed: SeaweedFS, gate: Gate) -> Iterator[SigningCatalog]:
    catalog = SigningCatalog(weed, gate)
    yield catalog
    catalog.stop()


@pytest.fixture(scope="module")
def sqe(engine: SparkEngine, catalog: SigningCatalog, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sqe]:
    text = f"""
    [catalogs.lake]
    catalog_url = "{catalog.url}"
    warehouse = "s3://warehouse"
    access_delegation = "remote-signing"
    timeout_secs = 10
    max_retries = 1
    [catalogs.lake.storage]
    s3_region = "{REGION}"
    """
    sqe = composed(engine, tmp_path_factory.mktemp("signing"), text)
    yield sqe
    sqe.release()


@pytest.fixture
def person(sqe: Sqe, issuer: Issuer, catalog: SigningCatalog) -> Iterator[Callable[[str, frozenset[str]], Connected]]:
    opened: list[Connected] = []

    def connect(username: str, rights: frozenset[str]) -> Connected:
        token = issuer.token(username, jti=str(len(opened)))
        catalog.signer.rights[token] = rights
        opened.append(Connected(sqe, make_identity(username, token=token), "lake"))
        return opened[-1]

    yield connect
    for each in opened:
        each.close()


@pytest.fixture
def alice(person: Callable[[str, frozenset[str]], Connected], catalog: SigningCatalog, gate: Gate) -> Connected:
    """Alice, with `hr.emp`."""
    catalog.config, catalog.signer.changes = SIGNING, {}
    run = person("alice", MAY_WRITE)
    if ("hr",) not in run("SHOW SCHEMAS"):
        run("CREATE SCHEMA hr")
        run("CREATE TABLE hr.emp (id BIGINT, name VARCHAR)")
        run("INSERT INTO hr.emp VALUES (1, 'ann')")
    for seen in (gate.seen, catalog.seen, catalog.signer.signed, catalog.signer.refused):
        seen.clear()
    return run


@pytest.mark.rule("ISO-7", "AUTHN-3")
def test_reads_and_writes_are_signed_for_the_user(
    alice: Connected, catalog: SigningCatalog, gate: Gate, weed: SeaweedFS
) -> None:
    alice("INSERT INTO hr.emp VALUES (2, 'bob'), (3, 'cyd')")
    alice("UPDATE hr.emp SET name = 'bea' WHERE id = 2")
    alice("DELETE FROM hr.emp WHERE id = 3")
    assert alice("SELECT id, name FROM hr.emp ORDER BY id") == [(1, "ann"), (2, "bea")]

    assert {request.key for request in gate.seen} == {weed.access_key}
    assert all(request.status < 300 or request.status == 404 for request in gate.seen)
    assert {token for token, _, _ in catalog.signer.signed} == {alice.token}
    assert {method for _, method, _ in catalog.signer.signed} >= {"GET", "PUT"}
    assert len(catalog.signer.signed) == len(gate.seen)
    assert catalog.signer.refused == []
    assert catalog.signing_paths() == {"/v1/warehouse/namespaces/hr/tables/emp/sign"}
    assert all(alice.token not in str(seen) for seen in gate.seen)


@pytest.mark.parametrize("name", ["s3.", ""])
@pytest.mark.parametrize("said", [SIGNING, {"s3.signer": "S3V4RestSigner"}], ids=["enabled", "signer"])
def test_a_catalog_says_where_it_signs(
    alice: Connected, catalog: SigningCatalog, name: str, said: dict[str, str]
) -> None:
    catalog.config = {**said, f"{name}signer.uri": catalog.url, f"{name}signer.endpoint": OLDER_PATH}
    assert alice("SELECT count(*) > 0, count(name) > 0 FROM hr.emp") == [(True, True)]
    assert catalog.signing_paths() == {f"/{OLDER_PATH}"}


@pytest.mark.rule("ISO-7", "ISO-8")
def test_what_was_signed_for_one_user_serves_no_other(
    alice: Connected, person: Callable[[str, frozenset[str]], Connected], catalog: SigningCatalog
) -> None:
    """Iceberg's own signer keeps signatures for all users of a JVM."""
    before = alice("SELECT id, name FROM hr.emp ORDER BY id")
    bob, reader = person("bob", frozenset()), person("bob", MAY_READ)
    error = bob.fails("SELECT id, name FROM hr.emp ORDER BY id")
    assert error.code is ErrorCode.ACCESS_DENIED
    assert "Zwiebelfisch" not in f"{error} {error.hint}"
    assert {token for token, _, _ in catalog.signer.refused} == {bob.token}

    assert reader("SELECT id, name FROM hr.emp ORDER BY id") == before
    assert reader.fails("INSERT INTO hr.emp VALUES (9, 'eve')").code is ErrorCode.ACCESS_DENIED
    assert alice("SELECT id, name FROM hr.emp ORDER BY id") == before


@pytest.mark.rule("ISO-7")
def test_a_token_goes_to_no_other_signer(
    alice: Connected, catalog: SigningCatalog, weed: SeaweedFS, gate: Gate
) -> None:
    elsewhere = SigningCatalog(weed, gate)
    for config in (
        {"s3.signer.uri": elsewhere.url},
        {"signer.uri": elsewhere.url},
        {"s3.signer.endpoint": f"{elsewhere.url}/{OLDER_PATH}"},
        {"s3.signer.endpoint": elsewhere.url.removeprefix("http:") + "/sign"},
    ):
        catalog.config = {**SIGNING, **config}
        error = alice.fails("SELECT name FROM hr.emp")
        assert "another server" in str(error)
        assert error.hint is not None
        assert "vended-credentials" in error.hint
    elsewhere.stop()
    assert elsewhere.seen == []


@pytest.mark.rule("ISO-7")
@pytest.mark.parametrize("uri", ["{other}/warehouse/hr/emp/x", "{store}/warehouse/hr/emp/metadata/other"])
def test_a_signature_for_another_place_is_not_used(
    alice: Connected, catalog: SigningCatalog, gate: Gate, weed: SeaweedFS, uri: str
) -> None:
    other = Gate(weed.s3_url)
    catalog.signer.changes = {"uri": uri.format(other=other.url, store=gate.url)}
    alice.fails("SELECT name FROM hr.emp")
    alice.fails("INSERT INTO hr.emp VALUES (8, 'x')")
    other.stop()
    assert other.seen == gate.seen == []


@pytest.mark.rule("ISO-7", "ERR-6")
def test_what_has_requests_signed_holds_no_token(alice: Connected) -> None:
    held = alice.held_by_tasks("lake", "hr.emp")
    assert "s3.remote-signing-enabled" in held
    assert alice.token not in held
