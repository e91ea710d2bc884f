"""The quick starts of docs/flight.md, run as they stand there, with this server's address and key."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "flight.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def test_there_are_blocks() -> None:
    assert len(BLOCKS) >= 5


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_a_block_runs(server: Any, capsys: pytest.CaptureFixture[str], number: int) -> None:
    code = BLOCKS[number].replace("grpc://localhost:50051", server.uri).replace("sqe_…", server.keys["etl"])
    assert code != BLOCKS[number]
    exec(compile(code, f"docs/flight.md block {number}", "exec"), {})
    if "print(" in code:
        assert capsys.readouterr().out.strip()


def test_the_address_of_jdbc_is_the_tested_one() -> None:
    assert "jdbc:arrow-flight-sql://localhost:50051/?useEncryption=false" in PAGE.read_text(encoding="utf-8")
