"""A server without protocols: composed from settings, asked through its own service, with a key for each of three."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sqe_core.bootstrap import Sqe, compose, session_store
from sqe_core.config.loading import load
from sqe_core.engine.port import Engine
from sqe_core.plugins.manager import PluginManager
from sqe_core.session.store import LiveSession, SessionStore
from sqe_core.spi import BearerCredential, ClientInfo, NoCredential, Secret, SqeError

KEYS = "\n".join(
    f'[[keys]]\nkey = "sqe_{user}-0123456789"\nuser = "{user}"\nroles = {roles}'
    for user, roles in (("root", '["boss"]'), ("alice", "[]"), ("bob", "[]"))
)
AUTH = """
[auth]
admin_roles = ["boss"]
[[auth.providers]]
type = "api_key"
keys_file = "{folder}/keys.toml"
[[auth.providers]]
type = "anonymous"
[catalogs.lake]
type = "sqlite"
directory = "{folder}/lake"
"""


class ComposedServer:
    def __init__(self, folder: Path, settings: str, engine: Engine | None = None) -> None:
        (folder / "keys.toml").write_text(KEYS)
        (folder / "keys.toml").chmod(0o600)
        (folder / "sqe.toml").write_text((AUTH + settings).format(folder=folder))
        loaded, plugins = load(folder / "sqe.toml", environ={}), PluginManager()
        self._folder = folder
        self.sqe: Sqe = compose(loaded, plugins, engine=engine)
        self.store: SessionStore = session_store(self.sqe, loaded, plugins)

    def log_in(self, user: str | None, label: str = "") -> LiveSession:
        credential = NoCredential() if user is None else BearerCredential(token=Secret(f"sqe_{user}-0123456789"))
        return self.store.authenticate(credential, ClientInfo(protocol="flight", address="127.0.0.1", label=label))

    def rows(self, live: LiveSession, sql: str) -> list[dict[str, Any]]:
        with self.sqe.service.execute(live.session, sql) as result:
            return [row for batch in result for row in batch.to_pylist()]

    def fails(self, live: LiveSession, sql: str) -> SqeError:
        with pytest.raises(SqeError) as caught:
            self.rows(live, sql)
        return caught.value

    def audit(self) -> list[dict[str, Any]]:
        """What the audit log has, which the settings put into `audit.log`."""
        return [json.loads(line) for line in (self._folder / "audit.log").read_bytes().splitlines()]

    def close(self) -> None:
        self.store.close()
        self.sqe.release()
