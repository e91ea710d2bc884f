"""A client of Trino's protocol that hides nothing: types as the server names them, values as its JSON has them."""

from __future__ import annotations

import json
import urllib.parse
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a statement was answered; `error` is the name of the error, and then there is nothing else."""

    columns: tuple[tuple[str, str], ...] | None = None
    rows: tuple[Any, ...] = ()
    update: str | None = None
    count: int | None = None
    error: str | None = None
    message: str | None = None


@dataclass
class TrinoClient:
    """One user's connection. What the server says of the session with its headers is said back to it, as clients do."""

    url: str
    user: str
    catalog: str = "lake"
    schema: str | None = None
    headers: dict[str, str] = field(default_factory=dict)
    prepared: dict[str, str] = field(default_factory=dict)
    properties: dict[str, str] = field(default_factory=dict)
    transaction: str = "NONE"

    def __call__(self, sql: str) -> Answer:
        """Run a statement to its end."""
        page = self._ask("POST", f"{self.url}/v1/statement", sql.encode())
        columns: tuple[tuple[str, str], ...] | None = None
        rows: list[Any] = []
        while True:
            if page.get("columns") is not None:
                columns = tuple((column["name"], column["type"]) for column in page["columns"])
            rows.extend(page.get("data") or ())
            if page.get("error"):
                return Answer(error=page["error"]["errorName"], message=page["error"].get("message"))
            if "nextUri" not in page:
                break
            page = self._ask("GET", page["nextUri"])
        update = page.get("updateType")
        return Answer(columns=columns, rows=tuple(rows), update=update, count=page.get("updateCount"))

    def _ask(self, method: str, url: str, body: bytes | None = None) -> dict[str, Any]:
        request = urllib.request.Request(url, data=body, method=method, headers=self._sent())
        with urllib.request.urlopen(request, timeout=300) as answer:
            self._heard(answer.headers)
            page: dict[str, Any] = json.load(answer)
            return page

    def _sent(self) -> dict[str, str]:
        sent = {"X-Trino-User": self.user, "X-Trino-Time-Zone": "UTC", "X-Trino-Transaction-Id": self.transaction}
        sent |= {"X-Trino-Source": "tests", "X-Trino-Catalog": self.catalog}
        sent |= {"X-Trino-Client-Capabilities": "PATH,PARAMETRIC_DATETIME,SESSION_AUTHORIZATION"}
        if self.schema:
            sent["X-Trino-Schema"] = self.schema
        if self.prepared:
            sent["X-Trino-Prepared-Statement"] = _pairs(self.prepared)
        if self.properties:
            sent["X-Trino-Session"] = _pairs(self.properties)
        return sent | self.headers

    def _heard(self, headers: Any) -> None:
        self.catalog = headers.get("X-Trino-Set-Catalog", self.catalog)
        self.schema = headers.get("X-Trino-Set-Schema", self.schema)
        self.transaction = headers.get("X-Trino-Started-Transaction-Id", self.transaction)
        if headers.get("X-Trino-Clear-Transaction-Id") is not None:
            self.transaction = "NONE"
        for kept, added, removed in (
            (self.prepared, "X-Trino-Added-Prepare", "X-Trino-Deallocated-Prepare"),
            (self.properties, "X-Trino-Set-Session", "X-Trino-Clear-Session"),
        ):
            for each in headers.get_all(added) or ():
                name, _, value = each.partition("=")
                kept[urllib.parse.unquote_plus(name)] = urllib.parse.unquote_plus(value)
            for each in headers.get_all(removed) or ():
                kept.pop(urllib.parse.unquote_plus(each), None)


def _pairs(values: Mapping[str, str]) -> str:
    quote = urllib.parse.quote_plus
    return ",".join(f"{quote(name)}={quote(value)}" for name, value in values.items())
