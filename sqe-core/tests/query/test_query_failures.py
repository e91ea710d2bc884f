"""What a catalog of a plugin says of its own libraries' exceptions is what a client reads."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from sqe_core.engine.port import EngineFailure
from sqe_core.query.run.failures import _of_a_catalog
from sqe_core.spi import CatalogBackend, CatalogFailure, ErrorCode, ExternalError, Identity, SqeError

RAW = (
    "java.lang.RuntimeException: the policy is canary\n\tat a.b.C.d(C.java:1)\n"
    "Caused by: com.acme.client.ThrottledException: slow down, canary\n\tat x.y\n"
)


class Plain(CatalogBackend):
    def spark_properties(self, identity: Identity) -> dict[str, str]:
        return {}


class Acme(Plain):
    def __init__(self) -> None:
        self.asked: list[CatalogFailure] = []
        self.broken = False

    def translate(self, failure: CatalogFailure) -> SqeError | None:
        self.asked.append(failure)
        if self.broken:
            raise ValueError
        if "ThrottledException" in failure.classes:
            return ExternalError("Acme is busy", code=ErrorCode.CATALOG_UNAVAILABLE)
        return None


def context(*backends: CatalogBackend) -> Any:
    mounts = [SimpleNamespace(name=f"c{index}", backend=backend) for index, backend in enumerate(backends)]
    catalogs = SimpleNamespace(mounts=lambda: mounts)
    return SimpleNamespace(session=SimpleNamespace(catalogs=catalogs), running=SimpleNamespace(query_id="q1"))


def failure(raw: str) -> EngineFailure:
    return EngineFailure(condition="RuntimeException", sql_state=None, parameters={}, raw=raw)


def test_the_catalog_that_knows_the_exception_says_what_it_means() -> None:
    acme = Acme()
    told = _of_a_catalog(context(Plain(), acme), failure(RAW))
    assert told is not None
    assert (told.message, told.code) == ("Acme is busy", ErrorCode.CATALOG_UNAVAILABLE)
    assert acme.asked[0].classes == ("RuntimeException", "ThrottledException")
    assert "canary" not in repr(acme.asked[0])


def test_what_nobody_knows_is_the_cores(caplog: pytest.LogCaptureFixture) -> None:
    acme = Acme()
    assert _of_a_catalog(context(Plain(), acme), failure("java.lang.RuntimeException: x")) is None
    acme.broken = True
    assert _of_a_catalog(context(acme), failure(RAW)) is None
    assert "catalog c0 failed to translate a failure" in caplog.text
