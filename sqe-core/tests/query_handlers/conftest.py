"""The fixture of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from handler_lake import Lake, open_lake


@pytest.fixture
def lake() -> Iterator[Lake]:
    """An SQE with two catalogs in memory, one of which holds two tables."""
    found = open_lake()
    yield found
    found.sqe.close()
