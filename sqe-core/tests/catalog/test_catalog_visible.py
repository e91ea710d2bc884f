"""Listings of which something fails."""

from __future__ import annotations

import logging

import pytest

from sqe_core.catalog.visible import each_apart
from sqe_core.spi.errors import ExternalError, QueryCancelledError, SqeError
from sqe_core.spi.names import ObjectName

NAMES = [ObjectName(catalog="lake", namespace=("s",), name=name) for name in ("good", "bad", "gone", "last")]


def look(name: ObjectName) -> str | None:
    if name.name == "bad":
        raise ExternalError("a file is damaged")
    return None if name.name == "gone" else name.name


@pytest.mark.rule("VIEW-7")
def test_one_that_fails_takes_itself_out(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert [found for _, found in each_apart(NAMES, look)] == ["good", "last"]
    assert "lake.s.bad is left out of what is listed: a file is damaged" in caplog.text


@pytest.mark.rule("VIEW-7", "POL-2")
def test_no_listing_is_empty_because_all_fail() -> None:
    with pytest.raises(ExternalError, match="a file is damaged"):
        list(each_apart([NAMES[1], NAMES[1]], look))
    assert list(each_apart([NAMES[1], NAMES[2]], look)) == []  # one of them just went away
    assert list(each_apart([], look)) == []


@pytest.mark.parametrize("error", [QueryCancelledError("stop")])
def test_what_ends_the_statement_ends_the_listing(error: SqeError) -> None:
    def cancelled(name: ObjectName) -> str:
        raise error

    with pytest.raises(QueryCancelledError):
        list(each_apart(NAMES, cancelled))
