"""SQE without a server, composed from a configuration, and people who are connected to it."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from sqe_core.bootstrap import Sqe, compose
from sqe_core.config.loading import load
from sqe_core.engine.spark.engine import SparkEngine
from sqe_core.engine.spark.session import SparkEngineSession
from sqe_core.spi import Identity, SqeError

OPEN = '[policy]\nengine = "passthrough"\ni_understand_no_enforcement = true\n'


class Connected:
    """One person, connected."""

    def __init__(self, sqe: Sqe, identity: Identity, catalog: str) -> None:
        self._sqe = sqe
        self.session = sqe.open_session(identity, catalog=catalog, protocol="test")

    def __call__(self, sql: str) -> list[tuple[Any, ...]]:
        table = self._sqe.service.execute(self.session, sql).read_all()
        return list(zip(*(column.to_pylist() for column in table.columns), strict=True))

    def fails(self, sql: str) -> SqeError:
        with pytest.raises(SqeError) as caught:
            self(sql)
        return caught.value

    @property
    def token(self) -> str:
        """The person's own token."""
        token = self.session.identity.access_token
        assert token is not None
        return token.reveal()

    def held_by_tasks(self, catalog: str, table: str) -> str:
        """What the tasks that read a table are sent: its file access, and the table as it is serialised."""
        mount = self.session.catalogs.find(catalog)
        assert mount is not None
        alias, session = self.session.alias_of(mount), self.session.engine_session()
        assert isinstance(session, SparkEngineSession)
        session.catalog(alias)
        iceberg = session.context._jvm.org.apache.iceberg
        mounted = session.spark._jsparkSession.sessionState().catalogManager().catalog(alias).icebergCatalog()
        loaded = mounted.loadTable(iceberg.catalog.TableIdentifier.parse(table))
        encoded = iceberg.util.SerializationUtil.serializeToBase64(iceberg.SerializableTable.copyOf(loaded))
        return str(loaded.io().properties()) + base64.b64decode(encoded, validate=False).decode("latin-1")

    def close(self) -> None:
        self._sqe.service.close_session(self.session)


def composed(engine: SparkEngine, folder: Path, text: str) -> Sqe:
    file = folder / "sqe.toml"
    file.write_text(OPEN + text)
    return compose(load(file, environ={}), engine=engine)
