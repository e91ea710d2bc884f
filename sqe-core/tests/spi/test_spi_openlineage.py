"""Lineage events as OpenLineage documents."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

from sqe_core.spi import (
    Dataset,
    InputField,
    LineageEventType,
    LineageJob,
    Transformation,
    to_run_event,
)
from sqe_core.testing import make_lineage_event


def test_document_has_what_the_specification_requires() -> None:
    document = to_run_event(make_lineage_event())
    assert document["eventType"] == "COMPLETE"
    assert document["schemaURL"].startswith("https://openlineage.io/spec/2-0-2/OpenLineage.json")
    assert document["run"]["runId"] == "0190e1c0-0000-7000-8000-000000000001"
    assert (document["job"]["namespace"], document["job"]["name"]) == ("sqe", "create_table_as:9f2c")
    assert document["job"]["facets"]["sql"]["dialect"] == "sqe"
    facets = [*document["job"]["facets"].values(), *document["outputs"][0]["facets"].values()]
    assert all({"_producer", "_schemaURL"} <= facet.keys() for facet in facets)


def test_times_are_utc_with_milliseconds() -> None:
    berlin = datetime(2026, 1, 1, 12, 0, 0, 123456, tzinfo=timezone(timedelta(hours=1)))
    event = replace(make_lineage_event(), time=berlin, nominal_time=datetime(2026, 1, 1, tzinfo=UTC))
    document = to_run_event(event)
    assert document["eventTime"] == "2026-01-01T11:00:00.123Z"
    assert document["run"]["facets"]["nominalTime"]["nominalStartTime"] == "2026-01-01T00:00:00.000Z"


def test_column_lineage_and_filters_of_an_output() -> None:
    step = Transformation(type="INDIRECT", subtype="FILTER", masking=True)
    used = InputField(dataset_namespace="n", dataset_name="s.t", column="dept", transformations=(step,))
    event = replace(make_lineage_event(), outputs=(Dataset(namespace="n", name="s.u", dataset_inputs=(used,)),))
    facet = to_run_event(event)["outputs"][0]["facets"]["columnLineage"]
    assert facet["dataset"] == [
        {
            "namespace": "n",
            "name": "s.t",
            "field": "dept",
            "transformations": [{"type": "INDIRECT", "subtype": "FILTER", "masking": True}],
        }
    ]


def test_inputs_have_no_column_lineage() -> None:
    event = make_lineage_event()
    document = to_run_event(replace(event, inputs=event.outputs))
    assert "columnLineage" not in document["inputs"][0]["facets"]


def test_failure_parent_and_change() -> None:
    event = replace(
        make_lineage_event(type=LineageEventType.FAIL),
        error_message="Table orders does not exist",
        parent_run_id="0190e1c0-0000-7000-8000-00000000000f",
        parent_job=LineageJob(namespace="sqe", name="session"),
        outputs=(Dataset(namespace="n", name="s.t", lifecycle_change="DROP", source_name="lake"),),
    )
    document = to_run_event(event)
    assert document["run"]["facets"]["errorMessage"]["message"] == "Table orders does not exist"
    assert document["run"]["facets"]["parent"]["job"] == {"namespace": "sqe", "name": "session"}
    facets = document["outputs"][0]["facets"]
    assert facets["lifecycleStateChange"]["lifecycleStateChange"] == "DROP"
    assert (facets["dataSource"]["name"], facets["dataSource"]["uri"]) == ("lake", "n")


def test_document_is_plain_json_without_the_token() -> None:
    event = make_lineage_event()
    assert event.user_token is not None
    assert event.user_token.reveal() not in json.dumps(to_run_event(event))
