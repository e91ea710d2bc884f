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
    "caused by com.acme.client.ThrottledException: slow down, canary\n\tat x.y\n"
)
CAUSES = ("java.lang.RuntimeException at a.b.C.d(C.java:1)", "com.acme.client.ThrottledException: slow down")


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


def context(*backends: CatalogBackend, used: int | None = None) -> Any:
    mounts = [SimpleNamespace(name=f"c{index}", backend=backend) for index, backend in enumerate(backends)]
    return SimpleNamespace(
        session=SimpleNamespace(catalogs=SimpleNamespace(mounts=lambda: mounts)),
        resolver=SimpleNamespace(used=[] if used is None else [mounts[used]]),
        running=SimpleNamespace(query_id="q1"),
    )


def failure(raw: str, *causes: str) -> EngineFailure:
    return EngineFailure(condition="RuntimeException", sql_state=None, parameters={}, causes=causes, raw=raw)


def test_the_catalog_that_knows_the_exception_says_what_it_means() -> None:
    acme = Acme()
    told = _of_a_catalog(context(Plain(), acme), failure(RAW, *CAUSES))
    assert told is not None
    assert (told.message, told.code) == ("Acme is busy", ErrorCode.CATALOG_UNAVAILABLE)
    assert acme.asked[0].classes == ("RuntimeException", "ThrottledException")
    assert "canary" not in repr(acme.asked[0])


def test_what_nobody_knows_is_the_cores(caplog: pytest.LogCaptureFixture) -> None:
    acme = Acme()
    assert _of_a_catalog(context(Plain(), acme), failure("java.lang.RuntimeException: x")) is None
    acme.broken = True
    assert _of_a_catalog(context(acme), failure(RAW, *CAUSES)) is None
    assert "catalog c0 failed to translate a failure" in caplog.text


@pytest.mark.rule("OBS-4")
@pytest.mark.parametrize("said", ["com.acme.client.ThrottledException", "\ncom.acme.client.ThrottledException: x"])
def test_what_an_exception_says_is_no_exception(said: str) -> None:
    """Or else whoever writes a value chooses what is told and audited of it."""
    cause = "org.apache.spark.SparkNumberFormatException"
    told = failure(f"{cause}: [CAST_INVALID_INPUT] The value '{said}' of the type", f"{cause} at a.B.c(B.java:1)")
    acme = Acme()
    assert _of_a_catalog(context(acme), told) is None
    assert acme.asked[0].classes == ("RuntimeException", "SparkNumberFormatException")


def test_catalogs_of_other_statements_say_nothing() -> None:
    other = Acme()
    assert _of_a_catalog(context(Plain(), other, used=0), failure(RAW, *CAUSES)) is None
    assert not other.asked
    assert _of_a_catalog(context(Plain(), other, used=1), failure(RAW, *CAUSES)) is not None
