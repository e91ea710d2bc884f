"""A lineage event as an OpenLineage 2-0-2 RunEvent, for every sink that writes JSON."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from sqe_core.spi.lineage import Dataset, InputField, LineageEvent, LineageJob

_SPEC = "https://openlineage.io/spec"


def to_run_event(event: LineageEvent) -> dict[str, Any]:
    """Return the JSON document of an event. The user's token is never part of it.

    Args:
        event: the event.

    Example:
        >>> event = LineageEvent(
        ...     type=LineageEventType.START,
        ...     time=datetime(2026, 1, 1, tzinfo=UTC),
        ...     run_id="0190e1c0-0000-7000-8000-000000000000",
        ...     job=LineageJob(namespace="sqe", name="insert:9f2c"),
        ...     producer="https://example.com/sqe",
        ... )
        >>> to_run_event(event)["eventTime"]
        '2026-01-01T00:00:00.000Z'
    """
    return {
        "eventType": event.type.value,
        "eventTime": _time(event.time),
        "producer": event.producer,
        "schemaURL": f"{_SPEC}/2-0-2/OpenLineage.json#/$defs/RunEvent",
        "run": {"runId": event.run_id, "facets": _run_facets(event)},
        "job": _job(event),
        "inputs": [_dataset(event, dataset, output=False) for dataset in event.inputs],
        "outputs": [_dataset(event, dataset, output=True) for dataset in event.outputs],
    }


def _time(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _facet(event: LineageEvent, version: str, name: str, /, **content: Any) -> dict[str, Any]:
    schema = f"{_SPEC}/facets/{version}/{name}.json#/$defs/{name}"
    return {"_producer": event.producer, "_schemaURL": schema, **content}


def _run_facets(event: LineageEvent) -> dict[str, Any]:
    facets: dict[str, Any] = {}
    if event.nominal_time is not None:
        start = _time(event.nominal_time)
        facets["nominalTime"] = _facet(event, "1-0-1", "NominalTimeRunFacet", nominalStartTime=start)
    if event.parent_run_id is not None and event.parent_job is not None:
        job = _job_name(event.parent_job)
        facets["parent"] = _facet(event, "1-0-1", "ParentRunFacet", run={"runId": event.parent_run_id}, job=job)
    if event.error_message is not None:
        facets["errorMessage"] = _facet(
            event, "1-0-1", "ErrorMessageRunFacet", message=event.error_message, programmingLanguage="SQL"
        )
    return facets


def _job_name(job: LineageJob) -> dict[str, Any]:
    return {"namespace": job.namespace, "name": job.name}


def _job(event: LineageEvent) -> dict[str, Any]:
    facets: dict[str, Any] = {}
    if event.job.sql is not None:
        facets["sql"] = _facet(event, "1-1-0", "SQLJobFacet", query=event.job.sql, dialect=event.job.dialect)
    return {**_job_name(event.job), "facets": facets}


def _dataset(event: LineageEvent, dataset: Dataset, *, output: bool) -> dict[str, Any]:
    facets: dict[str, Any] = {}
    if dataset.columns:
        fields = [
            {"name": column.name, "type": column.type, **({"description": column.comment} if column.comment else {})}
            for column in dataset.columns
        ]
        facets["schema"] = _facet(event, "1-1-1", "SchemaDatasetFacet", fields=fields)
    if dataset.source_name is not None:
        uri = dataset.source_uri or dataset.namespace
        facets["dataSource"] = _facet(event, "1-0-1", "DatasourceDatasetFacet", name=dataset.source_name, uri=uri)
    if dataset.lifecycle_change is not None:
        facets["lifecycleStateChange"] = _facet(
            event, "1-0-1", "LifecycleStateChangeDatasetFacet", lifecycleStateChange=dataset.lifecycle_change
        )
    if output and (dataset.column_lineage or dataset.dataset_inputs):
        facets["columnLineage"] = _facet(
            event,
            "1-2-0",
            "ColumnLineageDatasetFacet",
            fields={entry.column: {"inputFields": _inputs(entry.inputs)} for entry in dataset.column_lineage},
            dataset=_inputs(dataset.dataset_inputs),
        )
    return {"namespace": dataset.namespace, "name": dataset.name, "facets": facets}


def _inputs(fields: Sequence[InputField]) -> list[dict[str, Any]]:
    return [
        {
            "namespace": field.dataset_namespace,
            "name": field.dataset_name,
            "field": field.column,
            "transformations": [
                {"type": step.type, "subtype": step.subtype, "masking": step.masking} for step in field.transformations
            ],
        }
        for field in fields
    ]
