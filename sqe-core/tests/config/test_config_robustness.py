"""Whatever stands at a key, the answer is a configuration or a list of faults, and never another exception."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sqe_core.config import load
from sqe_core.config.origin import dotted
from sqe_core.config.sections.root import SqeConfig
from sqe_core.config.walk import Key, keys
from sqe_core.spi.errors import ConfigError

VALUES = (
    "-1",
    "nan",
    "true",
    '""',
    '"\\u0000\\u202e"',
    '"http://[::1"',
    "[[1]]",
    '{ env = "X" }',
    "1979-05-27T07:32:00Z",
    "9223372036854775807",
)
WORDS = ("", "-1", "[", "{ a = 1 }", "http://[::1", "٣")
EVERY = list(keys(SqeConfig))


def outcome(file: Path, environ: dict[str, str]) -> None:
    faults: tuple[str, ...] = ("none",)
    try:
        load(file, environ=environ)
    except ConfigError as error:
        faults = error.faults
    assert faults
    assert all("\n" not in fault for fault in faults)


@pytest.mark.parametrize("key", EVERY, ids=lambda key: dotted(key.path))
def test_any_value_in_a_file(tmp_path: Path, key: Key) -> None:
    *tables, name = (json.dumps(str(part)) for part in key.path)
    file = tmp_path / "sqe.toml"
    for value in VALUES:
        file.write_text(f"[{'.'.join(tables)}]\n{name} = {value}\n" if tables else f"{name} = {value}\n")
        outcome(file, {})


@pytest.mark.parametrize("key", EVERY, ids=lambda key: dotted(key.path))
def test_any_words_in_the_environment(tmp_path: Path, key: Key) -> None:
    name = "SQE_" + "__".join("0" if part == "*" else str(part).upper() for part in key.path)
    file = tmp_path / "sqe.toml"
    file.touch()
    for value in WORDS:
        outcome(file, {name: value})
    outcome(file, {f"{name}__X": "x"})


@pytest.mark.parametrize("table", sorted({key.path[0] for key in EVERY}))
@pytest.mark.parametrize("value", VALUES)
def test_any_value_instead_of_a_table(tmp_path: Path, table: str, value: str) -> None:
    file = tmp_path / "sqe.toml"
    file.write_text(f"{table} = {value}\n")
    outcome(file, {})
    outcome(file, {f"SQE_{table.upper()}__X": "1", f"SQE_{table.upper()}__0__TYPE": "1"})
