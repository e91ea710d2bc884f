"""Results that are read in parts, below policies: each part is of the one secured plan."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest
from governed import Govern, Governed, allow

from sqe_core.bootstrap import EmbeddedSqe
from sqe_core.query.run.division import divide
from sqe_core.spi.errors import ObjectNotFoundError
from sqe_core.spi.policy import ConstantMask, Decision

ROWS = 60_000
HIDDEN = "kept away"


@pytest.fixture(scope="module", autouse=True)
def table(sqe: EmbeddedSqe) -> Iterator[None]:
    text = "SELECT id, IF(id % 4 = 0, 'kept away', 'shown') AS who, 'secret ' || id AS pay"
    sqe.execute(f"CREATE TABLE divided AS {text} FROM range({ROWS}) AS r(id)").close()
    yield
    sqe.execute("DROP TABLE divided").close()


def in_parts(governed: Governed, sql: str, count: int = 4) -> list[pa.Table]:
    parts = divide(governed.sqe.service.plan(governed.session, sql), count)
    assert len(parts) == count
    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(lambda part: part.start().read_all(), parts))


@pytest.mark.rule("ENF-9")
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM divided",
        "SELECT d.id, e.who, e.pay FROM divided AS d JOIN divided AS e ON d.id = e.id",
        "SELECT id, who, pay, row_number() OVER (PARTITION BY who, id % 10 ORDER BY id) AS n FROM divided",
    ],
)
def test_no_part_has_more_than_the_policy_shows(govern: Govern, sql: str) -> None:
    decision = allow("who <> 'kept away'", pay=ConstantMask(value="***"))
    governed = govern({"divided": decision})
    found = in_parts(governed, sql)
    for part in found:
        assert HIDDEN not in part["who"].to_pylist()
        assert set(part["pay"].to_pylist()) <= {"***"}
    together = pa.concat_tables(found)
    assert sorted(together["id"].to_pylist()) == [number for number in range(ROWS) if number % 4]


@pytest.mark.rule("ENF-13")
def test_what_is_revoked_before_the_first_part_starts_is_gone_for_all(
    govern: Govern, monkeypatch: pytest.MonkeyPatch
) -> None:
    governed = govern({"divided": Decision.allow()})
    parts = divide(governed.sqe.service.plan(governed.session, "SELECT * FROM divided"), 3)
    governed.policies.decisions["divided"] = allow("who <> 'kept away'")
    monkeypatch.setattr("sqe_core.query.run.statement_run._PLAN_SECS", -1.0)
    asked = len(governed.policies.asked)
    found = [part.start().read_all() for part in parts]
    assert HIDDEN not in pa.concat_tables(found)["who"].to_pylist()
    assert len(governed.policies.asked) == asked + 1, "once, not for each part"


@pytest.mark.rule("ENF-13", "POL-9")
def test_what_is_revoked_here_between_plan_and_start_is_gone_at_once(govern: Govern) -> None:
    governed = govern({"divided": Decision.allow()})
    service = governed.sqe.service
    plan = service.plan(governed.session, "SELECT * FROM divided")
    governed.policies.decisions["divided"] = allow("who <> 'kept away'")
    service._parts.authorizer.flush()  # as every GRANT, REVOKE and policy does
    assert HIDDEN not in plan.start().read_all()["who"].to_pylist()
    plan = service.plan(governed.session, "SELECT * FROM divided")
    governed.policies.decisions["divided"] = Decision.deny("revoked")
    service._parts.authorizer.flush()
    with pytest.raises(ObjectNotFoundError):
        plan.start()


def test_a_restricted_reader_learns_nothing_from_the_progress_of_a_part(govern: Govern) -> None:
    governed = govern({"divided": allow("who <> 'kept away'")})
    parts = divide(governed.sqe.service.plan(governed.session, "SELECT * FROM divided"), 2)
    results = [part.start() for part in parts]
    assert all(result.progress().rows == result.progress().tasks == 0 for result in results)
    for result in results:
        result.read_all()
