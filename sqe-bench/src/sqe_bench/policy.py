"""What policies cost: no policy beside no engine, filter and mask beside the same as a view, the decision itself.

Governed and plain statements take turns, so that a busy machine slows both.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqe_bench import tpch
from sqe_core.bootstrap import EMBEDDED_CATALOG, EmbeddedSqe, Sqe, build
from sqe_core.engine.spark.engine import EngineOptions, SparkEngine
from sqe_core.policy.authorizer import AccessRequest, Authorizer, Circumstances
from sqe_core.policy.builtin import AllowAllEnforcer
from sqe_core.policy.cache import DecisionCache
from sqe_core.policy.grants.enforcer import GrantsEnforcer
from sqe_core.policy.grants.sqlite import MemoryStore
from sqe_core.query.run.admission import QueryLimits
from sqe_core.session.session import Session
from sqe_core.spi.errors import InternalError
from sqe_core.spi.identity import Identity
from sqe_core.spi.names import ObjectName
from sqe_core.spi.policy import Action, PolicyEnforcer, PolicyRequest, PolicyResponse

NAME = "policy"
_MOST_WITHOUT_POLICY = 1.02
_MOST_RESTRICTED = 1.15
_MOST_CACHED_MS = 1.0
_TABLES = 20
_VIEWS = "by_hand"
_MANY = "many"


def _person(name: str, *roles: str) -> Identity:
    return Identity(issuer="bench", subject=name, username=name, provider="bench", roles=frozenset(roles))


_ADMIN, _AUDITOR, _ANALYST = _person("admin", "service_admin"), _person("auditor"), _person("analyst", "analyst")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Policy:
    """What the analyst sees of a table; `masks` in the type of their columns."""

    table: str
    rows: str
    masks: Mapping[str, str]


_POLICIES = (
    _Policy(
        table="lineitem",
        rows="l_shipinstruct <> 'NONE' AND l_suppkey > 100",
        masks={
            "l_extendedprice": "CAST(round(l_extendedprice, -1) AS decimal(15,2))",
            "l_comment": "concat(substr(l_comment, 1, 2), '***')",
        },
    ),
    _Policy(
        table="orders",
        rows="o_orderpriority <> '5-LOW'",
        masks={"o_clerk": "'***'", "o_totalprice": "CAST(round(o_totalprice, -2) AS decimal(15,2))"},
    ),
    _Policy(
        table="customer",
        rows="c_mktsegment IN ('BUILDING', 'MACHINERY', 'FURNITURE')",
        masks={"c_phone": "concat(substr(c_phone, 1, 2), '-XXX')", "c_name": "sha256(c_name)"},
    ),
)

_RESTRICTED = re.compile(rf"\b({'|'.join(policy.table for policy in _POLICIES)})\b")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--scale", type=float, default=1, help="scale factor of TPC-H (1)")
    parser.add_argument("--rounds", type=int, default=15, help="measured rounds of each query (15)")
    parser.add_argument("--warmup", type=int, default=3, help="rounds of each query that are not counted (3)")
    parser.add_argument("--queries", default="", help="only these, with commas between them (all)")
    parser.add_argument("--cache", type=Path, default=tpch.default_folder(), help="where the data is kept")


def run(arguments: argparse.Namespace) -> Mapping[str, Any]:
    """Measure and print."""
    chosen = [name.strip() for name in arguments.queries.split(",") if name.strip()]
    queries = {name: sql for name, sql in tpch.QUERIES.items() if not chosen or name in chosen}
    engine = SparkEngine(EngineOptions())
    engine.start()
    try:
        engine.wait_ready(timeout_secs=600)
        embedded = tpch.open_tpch(arguments.cache, arguments.scale, engine)
        try:
            with _sides(embedded, engine) as sides:
                return _measure(sides, queries, warmup=arguments.warmup, rounds=arguments.rounds)
        finally:
            embedded.close()
    finally:
        engine.stop()


class _Asked(GrantsEnforcer):
    """The built-in engine, with a count of what it is asked."""

    def __init__(self) -> None:
        super().__init__(MemoryStore(now=_now), now=_now)
        self.requests = 0

    def decide(self, request: PolicyRequest) -> PolicyResponse:
        self.requests += 1
        return super().decide(request)


class _Keepable(PolicyEnforcer):
    """The same answers from an engine that lets them be kept; `grants` looks at its store each time."""

    def __init__(self, engine: PolicyEnforcer) -> None:
        self._engine = engine
        self.requests = 0

    def decide(self, request: PolicyRequest) -> PolicyResponse:
        self.requests += 1
        response = self._engine.decide(request)
        return replace(response, decisions=tuple(replace(decision, ttl_secs=None) for decision in response.decisions))


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class _User:
    """A session, and what it says instead of the names of tables."""

    sqe: Sqe
    session: Session
    by_hand: bool = False

    def rows(self, sql: str) -> list[dict[str, Any]]:
        text = _RESTRICTED.sub(rf"{_VIEWS}.\1", sql) if self.by_hand else sql
        result = self.sqe.service.execute(self.session, text)
        return [row for batch in result for row in batch.to_pylist()]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sides:
    """Everybody who takes part; `views` reads without an engine what `analyst` reads below policies."""

    engine: SparkEngine
    asked: _Asked
    plain: _User
    views: _User
    auditor: _User
    analyst: _User
    accesses: tuple[AccessRequest, ...]
    """The tables of the statement over many tables."""


@contextmanager
def _sides(embedded: EmbeddedSqe, engine: SparkEngine) -> Iterator[_Sides]:
    mount = embedded.session.catalogs.find(EMBEDDED_CATALOG)
    assert mount is not None
    asked = _Asked()
    limits = QueryLimits(timeout_secs=0, max_result_rows=0, max_sql_bytes=1 << 20)
    bare = build(engine=engine, mounts=[mount], enforcers=[AllowAllEnforcer()], limits=limits)
    governed = build(
        engine=engine,
        mounts=[mount],
        enforcers=[asked],
        limits=limits,
        admins=lambda identity: "service_admin" in identity.roles,
    )

    def user(sqe: Sqe, who: Identity, **more: bool) -> _User:
        session = sqe.open_session(who, catalog=EMBEDDED_CATALOG, protocol="bench")
        session.use(EMBEDDED_CATALOG, (tpch.SCHEMA,))
        return _User(sqe=sqe, session=session, **more)

    admin, plain = user(governed, _ADMIN), user(bare, _AUDITOR)
    sides = _Sides(
        engine=engine,
        asked=asked,
        plain=plain,
        views=user(bare, _AUDITOR, by_hand=True),
        auditor=user(governed, _AUDITOR),
        analyst=user(governed, _ANALYST),
        accesses=_many_tables(embedded, plain),
    )
    _write_views(plain)
    _grant(admin)
    try:
        yield sides
    finally:
        for each in (admin, plain, sides.views, sides.auditor, sides.analyst):
            each.sqe.service.close_session(each.session)
        asked.close()


def _many_tables(embedded: EmbeddedSqe, plain: _User) -> tuple[AccessRequest, ...]:
    mount = embedded.session.catalogs.find(EMBEDDED_CATALOG)
    assert mount is not None
    plain.rows(f"CREATE SCHEMA IF NOT EXISTS {_MANY}")
    for number in range(_TABLES):
        plain.rows(f"CREATE TABLE IF NOT EXISTS {_MANY}.t{number} (id bigint, name varchar)")
    metadata = embedded.session.metadata(mount)
    return tuple(
        AccessRequest(
            name=ObjectName(catalog=EMBEDDED_CATALOG, namespace=(_MANY,), name=f"t{number}"),
            action=Action.SELECT,
            loaded=metadata.load_table((_MANY,), f"t{number}"),
        )
        for number in range(_TABLES)
    )


def _write_views(plain: _User) -> None:
    plain.rows(f"CREATE SCHEMA IF NOT EXISTS {_VIEWS}")
    for policy in _POLICIES:
        columns = [row["column_name"] for row in plain.rows(_columns_of(policy.table))]
        shown = ", ".join(f"{policy.masks[name]} AS {name}" if name in policy.masks else name for name in columns)
        plain.rows(
            f"CREATE OR REPLACE VIEW {_VIEWS}.{policy.table} AS"
            f" SELECT {shown} FROM {tpch.SCHEMA}.{policy.table} WHERE {policy.rows}"
        )


def _columns_of(table: str) -> str:
    return (
        "SELECT column_name FROM information_schema.columns"
        f" WHERE table_schema = '{tpch.SCHEMA}' AND table_name = '{table}' ORDER BY ordinal_position"
    )


def _grant(admin: _User) -> None:
    restricted = {policy.table for policy in _POLICIES}
    for table in tpch.TABLES:
        admin.rows(f"GRANT SELECT ON {table} TO USER auditor")
        if table not in restricted:
            admin.rows(f"GRANT SELECT ON {table} TO ROLE analyst")
    admin.rows(f"GRANT SELECT ON ALL TABLES IN SCHEMA {_MANY} TO USER auditor")
    for policy in _POLICIES:
        masks = ", ".join(f"{column} = {mask}" for column, mask in policy.masks.items())
        admin.rows(f"GRANT SELECT ON {policy.table} TO ROLE analyst ROWS WHERE {policy.rows} MASKED WITH ({masks})")


def _measure(sides: _Sides, queries: Mapping[str, str], *, warmup: int, rounds: int) -> Mapping[str, Any]:
    load = [os.getloadavg()[0]]
    free = _compare("no policy", sides, queries, sides.auditor, sides.plain, warmup=warmup, rounds=rounds)
    restricted = _compare("filter + mask", sides, queries, sides.analyst, sides.views, warmup=warmup, rounds=rounds)
    requests = _requests(sides)
    cached_ms = _cached_ms(sides)
    grants_ms = _decision_ms(sides.asked, sides.auditor.session.identity, sides.accesses)
    load.append(os.getloadavg()[0])
    without, within = _mean(free), _mean(restricted)
    print(f"no policy for this user: {without:.3f} of ungoverned (at most {_MOST_WITHOUT_POLICY})")
    print(f"filter and mask: {within:.3f} of the same as a view (at most {_MOST_RESTRICTED})")
    print(f"requests to the engine for a statement over {_TABLES} tables: {requests}")
    print(f"a cached decision about {_TABLES} tables: {cached_ms:.3f} ms (less than {_MOST_CACHED_MS:g})")
    print(f"a decision of the built-in engine about them, which looks at its store: {grants_ms:.3f} ms")
    print(f"load of the machine: {load[0]:.1f} before, {load[1]:.1f} after, on {os.cpu_count()} cores")
    return {
        "passed": without <= _MOST_WITHOUT_POLICY
        and within <= _MOST_RESTRICTED
        and requests == 1
        and cached_ms < _MOST_CACHED_MS,
        "rounds": rounds,
        "load": load,
        "cores": os.cpu_count(),
        "no_policy": {"ratio": without, "queries": free},
        "filter_and_mask": {"ratio": within, "queries": restricted},
        "requests_for_many_tables": requests,
        "cached_decision_ms": cached_ms,
        "grants_decision_ms": grants_ms,
    }


def _mean(queries: Mapping[str, Mapping[str, float]]) -> float:
    return statistics.geometric_mean(entry["ratio"] for entry in queries.values())


def _compare(
    title: str,
    sides: _Sides,
    queries: Mapping[str, str],
    governed: _User,
    plain: _User,
    *,
    warmup: int,
    rounds: int,
) -> Mapping[str, Mapping[str, float]]:
    """Each query governed and plain in turn, and its planning alone."""
    print(f"{title:<16}{'plain ms':>12}{'governed ms':>13}{'ratio':>8}{'CPU':>8}")
    found: dict[str, Mapping[str, float]] = {}
    pid = sides.engine.pid
    assert pid is not None
    for name, sql in queries.items():
        if governed.rows(sql) != plain.rows(sql):
            raise InternalError(f"{name} has another result below the policy than by hand")
        _Turns(pid).take(governed, plain, sql, rounds=warmup)
        times = _Turns(pid)
        times.take(governed, plain, sql, rounds=rounds)
        found[name] = times.summary()
        entry = found[name]
        print(
            f"{name:<16}{entry['plain_ms']:>12.1f}{entry['governed_ms']:>13.1f}"
            f"{entry['ratio']:>8.3f}{entry['cpu_ratio']:>8.3f}"
        )
    return found


@dataclass(slots=True)
class _Turns:
    """Times of two sides that take turns. The processors' time tells what a neighbour's load does not change."""

    engine_pid: int
    governed: list[float] = field(default_factory=list)
    plain: list[float] = field(default_factory=list)
    governed_cpu: float = 0
    plain_cpu: float = 0

    def take(self, governed: _User, plain: _User, sql: str, *, rounds: int) -> None:
        for place in range(rounds):
            # Who goes first changes, so that neither always finds the other's caches warm.
            for user in (governed, plain) if place % 2 else (plain, governed):
                spent, started = self._spent(), time.perf_counter()
                user.rows(sql)
                taken = (time.perf_counter() - started) * 1000
                spent = self._spent() - spent
                if user is governed:
                    self.governed.append(taken)
                    self.governed_cpu += spent
                else:
                    self.plain.append(taken)
                    self.plain_cpu += spent

    def summary(self) -> Mapping[str, float]:
        """The ratio is the median of those of each round: neighbours in time have the same load."""
        ratios = [own / other for own, other in zip(self.governed, self.plain, strict=True)]
        return {
            "plain_ms": statistics.median(self.plain),
            "governed_ms": statistics.median(self.governed),
            "ratio": statistics.median(ratios),
            "cpu_ratio": self.governed_cpu / self.plain_cpu if self.plain_cpu else 1.0,
        }

    def _spent(self) -> float:
        stat = Path(f"/proc/{self.engine_pid}/stat").read_text().rpartition(")")[2].split()
        return time.process_time() + (int(stat[11]) + int(stat[12])) / os.sysconf("SC_CLK_TCK")


def _requests(sides: _Sides) -> int:
    """How often the engine is asked about one statement over many tables, when nothing is cached."""
    sql = " UNION ALL ".join(f"SELECT id, name FROM {_MANY}.t{number}" for number in range(_TABLES))
    before = sides.asked.requests
    sides.auditor.rows(sql)
    return sides.asked.requests - before


def _decision_ms(engine: PolicyEnforcer, identity: Identity, accesses: Sequence[AccessRequest]) -> float:
    """How long a decision takes when the same was decided before."""
    authorizer = Authorizer([engine], cache=DecisionCache())
    circumstances = Circumstances(protocol="bench", query_id="bench")
    authorizer.decide(identity, accesses, circumstances)
    times: list[float] = []
    for _ in range(500):
        started = time.perf_counter()
        authorizer.decide(identity, accesses, circumstances)
        times.append((time.perf_counter() - started) * 1000)
    return statistics.median(times)


def _cached_ms(sides: _Sides) -> float:
    keepable = _Keepable(sides.asked)
    taken = _decision_ms(keepable, sides.auditor.session.identity, sides.accesses)
    if keepable.requests != 1:
        raise InternalError("The decisions were not cached")
    return taken
