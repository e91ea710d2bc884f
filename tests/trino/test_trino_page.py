"""The page about Trino's functions and statements says what the corpus and the list of differences say."""

from __future__ import annotations

import runpy
from pathlib import Path

from testbed.trino_differences import Known

WRITER = runpy.run_path(str(Path(__file__).parent / "page.py"))


def test_the_page_is_current() -> None:
    assert WRITER["PAGE"].read_text("utf-8") == WRITER["page"](), "run python tests/trino/page.py"


def test_nearly_every_function_is_the_same_or_refused_with_a_sentence() -> None:
    every = WRITER["functions"]()
    differing = [name for name, subject in every.items() if subject.status == "differs"]
    assert len(every) > 400
    assert len(differing) <= 0.02 * len(every), differing


def test_a_status_says_what_was_found() -> None:
    """One answer that is another one makes a difference, whatever is refused beside it."""
    subject = WRITER["Subject"]
    for kinds, status in (
        ((None, None), "same"),
        ((None, "accepted", "error"), "same"),
        ((None, "refused"), "in part"),
        (("refused", "refused"), "refused"),
        (("refused", "rows"), "differs"),
        (("columns", None), "differs"),
    ):
        asked = subject()
        for kind in kinds:
            asked.add(None if kind is None else Known(reason="because", kind=kind))
        assert asked.status == status, kinds
