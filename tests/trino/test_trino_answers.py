"""SQE answers what Trino 476 answered, or what tests/trino/differences.toml explains."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from testbed.trino_corpus import FOLDER, answers, cases, files
from testbed.trino_differences import UNEXPLAINED, keys, known
from testbed.trino_door import Door

from sqe_core.engine.spark.engine import SparkEngine


@pytest.fixture(scope="module")
def door(engine: SparkEngine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    with Door(engine, tmp_path_factory.mktemp("trino")) as opened:
        yield opened


@pytest.mark.parametrize("file", files())
def test_answers_like_trino(door: Door, file: str) -> None:
    found = door.differences(file)
    listed = {key: known()[key].kind for key in keys(file).values() if key in known()}
    news = [
        f"{each.kind}: {key}\n    Trino {each.trino[:300]}\n    SQE   {each.sqe[:300]}"
        for key, each in found.items()
        if listed.get(key) != each.kind
    ]
    gone = [f"no longer {kind}: {key}" for key, kind in listed.items() if key not in found]
    assert not news + gone, "\n".join(("tests/trino/differences.toml says something else:", *news, *gone))


def test_every_difference_has_a_reason_and_a_statement() -> None:
    statements = {key for file in files() for key in keys(file).values()}
    assert [key for key in known() if key not in statements] == []
    assert [key for key, each in known().items() if each.reason == UNEXPLAINED or len(each.reason) < 20] == []


def test_every_function_of_trino_is_asked() -> None:
    functions = {name for name, _ in json.loads((FOLDER / "answers" / "known.json").read_text())["functions"]}
    subjects = {case.subject for file in files() for case in cases(file)}
    assert sorted(functions - subjects) == []
    assert sum(len(answers(file)) for file in files()) > 2_000
