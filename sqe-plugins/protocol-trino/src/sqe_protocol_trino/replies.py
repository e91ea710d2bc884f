"""Answers that are no pages."""

from __future__ import annotations

import json
from http import HTTPStatus

from aiohttp.web import Response

EVERY_ANSWER = {"Server": "SQE", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}


class NotFoundError(Exception):
    """There is nothing at an address, or it is somebody else's (TRI-3)."""


def text_reply(message: str, status: HTTPStatus) -> Response:
    """Return a sentence."""
    return Response(text=f"{message}\n", status=status)


def json_reply(document: object) -> Response:
    """Return a document."""
    return Response(body=json.dumps(document).encode(), content_type="application/json")
