"""Secrets out of statements, before anybody records them."""

from __future__ import annotations

import re

# What may stand before the secret's string: token 'x', secret_key => 'x', "password" = 'x'.
_NAMED = re.compile(
    r"""(?ix)(\b\w*(?:token|password|secret|access_key|session_token|sas|account_key|credential)\w*['"`]?\s*(?:=>|=|,|\s)\s*)
    '(?:[^']|'')*'"""
)


def redact(sql: str) -> str:
    """Replace the strings that stand after the names of secrets."""
    return _NAMED.sub(r"\1'***'", sql)
