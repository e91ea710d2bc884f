"""What the verifier takes for a harmless copy below a barrier (ENF-15)."""

import pytest

from sqe_core.engine.port import PlanNode
from sqe_core.query.judge.verify import ExpectedRelation, _is_filter

POLICY = "(_sqe_r_1.dept = 'eng')"
TABLE = ExpectedRelation(
    marker="_sqe_r_1",
    identity=("c", "n", "t"),
    columns=("id", "dept", "weird `name", "pay"),
    filter_sql=POLICY,
    masks={"pay": "NULL"},
)


def accepted(copy: str, *, casts_are_safe: bool = True) -> bool:
    fields = {"condition": f"({POLICY} AND {copy})", "spine": [[POLICY, copy, casts_are_safe]]}
    node = PlanNode(id=0, parent=-1, slot="", type="Filter", fields=fields)
    return _is_filter(node, TABLE)


@pytest.mark.rule("ENF-15")
@pytest.mark.parametrize(
    "copy",
    [
        "(_sqe_r_1.id = 1)",
        "(_sqe_r_1.id >= -1.50BD)",
        "(_sqe_r_1.id <=> 1.0E-3D)",
        "(_sqe_r_1.dept < 'it\\'s AND (1 / 0)')",
        "(1L < _sqe_r_1.id)",
        "(CAST(_sqe_r_1.id AS BIGINT) < 11L)",
        "(CAST(_sqe_r_1.id AS DECIMAL(20,2)) < 11.00BD)",
        "(_sqe_r_1.id IN (1, 2, NULL))",
        "(_sqe_r_1.id IS NOT NULL)",
        "(_sqe_r_1.`weird ``name` IS NULL)",
        "(_sqe_r_1.id > DATE '2020-01-01')",
        "(_sqe_r_1.id > TIMESTAMP_NTZ '2020-01-01 00:00:00')",
        "(_sqe_r_1.dept = X'00FF')",
    ],
)
def test_a_comparison_of_a_visible_column_with_constants_is_harmless(copy: str) -> None:
    assert accepted(copy)


@pytest.mark.rule("ENF-12", "ENF-15")
@pytest.mark.parametrize(
    "copy",
    [
        "(_sqe_r_1.pay = 1)",
        "(_sqe_r_1.hidden = 1)",
        "(_sqe_r_2.id = 1)",
        "(id = 1)",
        "(_sqe_r_1.id.pay = 1)",
        "(_sqe_r_1.id = _sqe_r_1.pay)",
        "((1 / _sqe_r_1.id) = 1)",
        "(_sqe_r_1.id = (1 / 0))",
        "(CAST(_sqe_r_1.dept AS INT) + 1 = 1)",
        "(_sqe_r_1.id = 1) OR (1 = 1)",
        "((_sqe_r_1.id = 1) OR (1 = 1))",
        "(NOT (_sqe_r_1.id = 1))",
        "(_sqe_r_1.id IN (1, (1 / 0)))",
        "(_sqe_r_1.dept = raise_error('x'))",
        "(_sqe_r_1.dept = 'a' OR 'b' = 'b')",
        "",
    ],
)
def test_anything_else_is_refused(copy: str) -> None:
    assert not accepted(copy)


@pytest.mark.rule("ENF-12")
def test_the_policys_own_condition_may_not_be_missing_or_changed() -> None:
    for condition, spine in (
        ("(_sqe_r_1.id = 1)", []),
        ("((_sqe_r_1.dept = 'hr') AND (_sqe_r_1.id = 1))", [["(_sqe_r_1.dept = 'hr')", "(_sqe_r_1.id = 1)", True]]),
        (f"((_sqe_r_1.id = 1) AND {POLICY})", [["(_sqe_r_1.id = 1)", POLICY, True]]),
        (f"({POLICY} OR (_sqe_r_1.id = 1))", []),
        (None, None),
    ):
        node = PlanNode(id=0, parent=-1, slot="", type="Filter", fields={"condition": condition, "spine": spine})
        assert not _is_filter(node, TABLE)


@pytest.mark.rule("ENF-15")
def test_a_cast_that_can_fail_is_refused() -> None:
    assert not accepted("(CAST(_sqe_r_1.dept AS INT) = 1)", casts_are_safe=False)
