"""A page of a statement as its client reads it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from sqe_protocol_trino import error_names
from sqe_protocol_trino.chain import Chain, Page
from sqe_protocol_trino.client_headers import change_headers
from sqe_protocol_trino.places import slug
from sqe_protocol_trino.stats import statement_stats

QUEUED, EXECUTING = "queued", "executing"
_WARNING = {"code": 1, "name": "SQE"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A body, and the headers that tell what the statement changed."""

    body: bytes
    headers: list[tuple[str, str]]


def page_uri(base: str, chain: Chain, phase: str, number: int) -> str:
    """Return the address of a page."""
    return f"{base}/v1/statement/{phase}/{chain.id}/{slug(chain.slug_key, phase, number)}/{number}"


def answer(chain: Chain, page: Page, base: str, prefix: str) -> Answer:
    """Return a page.

    Args:
        chain: its statement.
        page: its rows.
        base: what addresses begin with.
        prefix: of headers' names.
    """
    outcome = chain.outcome
    progress = chain.statement.progress()
    document: dict[str, Any] = {"id": chain.id, "infoUri": f"{base}/v1/query/{chain.id}"}
    if not page.last:
        phase = QUEUED if outcome.columns is None and not page.items else EXECUTING
        document["nextUri"] = page_uri(base, chain, phase, page.number + 1)
        if outcome.columns is not None:
            part = f"partialCancel/{chain.id}/0/{slug(chain.slug_key, 'partial', 0)}/{page.number + 1}"
            document["partialCancelUri"] = f"{base}/v1/statement/{EXECUTING}/{part}"
    if page.error is None and outcome.columns is not None:
        document["columns"] = outcome.columns
    document["stats"] = statement_stats(progress, ended=page.last)
    if page.error is not None:
        document["stats"]["state"] = "FAILED"
        document["error"] = error_names.told(page.error)
    elif outcome.update_type is not None:
        document["updateType"] = outcome.update_type
        if outcome.affected_rows is not None:
            document["updateCount"] = outcome.affected_rows
    document["warnings"] = [{"warningCode": _WARNING, "message": text} for text in outcome.warnings]
    body = json.dumps(document, separators=(",", ":")).encode()
    if page.items:
        body = body[:-1] + b',"data":' + _data(chain, page) + b"}"
    headers = change_headers(outcome.changes, prefix) if page.last and page.error is None else []
    return Answer(body=body, headers=headers)


def _data(chain: Chain, page: Page) -> bytes:
    rows = b",".join(page.items)
    if chain.encoding is None:
        return b"[" + rows + b"]"
    return b'{"encoding":"' + chain.encoding.encode() + b'","metadata":{},"segments":[' + rows + b"]}"
