"""Lineage from a TOML file to lines of events: real statements, the built-in sink."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sqe_core.bootstrap import OWNER, compose
from sqe_core.config.loading import load
from sqe_core.engine.spark.engine import SparkEngine
from sqe_core.spi.errors import SqeError


def test_statements_become_events(engine: SparkEngine, tmp_path: Path) -> None:
    events = tmp_path / "events.jsonl"
    file = tmp_path / "sqe.toml"
    file.write_text(
        f"""
        [catalog]
        type = "sqlite"
        directory = "{tmp_path}/lake"
        [policy]
        engine = "passthrough"
        i_understand_no_enforcement = true
        [[lineage.sinks]]
        type = "file"
        file_path = "{events}"
        [metrics.openlineage]
        job_namespace = "prod"
        """
    )
    sqe = compose(load(file, environ={}), engine=engine)
    session = sqe.open_session(OWNER, catalog="sqlite", protocol="test")

    def run(sql: str) -> None:
        sqe.service.execute(session, sql).read_all()

    try:
        run("CREATE TABLE people (id INT, name STRING)")
        run("INSERT INTO people VALUES (1, 'secret-of-ann')")
        run("CREATE TABLE names AS SELECT name FROM people")
        run("SELECT * FROM people")
        with pytest.raises(SqeError):
            run("INSERT INTO names SELECT 1 / 0 FROM people")
        run("DROP TABLE names")
    finally:
        sqe.service.close_session(session)
        sqe.release()

    told = [json.loads(line) for line in events.read_text().splitlines()]
    shown = [
        (
            each["eventType"],
            each["job"]["name"].partition(":")[0],
            [dataset["name"] for dataset in each["inputs"]],
            [dataset["name"] for dataset in each["outputs"]],
        )
        for each in told
        if each["eventType"] != "START"
    ]
    assert shown == [
        ("COMPLETE", "create_table", [], ["default.people"]),
        ("COMPLETE", "insert", [], ["default.people"]),
        ("COMPLETE", "create_table_as", ["default.people"], ["default.names"]),
        ("FAIL", "insert", ["default.people"], ["default.names"]),
        ("COMPLETE", "drop_table", [], ["default.names"]),
    ]
    runs = [each["run"]["runId"] for each in told]
    assert all(runs.count(run_id) == 2 for run_id in runs)
    assert {each["job"]["namespace"] for each in told} == {"prod"}
    assert told[0]["outputs"][0]["namespace"] == f"sqlite:{tmp_path}/lake/catalog.db"
    assert "secret-of-ann" not in events.read_text()
