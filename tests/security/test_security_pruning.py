"""What reaches the files below a row filter, and that it never fails on a row that is hidden (ENF-15, POL-11)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from governed import Govern, allow

from sqe_core.bootstrap import EmbeddedSqe
from sqe_core.engine.port import AnalysedPlan, EnginePlan
from sqe_core.engine.spark.plan import SparkAnalysedPlan
from sqe_core.engine.spark.session import SparkEngineSession


@pytest.fixture(scope="module", autouse=True)
def tables(sqe: EmbeddedSqe) -> None:
    for sql in (
        "CREATE TABLE wide (id bigint, price decimal(15, 2), day date, divisor integer)",
        "CREATE TABLE narrow (tenth double, word varchar)",
        "INSERT INTO narrow VALUES (10, 'a'), (10, 'b'), (-10, 'a')",
        "INSERT INTO wide VALUES (1, 1.50, DATE '2021-05-06', 1), (2, 2.50, DATE '+294300-01-01', 0)",
    ):
        sqe.execute(sql).close()


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The physical plans of what the sessions analyse from now on."""
    seen: list[str] = []
    analyse = SparkEngineSession.analyse

    def noting(self: SparkEngineSession, plan: EnginePlan, **options: Any) -> AnalysedPlan:
        analysed = analyse(self, plan, **options)
        assert isinstance(analysed, SparkAnalysedPlan)
        rows: list[Any] = json.loads(self.bridge.explain(analysed.handle))
        seen.append(dict(rows)["physical_plan"])
        return analysed

    monkeypatch.setattr(SparkEngineSession, "analyse", noting)
    return seen


@pytest.fixture
def joins_filter_early(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a join of big tables does: the filter of one side makes a Bloom filter for a scan of the other one."""
    analyse = SparkEngineSession.analyse
    bloom = "spark.sql.optimizer.runtime.bloomFilter"

    def early(self: SparkEngineSession, plan: EnginePlan, **options: Any) -> AnalysedPlan:
        self.spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
        self.spark.conf.set(f"{bloom}.applicationSideScanSizeThreshold", "0")
        self.bridge.remember()
        return analyse(self, plan, **options)

    monkeypatch.setattr(SparkEngineSession, "analyse", early)


@pytest.mark.rule("ENF-15")
def test_what_a_join_knows_of_its_other_side_is_asked_above_the_barrier(
    joins_filter_early: None, govern: Govern, plans: list[str]
) -> None:
    # The key of the join fails on the row that is hidden.
    join = "SELECT w.id FROM wide w JOIN narrow n ON 10 / w.divisor = n.tenth WHERE n.word = 'a'"
    analyst = govern({"wide": allow("divisor = 1"), "narrow": allow("tenth > 0")})
    assert analyst.run(join) == [[1]]
    lines = plans[-1].splitlines()
    (asked,) = [number for number, line in enumerate(lines) if "might_contain" in line]
    (scan,) = [number for number, line in enumerate(lines) if "BatchScan" in line and "wide" in line]
    below = [line for line in lines[asked + 1 : scan] if "partition_id" in line.lower()]
    assert below, plans[-1]
    # The other way round: what makes the filter is what the user sees.
    hidden = govern({"wide": allow("divisor = 1"), "narrow": allow("tenth > 10")})
    assert hidden.run(join) == []
    assert "might_contain" in plans[-1]


@pytest.mark.rule("POL-11", "ENF-15")
@pytest.mark.parametrize(
    ("condition", "pushed"),
    [
        ("id < 2", "id < 2"),
        ("price > 1", "price > 1.00"),
        ("price BETWEEN 0.5 AND 2", "price <= 2.00"),
        ("day < '2100-01-01'", "day < "),
    ],
)
def test_a_constant_of_another_width_does_not_keep_a_filter_from_the_files(
    govern: Govern, plans: list[str], condition: str, pushed: str
) -> None:
    analyst = govern({"wide": allow(f"{condition} AND divisor = 1")})
    assert analyst.run("SELECT id FROM wide") == [[1]]
    (scan,) = [line for line in plans[-1].splitlines() if "BatchScan" in line]
    assert pushed in scan.partition("filters=")[2]


@pytest.mark.rule("POL-11")
@pytest.mark.parametrize("condition", ["CAST(day AS timestamp) < TIMESTAMP '2100-01-01'", "CAST(id AS tinyint) = 1"])
def test_a_cast_that_may_fail_hides_the_row(govern: Govern, condition: str) -> None:
    analyst = govern({"wide": allow(condition)})
    assert analyst.run("SELECT id FROM wide") == [[1]]


@pytest.mark.rule("ENF-15", "ENF-17")
def test_a_condition_whose_cast_overflows_on_a_hidden_row_is_not_copied(govern: Govern) -> None:
    analyst = govern({"wide": allow("10 / divisor > 1")})
    assert analyst.run("SELECT id FROM wide WHERE day > TIMESTAMP '2020-01-01 10:00:00'") == [[1]]


def _filters(plans: list[str]) -> str:
    (scan,) = [line for line in plans[-1].splitlines() if "BatchScan" in line]
    return scan.partition("filters=")[2]


@pytest.mark.rule("ENF-15", "POL-11")
def test_a_part_that_could_raise_keeps_no_other_from_the_files(govern: Govern, plans: list[str]) -> None:
    analyst = govern({"wide": allow("id < 2 AND (10 / divisor > 1 AND price > 1)")})
    assert analyst.run("SELECT id FROM wide") == [[1]]
    assert "id < 2" in _filters(plans)
    assert "price > 1.00" in _filters(plans)


@pytest.mark.rule("ENF-15", "POL-11")
def test_a_guard_keeps_its_own_columns_from_the_files_only(govern: Govern, plans: list[str]) -> None:
    analyst = govern({"wide": allow("10 / divisor > 1 OR price > 100")})
    assert analyst.run("SELECT id FROM wide WHERE id < 2 AND divisor = 1") == [[1]]
    assert "id < 2" in _filters(plans)
    assert "divisor" not in _filters(plans)
    assert analyst.run("SELECT id FROM wide WHERE divisor = 0") == []


@pytest.mark.rule("ENF-9")
@pytest.mark.parametrize(
    ("condition", "shown"),
    [
        ("level < 3 OR level > 7", [[1], [4]]),
        ("level NOT BETWEEN 3 AND 7", [[1], [4]]),
        ("NOT (level >= 3 AND level <= 7)", [[1], [4]]),
        ("level <> 5 OR level = 1", [[1], [4]]),
        ("IF(level < 3, true, level > 7)", [[1], [4]]),
        ("level NOT IN (5, 6, NULL)", []),
        ("level <> 5", [[1], [4]]),
        ("level < 3 OR kind <> 'x'", [[1]]),
    ],
)
def test_a_partition_of_null_is_hidden_as_its_condition_says(
    govern: Govern, sqe: EmbeddedSqe, condition: str, shown: list[list[int]]
) -> None:
    sqe.execute(
        "CREATE OR REPLACE TABLE parts (id bigint, level integer, kind varchar)"
        " WITH (partitioning = ARRAY['level', 'kind'])"
    ).close()
    sqe.execute(
        "INSERT INTO parts VALUES (1, 1, 'x'), (2, NULL, 'x'), (3, 5, 'x'), (4, 9, 'x'), (5, NULL, NULL)"
    ).close()
    analyst = govern({"parts": allow(condition)})
    assert sorted(analyst.run("SELECT id FROM parts")) == shown


@pytest.mark.rule("ENF-15", "ENF-17", "VIEW-2")
def test_a_condition_on_a_computed_column_of_a_view_meets_no_hidden_row(govern: Govern, sqe: EmbeddedSqe) -> None:
    for sql in (
        "CREATE TABLE texts (id bigint, place integer, number varchar)",
        "INSERT INTO texts VALUES (1, 1, '17'), (2, 2, 'canary'), (3, 1, '3')",
        "CREATE TABLE places (place integer, region varchar)",
        "INSERT INTO places VALUES (1, 'eu'), (2, 'us')",
        "CREATE VIEW numbers AS SELECT id, CAST(number AS integer) AS n, region FROM texts"
        " JOIN places ON texts.place = places.place",
    ):
        sqe.execute(sql).close()
    analyst = govern({"numbers": allow("region = 'eu'")}, canaries=frozenset({"canary"}))
    assert analyst.run("SELECT id FROM numbers WHERE n > 5") == [[1]]
    assert analyst.run("SELECT id FROM numbers WHERE n IS NOT NULL AND id < 3") == [[1]]
