"""Sessions below policies that the test writes."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence

import pytest
from governed import ANALYST, Govern, Governed, WrittenPolicies
from testbed.making import each_ended
from testbed.trino_governed import TrinoGoverned

from sqe_core.bootstrap import EMBEDDED_CATALOG, EmbeddedSqe, build
from sqe_core.catalog.registry import Mount
from sqe_core.engine.spark.engine import SparkEngine
from sqe_core.policy.cache import DecisionCache
from sqe_core.policy.masks import MaskWriter
from sqe_core.query.run.admission import QueryLimits
from sqe_core.spi.identity import Identity, Secret
from sqe_core.spi.policy import Decision, PolicyEnforcer

_THROUGH_TRINO = {
    "test_security_names_of_errors",
    "test_security_policies",
    "test_security_restricted",
    "test_security_views",
}
_LIMITS = QueryLimits(timeout_secs=60, max_result_rows=0, max_sql_bytes=1 << 20)


@pytest.fixture(scope="module")
def govern(request: pytest.FixtureRequest, sqe: EmbeddedSqe, engine: SparkEngine) -> Iterator[Govern]:
    """Opens sessions below policies, on the warehouse of `sqe`, whose own session is unrestricted.

    SQE_TESTS_DOOR says how all of them are asked: `trino`, or `core`. Without it some files go through Trino's door.
    """
    door = os.environ.get("SQE_TESTS_DOOR")
    through_trino = door == "trino" or (door is None and request.path.stem in _THROUGH_TRINO)

    def make(
        policies: Mapping[str, Decision] | PolicyEnforcer,
        *,
        identity: Identity = ANALYST,
        canaries: frozenset[str] = frozenset(),
        mounts: Sequence[Mount] = (),
        limits: QueryLimits = _LIMITS,
    ) -> Governed:
        mount = sqe.session.catalogs.find(EMBEDDED_CATALOG)
        assert mount is not None
        enforcer = policies if isinstance(policies, PolicyEnforcer) else WrittenPolicies(dict(policies))
        governed = build(
            engine=engine,
            mounts=[mount, *mounts],
            enforcers=[enforcer],
            masks=MaskWriter(key=Secret("mask key")),
            decisions=DecisionCache(ttl_secs=0),
            limits=limits,
        )
        session = governed.open_session(identity, catalog=EMBEDDED_CATALOG, protocol="test")
        kind = TrinoGoverned if through_trino else Governed
        return kind(governed, session, enforcer, canaries)

    def end(each: Governed) -> None:
        if isinstance(each, TrinoGoverned):
            each.close()
        each.sqe.service.close_session(each.session)

    yield from each_ended(make, end)
