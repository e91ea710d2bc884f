"""Keys of a table's files that end while it is read: the catalog gives others, to whoever reads.

SeaweedFS gives the keys, for an hour. A server between says when they end, gives others, and refuses those that ended.
"""

from __future__ import annotations

import json
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import pytest
from testbed.connected import Connected, composed
from testbed.gate import Gate
from testbed.issuer import Issuer
from testbed.meddler import Answer, Meddler, Seen
from testbed.seaweedfs import REGION, SeaweedFS

from sqe_core.bootstrap import Sqe
from sqe_core.engine.spark.engine import SparkEngine
from sqe_core.spi import ErrorCode
from sqe_core.testing.fakes import make_identity

FILES = 6


@pytest.fixture(scope="module")
def weed(weed: SeaweedFS) -> SeaweedFS:
    weed.allow({"alice": ["s3tables:*"]})
    return weed


@dataclass
class ShortKeys:
    """What the catalog says of the keys that it gives."""

    weed: SeaweedFS
    gate: Gate
    secs: float = 3600
    renews: bool = True
    refusal: Answer | None = None
    renewals: list[Seen] = field(default_factory=list)

    def change(self, method: str, path: str, body: Any) -> Any:
        """Shorten the keys that come with a table."""
        if "storage-credentials" not in body:
            return body
        credentials = self._shortened(body["storage-credentials"])
        config = {**credentials[0]["config"]}
        if self.renews:
            config["client.refresh-credentials-endpoint"] = f"{path}/credentials"
        return {**body, "config": config, "storage-credentials": credentials}

    def serve(self, request: Seen) -> Answer | None:
        """Give keys of the table anew, to whoever asks."""
        if not request.path.endswith("/credentials"):
            return None
        self.renewals.append(request)
        if self.refusal is not None:
            return self.refusal
        headers = {name: request.headers[name] for name in ("authorization", "x-iceberg-access-delegation")}
        table = urllib.request.Request(
            self.weed.catalog_url + request.path.removesuffix("/credentials"), headers=headers
        )
        with urllib.request.urlopen(table, timeout=30) as reply:
            credentials = self._shortened(json.load(reply)["storage-credentials"])
        return 200, {}, json.dumps({"storage-credentials": credentials}).encode()

    def _shortened(self, credentials: list[dict[str, Any]]) -> list[dict[str, Any]]:
        ends = time.time() + self.secs
        for credential in credentials:
            self.gate.ends[credential["config"]["s3.access-key-id"]] = ends
            credential["config"]["s3.session-token-expires-at-ms"] = str(int(ends * 1000))
            credential["config"]["s3.endpoint"] = self.gate.url
        return credentials


@pytest.fixture(scope="module")
def meddler(weed: SeaweedFS) -> Iterator[Meddler]:
    meddler = Meddler(weed.catalog_url)
    yield meddler
    meddler.stop()


@pytest.fixture
def keys(meddler: Meddler, weed: SeaweedFS, gate: Gate) -> Iterator[ShortKeys]:
    short = ShortKeys(weed, gate)
    meddler.change, meddler.serve = short.change, short.serve
    yield short
    gate.pause_secs = 0


@pytest.fixture(scope="module")
def sqe(engine: SparkEngine, meddler: Meddler, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sqe]:
    text = f"""
    [catalogs.lake]
    catalog_url = "{meddler.url}"
    warehouse = "s3://warehouse"
    require_vended_credentials = true
    timeout_secs = 10
    max_retries = 1
    [catalogs.lake.storage]
    s3_region = "{REGION}"
    s3_path_style = true
    """
    sqe = composed(engine, tmp_path_factory.mktemp("keys"), text)
    yield sqe
    sqe.release()


@pytest.fixture
def alice(sqe: Sqe, issuer: Issuer, keys: ShortKeys) -> Iterator[Connected]:
    """Alice, with a table of some files."""
    with closing(Connected(sqe, make_identity("alice", token=issuer.token("alice")), "lake")) as run:
        if ("hr",) not in run("SHOW SCHEMAS"):
            run("CREATE SCHEMA hr")
            run("CREATE TABLE hr.emp (id BIGINT, file BIGINT) PARTITIONED BY (file)")
            run(f"INSERT INTO hr.emp VALUES {', '.join(f'({number}, {number})' for number in range(FILES))}")
        assert keys.renewals == []
        yield run


@pytest.mark.rule("ISO-7", "AUTHN-3")
def test_a_scan_goes_on_with_new_keys_of_the_same_user(alice: Connected, keys: ShortKeys, gate: Gate) -> None:
    keys.secs, gate.pause_secs = 3, 1.2
    gate.seen.clear()
    began = time.monotonic()
    assert alice("SELECT count(id), sum(id) FROM hr.emp") == [(FILES, sum(range(FILES)))]

    assert time.monotonic() - began > keys.secs
    used = [request.key for request in gate.seen if request.path.endswith(".parquet")]
    assert len(set(used)) > 1
    assert all(request.status < 300 for request in gate.seen)
    assert {request.headers["authorization"] for request in keys.renewals} == {f"Bearer {alice.token}"}
    # Not for each request to the store.
    assert 1 <= len(keys.renewals) < len(used)


def test_without_an_address_for_new_keys_a_scan_ends_with_them(alice: Connected, keys: ShortKeys, gate: Gate) -> None:
    keys.secs, keys.renews, gate.pause_secs = 2, False, 1.2
    assert alice.fails("SELECT sum(id) FROM hr.emp").code is ErrorCode.STORAGE_ERROR
    assert any(request.status == 403 for request in gate.seen)


@pytest.mark.parametrize(
    ("status", "code", "text"),
    [
        (403, ErrorCode.ACCESS_DENIED, "gives no new keys"),
        (401, ErrorCode.AUTHENTICATION_FAILED, "login"),
        (503, ErrorCode.CATALOG_UNAVAILABLE, "does not answer"),
        (200, ErrorCode.ACCESS_DENIED, "gives no new keys"),
    ],
)
def test_a_scan_without_new_keys_ends_with_a_clear_error(
    alice: Connected, keys: ShortKeys, gate: Gate, status: int, code: ErrorCode, text: str
) -> None:
    keys.secs, gate.pause_secs = 2, 1.2
    refusal = {"error": {"message": "Zwiebelfisch", "type": "Exception", "code": status}}
    answer = refusal if status != 200 else {"storage-credentials": []}
    keys.refusal = status, {}, json.dumps(answer).encode()
    error = alice.fails("SELECT sum(id) FROM hr.emp")

    assert error.code is code
    assert text in str(error)
    assert "Zwiebelfisch" not in f"{error} {error.hint}"
    keys.secs, keys.refusal, gate.pause_secs = 3600, None, 0
    assert alice("SELECT count(*) FROM hr.emp") == [(FILES,)]


def test_good_keys_are_used_while_the_catalog_gives_no_others(alice: Connected, keys: ShortKeys) -> None:
    keys.secs, keys.refusal = 60, (503, {}, b"{}")
    assert alice("SELECT sum(id) FROM hr.emp") == [(sum(range(FILES)),)]


@pytest.mark.rule("SESS-3")
def test_a_running_scan_asks_with_the_renewed_token(
    alice: Connected, keys: ShortKeys, gate: Gate, issuer: Issuer
) -> None:
    keys.secs, gate.pause_secs = 2, 1.2
    first = alice.token

    def renew() -> None:
        deadline = time.monotonic() + 60
        while not keys.renewals and time.monotonic() < deadline:
            time.sleep(0.05)
        alice.session.renew(make_identity("alice", token=issuer.token("alice", jti="second")))
        alice.session.renew_catalogs()

    renewing = threading.Thread(target=renew)
    renewing.start()
    assert alice("SELECT sum(id) FROM hr.emp") == [(sum(range(FILES)),)]
    renewing.join()
    asked = [request.headers["authorization"] for request in keys.renewals]
    assert (asked[0], asked[-1]) == (f"Bearer {first}", f"Bearer {alice.token}")


@pytest.mark.rule("ISO-7", "ERR-6")
def test_what_asks_for_keys_holds_no_token(alice: Connected, keys: ShortKeys) -> None:
    keys.secs = 60
    held = alice.held_by_tasks("lake", "hr.emp")
    assert "sqe.token-handle" in held
    assert alice.token not in held
