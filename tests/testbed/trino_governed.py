"""A session below policies, asked through Trino's door: SQE_TESTS_DOOR=trino runs what uses `Governed` so.

Statements keep the dialect of the tests and their one session; what goes through the door is what a client sends and
reads: pages, rows as JSON, and errors. An error has to be the one that the core gave the door, and no word more.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pytest
import trino
from governed import Governed

from sqe_core.spi import (
    ClientInfo,
    Credential,
    Endpoint,
    GatewaySession,
    ProtocolContext,
    Secret,
    Statement,
    StatementRequest,
)
from sqe_core.spi.errors import ErrorCode, SqeError
from sqe_core.testing import FakeGateway
from sqe_protocol_trino.config import TrinoConfig
from sqe_protocol_trino.error_names import NAMES, told
from sqe_protocol_trino.server import TrinoServer


class _Observed:
    """A statement of the core, whose error is remembered."""

    def __init__(self, statement: Statement, errors: list[SqeError]) -> None:
        self._statement, self._errors = statement, errors

    def __getattr__(self, name: str) -> Any:
        return getattr(self._statement, name)

    def __enter__(self) -> _Observed:
        return self

    def __exit__(self, *_: object) -> None:
        self._statement.close()

    def start(self) -> _Observed:
        try:
            self._statement.start()
        except SqeError as error:
            self._errors.append(error)
            raise
        return self

    def __iter__(self) -> Any:
        try:
            yield from self._statement
        except SqeError as error:
            self._errors.append(error)
            raise


class _OneSession:
    """What the door is given for whoever comes: the analyst's session, in the dialect of the tests."""

    def __init__(self, governed: Governed, errors: list[SqeError]) -> None:
        self._governed, self._session, self._errors = governed, governed.connected, errors
        self.dialect: str | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    token = Secret("the analyst's")

    @property
    def identity(self) -> Any:
        return self._governed.session.identity

    def begin(self, request: StatementRequest) -> Any:
        kept = replace(request, dialect=self.dialect, state=None)
        return _Observed(self._session.begin(kept), self._errors)


class _Gateway(FakeGateway):
    def __init__(self, session: _OneSession) -> None:
        super().__init__()
        self.only = session

    def authenticate(self, credential: Credential, client: ClientInfo) -> GatewaySession:
        return self.only  # type: ignore[return-value]


@dataclass
class TrinoGoverned(Governed):
    """Asks through a listener of its own, which `close` ends."""

    errors: list[SqeError] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    """What the errors were called at the door."""

    def __post_init__(self) -> None:
        self._only = _OneSession(self, self.errors)
        self._server = TrinoServer(TrinoConfig(), ProtocolContext())
        endpoint: Endpoint = self._server.start(_Gateway(self._only))
        self._client = trino.dbapi.connect(endpoint.host, endpoint.port, user="analyst")

    def close(self) -> None:
        self._client.close()
        self._server.stop(0)

    def table(self, sql: str, **parameters: Any) -> list[dict[str, Any]]:
        if set(parameters) - {"dialect"}:
            return super().table(sql, **parameters)
        self._only.dialect = parameters.get("dialect")
        self.errors.clear()
        cursor = self._client.cursor()
        refused: trino.exceptions.TrinoQueryError | None = None
        try:
            cursor.execute(sql)
            found = [list(map(_plain, row)) for row in cursor.fetchall()]
        except trino.exceptions.TrinoQueryError as caught:
            refused = caught
        if refused is not None:
            (error,) = self.errors
            assert refused.error_name == told(error)["errorName"]
            assert not error.may_be_denial or refused.error_name == NAMES[error.code][0]
            self.names.append(refused.error_name)
            assert error.message in refused.message
            self.check(str(refused), sql)
            raise error
        self.check(repr(found), sql)
        if cursor.update_type is not None:
            return []
        names = [column.name for column in cursor.description or ()]
        return [dict(zip(names, row, strict=True)) for row in found]

    def refusal(self, sql: str, **parameters: Any) -> SqeError:
        with pytest.raises(SqeError) as caught:
            self.run(sql, **parameters)
        assert caught.value.code is not ErrorCode.GENERIC_INTERNAL_ERROR, caught.value
        return caught.value


def _plain(value: Any) -> Any:
    """A value as Arrow gives it to Python."""
    if isinstance(value, trino.types.NamedRowTuple):
        return {name: _plain(each) for name, each in zip(value._names, value, strict=True)}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        return [(key, _plain(each)) for key, each in value.items()]
    return value
