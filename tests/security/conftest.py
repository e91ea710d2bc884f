"""Sessions below policies that the test writes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest
from governed import Govern, Governed, WrittenPolicies

from sqe_core.bootstrap import EMBEDDED_CATALOG, EmbeddedSqe, build
from sqe_core.engine.spark.engine import SparkEngine
from sqe_core.policy.cache import DecisionCache
from sqe_core.policy.masks import MaskWriter
from sqe_core.query.run.admission import QueryLimits
from sqe_core.spi.identity import Identity, Secret
from sqe_core.spi.policy import Decision


@pytest.fixture(scope="module")
def govern(sqe: EmbeddedSqe, engine: SparkEngine) -> Iterator[Govern]:
    """Opens sessions below policies, on the warehouse of `sqe`, whose own session is unrestricted."""

    opened: list[Governed] = []

    def make(
        decisions: Mapping[str, Decision], *, identity: Identity | None = None, canaries: frozenset[str] = frozenset()
    ) -> Governed:
        mount = sqe.session.catalogs.find(EMBEDDED_CATALOG)
        assert mount is not None
        policies = WrittenPolicies(dict(decisions))
        governed = build(
            engine=engine,
            mounts=[mount],
            enforcers=[policies],
            masks=MaskWriter(key=Secret("mask key")),
            decisions=DecisionCache(ttl_secs=0),
            limits=QueryLimits(timeout_secs=60, max_result_rows=0, max_sql_bytes=1 << 20),
        )
        who = identity or Identity(issuer="test", subject="analyst", username="analyst", provider="test")
        session = governed.open_session(who, catalog=EMBEDDED_CATALOG, protocol="test")
        opened.append(Governed(governed, session, policies, canaries))
        return opened[-1]

    yield make
    for each in opened:
        each.sqe.service.close_session(each.session)
