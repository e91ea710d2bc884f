"""The page about Trino's functions and statements says what the corpus and the list of differences say."""

from __future__ import annotations

import runpy
from pathlib import Path

WRITER = runpy.run_path(str(Path(__file__).parent / "page.py"))


def test_the_page_is_current() -> None:
    assert WRITER["PAGE"].read_text("utf-8") == WRITER["page"](), "run python tests/trino/page.py"


def test_nearly_every_function_is_the_same_or_refused_with_a_sentence() -> None:
    every = WRITER["functions"]()
    silent = [name for name, subject in every.items() if any(each.kind == "rows" for each in subject.found)]
    assert len(every) > 400
    assert len(silent) < 0.06 * len(every), silent
