"""What a restriction is compiled of, without a JVM."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from sqe_core.engine.port import SecuredTable
from sqe_core.policy.authorizer import Verdict
from sqe_core.policy.masks import MaskWriter
from sqe_core.query.judge.inspect import PlanLimits
from sqe_core.query.judge.restrict import RestrictionCompiler, facts_of
from sqe_core.spi.errors import UserError
from sqe_core.spi.identity import Identity
from sqe_core.spi.sql import SqlExpression
from sqe_core.sql.reader import Reader
from sqe_core.testing.engine import FakeEngine

FILTER = SqlExpression(text="a IN (SELECT x FROM c.n.m) AND b IN (SELECT y FROM c.n.o)", reads_tables=True)


class Fickle(Reader):
    """Counts a filter's queries in another order once it knows how much they found."""

    def translate_filter(self, text: str, *, dialect: str, sizes: Sequence[int] | None) -> tuple[str, Sequence[str]]:
        sql, queries = super().translate_filter(text, dialect=dialect, sizes=sizes)
        return sql, queries if sizes is None else tuple(reversed(queries))


@pytest.mark.rule("POL-5")
def test_values_of_one_query_never_stand_for_another() -> None:
    asked: list[str] = []

    def look_up(sql: str, values: object) -> Sequence[int]:
        asked.append(sql)
        return [1]

    compiler = RestrictionCompiler(
        engine=FakeEngine("c").open_session(),
        reader=Fickle(),
        masks=MaskWriter(),
        facts=facts_of(Identity(issuer="i", subject="ann", username="ann", provider="p")),
        values={},
        extra_functions=frozenset(),
        plan_limits=PlanLimits(),
        tag="t",
        look_up=look_up,
    )
    table = SecuredTable(index=0, sql="SELECT * FROM c.n.t", visible_name=("t",))
    with pytest.raises(UserError, match="stand for other queries"):
        compiler.check("t", table, Verdict(denied=False, filters=(FILTER,)), marker="_sqe_r_1")
    assert asked == ["SELECT `x` FROM `c`.`n`.`m`", "SELECT `y` FROM `c`.`n`.`o`"]
