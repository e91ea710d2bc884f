"""Processes of tests use the machine's class archive; none makes one behind the back of the next test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session", autouse=True)
def _no_archive_in_the_background() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SQE_ENGINE__CLASS_ARCHIVE", "use")
        yield
