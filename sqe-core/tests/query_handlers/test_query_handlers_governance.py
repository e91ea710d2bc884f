"""Governance: what GRANT and CREATE POLICY tell whoever writes them beside doing it."""

from __future__ import annotations

import pytest
from handler_lake import ALICE, BOB, ROOT, Lake

from sqe_core.testing.fakes import make_identity


def remarks(lake: Lake, sql: str) -> list[str]:
    return list(lake.sqe.service.execute(lake.session(ROOT), sql).warnings)


NOBODY = "No login since the start has the role {}, and nobody created it"


@pytest.mark.rule("META-1")
def test_a_grant_to_a_role_that_nobody_has_is_remarked_on(lake: Lake) -> None:
    lake.run(ALICE, "SELECT 1")
    lake.run(make_identity("ann"), "SELECT 1")
    lake.root("CREATE ROLE stewards")
    for sql in (
        "GRANT SELECT ON people TO {}",
        "DENY SELECT ON people TO {}",
        "GRANT stewards TO ROLE {}",
        "CREATE OR REPLACE POLICY p ON TABLE people ROW FILTER TO ROLE {} USING (id = 1)",
    ):
        assert remarks(lake, sql.format("analyts")) == [NOBODY.format("analyts") + '; did you mean "analyst"?']
        assert remarks(lake, sql.format("ann")) == [NOBODY.format("ann") + "; did you mean USER ann?"]
        lake.root("REVOKE stewards FROM ROLE analyts", "REVOKE stewards FROM ROLE ann")
        assert remarks(lake, sql.format("analyst")) == []
    assert remarks(lake, "GRANT SELECT ON people TO stewards, USER nobody, GROUP none, PUBLIC") == []
    assert remarks(lake, "GRANT SELECT ON people TO zebra") == [NOBODY.format("zebra")]


@pytest.mark.rule("META-1")
def test_who_is_no_administrator_is_told_of_no_role(lake: Lake) -> None:
    lake.run(ALICE, "SELECT 1")
    lake.root("GRANT SELECT ON people TO USER bob WITH GRANT OPTION")
    for role in ("analyts", "analyst", "zebra"):
        result = lake.sqe.service.execute(lake.session(BOB), f"GRANT SELECT ON people TO {role}")
        assert result.warnings == ()
