"""Every statement has exactly one handler, and what is known of it is known from there."""

from __future__ import annotations

from dataclasses import replace

import pytest

import sqe_core.sql.recogniser  # noqa: F401 - brings every statement of the grammar
from sqe_core.query.statements.handler import Answer, AnswerAboutQuery, Change, Handlers, RunsInEngine, StandsFor
from sqe_core.query.statements.registry import HANDLERS
from sqe_core.query.statements.show import show_catalogs
from sqe_core.query.statements.traits import Audited
from sqe_core.sql.statement import EngineStatement, Statement, StatementKind


def test_every_statement_has_exactly_one_handler() -> None:
    assert HANDLERS.classes == set(Statement.__subclasses__())
    with pytest.raises(ValueError, match="ShowCatalogs has two handlers"):
        Handlers([show_catalogs, replace(show_catalogs)])


def test_a_handler_answers_changes_runs_or_stands_for_another() -> None:
    kinds = (Answer, AnswerAboutQuery, Change, RunsInEngine, StandsFor)
    for handler in HANDLERS:
        assert sum(isinstance(handler, kind) for kind in kinds) == 1, handler


def statement(kind: StatementKind) -> EngineStatement:
    return EngineStatement(kind=kind, text="", spark_sql="", positions=Nowhere())


class Nowhere:
    def locate(self, start: int | None, fragment: str | None) -> None:
        return None


@pytest.mark.parametrize(
    ("kind", "audited", "writes"),
    [
        (StatementKind.QUERY, Audited.QUERY, False),
        (StatementKind.INSERT, Audited.QUERY, True),
        (StatementKind.MERGE, Audited.QUERY, True),
        (StatementKind.TRUNCATE, Audited.QUERY, True),
        (StatementKind.CREATE_TABLE, Audited.DDL, False),
        (StatementKind.CREATE_TABLE_AS, Audited.QUERY, True),
        (StatementKind.ALTER_TABLE, Audited.DDL, False),
    ],
)
def test_what_the_engine_runs_is_known_by_its_kind(kind: StatementKind, audited: Audited, writes: bool) -> None:
    traits = HANDLERS.of(statement(kind)).traits_of(statement(kind))
    assert (traits.audited, traits.writes_rows) == (audited, writes)


def test_changes_of_rights_are_recorded_before_they_are_done() -> None:
    rights = {
        handler.statement.__name__ for handler in HANDLERS if isinstance(handler, Change) and handler.changes_rights
    }
    audited = {
        handler.statement.__name__
        for handler in HANDLERS
        if isinstance(handler, Change) and handler.traits.audited is Audited.RIGHTS
    }
    assert audited - rights == {"SetRole"}  # the session's own choice
    assert rights - audited == {"SetTags", "UnsetTags", "Attach", "Detach", "CreateSecret", "DropSecret"}
