"""What a browser shows when a login has ended: no script, no style, and nothing of what was in the request."""

from __future__ import annotations

from http import HTTPStatus

from aiohttp.web import Response

_PAGE = """\
<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title></head>
<body><h1>{title}</h1><p>{text}</p></body></html>
"""
_POLICY = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
DONE = _PAGE.format(title="You are logged in", text="You can close this window and go back to your program.")
FAILED = _PAGE.format(
    title="You are not logged in",
    text="The login was refused, took too long, or began in another browser. Start it again from your program.",
)
BUSY = _PAGE.format(title="You are not logged in", text="Logins are not possible right now. Try again later.")


def page(text: str, status: HTTPStatus) -> Response:
    """Return a page."""
    return Response(
        text=text,
        status=status,
        content_type="text/html",
        headers={
            "Content-Security-Policy": _POLICY,
            "Referrer-Policy": "no-referrer",
        },
    )
