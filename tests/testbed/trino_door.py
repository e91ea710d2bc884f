"""SQE as clients of Trino meet it: its door on loopback, in front of a core on the engine of the test run."""

from __future__ import annotations

from pathlib import Path
from typing import Self

from testbed.trino_client import TrinoClient
from testbed.trino_corpus import USER, answers, cases
from testbed.trino_differences import by_key, fail_alone
from testbed.trino_runner import Difference, differences

from sqe_core.bootstrap import compose, session_store
from sqe_core.config.loading import load
from sqe_core.engine.spark.engine import SparkEngine
from sqe_core.plugins.manager import PluginManager
from sqe_core.query.gateway import Gateway
from sqe_core.server import StatusBoard
from sqe_core.spi import ProtocolContext
from sqe_protocol_trino.config import TrinoConfig
from sqe_protocol_trino.server import TrinoServer

_SETTINGS = """
[policy]
engine = "passthrough"
i_understand_no_enforcement = true
[[auth.providers]]
type = "anonymous"
user = "{user}"
[catalogs.lake]
type = "sqlite"
directory = "{folder}/lake"
"""


class Door:
    """A SQE with an empty catalog `lake`."""

    def __init__(self, engine: SparkEngine, folder: Path) -> None:
        file = folder / "sqe.toml"
        file.write_text(_SETTINGS.format(folder=folder, user=USER))
        loaded, plugins = load(file, environ={}), PluginManager()
        self._sqe = compose(loaded, plugins, engine=engine)
        self._store = session_store(self._sqe, loaded, plugins)
        status = StatusBoard(engine, "476.0")
        gateway = Gateway(store=self._store, service=self._sqe.service, status=status.current)
        self._server = TrinoServer(TrinoConfig(page_linger_millis=1), ProtocolContext())
        self._url = f"http://127.0.0.1:{self._server.start(gateway).port}"

    def client(self, schema: str | None = None) -> TrinoClient:
        """Return a new connection."""
        return TrinoClient(self._url, USER, schema=schema)

    def differences(self, file: str) -> dict[str, Difference]:
        """Run the statements of a file; return what differs, by the key of its statement."""
        made = self.client()(f"CREATE SCHEMA lake.{file}")
        assert made.error is None, made
        ask = self.client(file)
        return by_key(file, differences(cases(file), answers(file), ask, fail_alone(file)))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.stop(0)
        self._store.close()
        self._sqe.release()
