"""The only place that wires objects together: configuration in, a running SQE out.

`core` wires an SQE around an engine, `composing` one that a configuration describes, `serving` a server around that,
`embedded` the one of `sqe-cli`. Which objects of plugins a configuration asks for is said by `instances`, and whether a
server would start by `checking`.
"""

from sqe_core.bootstrap.composing import compose
from sqe_core.bootstrap.core import DEFAULT_SCHEMA, Sqe, build
from sqe_core.bootstrap.embedded import EMBEDDED_CATALOG, OWNER, EmbeddedSqe, open_embedded
from sqe_core.bootstrap.logins import browser_logins, device_logins, login_providers, session_store
from sqe_core.bootstrap.options import engine_options, protected_places, state_dir
from sqe_core.bootstrap.serving import serve

__all__ = [
    "DEFAULT_SCHEMA",
    "EMBEDDED_CATALOG",
    "OWNER",
    "EmbeddedSqe",
    "Sqe",
    "browser_logins",
    "build",
    "compose",
    "device_logins",
    "engine_options",
    "login_providers",
    "open_embedded",
    "protected_places",
    "serve",
    "session_store",
    "state_dir",
]
