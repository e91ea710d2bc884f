"""The catalog's own protocol, as far as listings need it: what one user is told is kept for this user only."""

from __future__ import annotations

import re
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Generic, NoReturn, TypeVar
from urllib.parse import quote, unquote, urlencode, urlsplit

from sqe_catalog_polaris.config import RestConfig
from sqe_catalog_polaris.login import Login
from sqe_catalog_polaris.restrictions import restrictions_of
from sqe_catalog_polaris.transport import Answer, Transport, unexpected
from sqe_core.spi import (
    AccessDeniedError,
    CatalogContext,
    ErrorCode,
    ExternalError,
    Identity,
    ObjectNotFoundError,
    ReadRestrictions,
    ResourcesError,
    UserError,
)

_HANDLE_SECS = 300.0
_MOST_USERS = 10_000
_MOST_ANSWERS = 2_000
_EXPIRED = 419  # Iceberg's own status for a token that has ended
# Some catalogs answer a denial with 500 (testbed §14); nothing else tells it from a fault.
_DENIAL = re.compile(r"AccessCheckException|[Nn]ot authorized to|is not allowed for role|ForbiddenException")
_LISTS_VIEWS = "GET /v1/{prefix}/namespaces/{namespace}/views"
_VIEWS = re.compile(r"GET /v1/(\{prefix\}/)?namespaces/\{namespace\}/views")

T = TypeVar("T")


class Kept(Generic[T]):
    """A bounded map whose entries end."""

    def __init__(self, most: int, secs: float) -> None:
        self._most = most
        self._secs = secs
        self._lock = threading.Lock()
        self._generation = 0
        self._entries: OrderedDict[tuple[str, ...], tuple[T, float]] = OrderedDict()

    def find(self, *key: str) -> T | None:
        """Return what is kept, unless its time is over."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None or entry[1] <= time.monotonic():
                self._entries.pop(key, None)
                return None
            self._entries.move_to_end(key)
            return entry[0]

    @property
    def generation(self) -> int:
        """A number that grows each time everything is forgotten."""
        with self._lock:
            return self._generation

    def keep(self, value: T, *key: str, asked_in: int | None = None) -> None:
        """Keep a value; the one that was not needed for longest makes room.

        What was asked in an earlier generation was said before something changed, and is not kept.
        """
        with self._lock:
            if asked_in is not None and asked_in != self._generation:
                return
            self._entries[key] = (value, time.monotonic() + self._secs)
            self._entries.move_to_end(key)
            while len(self._entries) > self._most:
                self._entries.popitem(last=False)

    def forget(self, first: str) -> None:
        """Forget every entry whose key begins with this part."""
        with self._lock:
            for key in [key for key in self._entries if key[0] == first]:
                del self._entries[key]

    def clear(self) -> None:
        with self._lock:
            self._generation += 1
            self._entries.clear()


@dataclass(frozen=True, slots=True, kw_only=True)
class Handle:
    """What `/v1/config` says to one user."""

    base: str
    prefix: str
    separator: str
    has_views: bool


class RestClient:
    """Asks the catalog as somebody. Safe for use from many threads."""

    def __init__(self, config: RestConfig, login: Login, context: CatalogContext, headers: Mapping[str, str]) -> None:
        self._config = config
        self._login = login
        self._clock = context.clock
        self._headers = dict(headers)
        self._base = urlsplit(config.catalog_url).path.rstrip("/") + "/v1"
        self._origin = "{0.scheme}://{0.netloc}".format(urlsplit(config.catalog_url))
        self.transport = Transport(config.catalog_url, "the catalog", config, context)
        self._handles: Kept[Handle] = Kept(_MOST_USERS, _HANDLE_SECS)
        self._answers: Kept[tuple[str, Any]] = Kept(_MOST_ANSWERS, _HANDLE_SECS)

    def handle(self, identity: Identity) -> Handle:
        key = self._login.key(identity)
        found = self._handles.find(key)
        if found is None:
            found = self._read_handle(self._config.warehouse, identity)
            if found is None:
                raise ExternalError("The catalog does not know the warehouse of its configuration")
            self._handles.keep(found, key)
        return found

    @property
    def server(self) -> tuple[str, str, int | None]:
        parts = urlsplit(self._config.catalog_url)
        return parts.scheme, parts.hostname or "", parts.port or {"https": 443, "http": 80}.get(parts.scheme)

    def place(self, identity: Identity) -> tuple[str, str]:
        """Return where on the server the catalog is, in small letters: not every catalog tells them from others."""
        handle = self.handle(identity)
        return handle.base.casefold(), handle.prefix.strip("/").casefold()

    def knows_warehouse(self, warehouse: str, identity: Identity) -> bool:
        """Whether the catalog offers a warehouse of that name to this user."""
        return self._read_handle(warehouse, identity) is not None

    def probe(self, identity: Identity | None) -> None:
        """Raise when the server does not speak the protocol; a refused login still shows that it is up."""
        query = {"warehouse": self._config.warehouse} if self._config.warehouse else {}
        target = self._target(("config",), query)
        headers = self._headers if identity is None else self._signed(identity, target)
        answer = self.transport.send("GET", target, headers=headers)
        refused = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)
        if answer.status != HTTPStatus.OK and not (identity is None and answer.status in refused):
            raise ExternalError(f"The catalog answered with status {answer.status}", code=ErrorCode.CATALOG_UNAVAILABLE)

    def _read_handle(self, warehouse: str | None, identity: Identity) -> Handle | None:
        target = self._target(("config",), {"warehouse": warehouse} if warehouse else {})
        answer = self.transport.send("GET", target, headers=self._signed(identity, target))
        if answer.status in (HTTPStatus.NOT_FOUND, HTTPStatus.BAD_REQUEST):
            return None
        if answer.status != HTTPStatus.OK:
            self._refuse(answer, identity, None)
        body = answer.body
        if not isinstance(body, Mapping):
            raise unexpected()
        settings = {**_texts(body.get("defaults")), **_texts(body.get("overrides"))}
        if not self._login.signs_requests and _wants_signatures(settings):
            # Never with the machine's own keys because a catalog asks for it: they may open more than its tables.
            raise ExternalError(
                "The catalog wants its requests signed with AWS keys, and none are configured for it",
                hint='set auth.type = "aws" and its keys in [catalog.auth]',
            )
        endpoints = body.get("endpoints")
        if not isinstance(endpoints, list):
            # Catalogs from before the list was part of the protocol say it this way, or have none.
            endpoints = [_LISTS_VIEWS] if settings.get("view-endpoints-supported", "").lower() == "true" else []
        return Handle(
            base=self._base_of(settings.get("uri", "")),
            prefix=settings.get("prefix", ""),
            separator=unquote(settings.get("namespace-separator", "%1F")),
            has_views=any(isinstance(each, str) and _VIEWS.fullmatch(each) for each in endpoints),
        )

    def _base_of(self, uri: str) -> str:
        """Return where the other requests go; a catalog may name another path, and never another server."""
        parts = urlsplit(uri)
        if f"{parts.scheme}://{parts.netloc}" != self._origin:
            return self._base
        return parts.path.rstrip("/") + "/v1"

    def namespaces(self, identity: Identity, parent: tuple[str, ...]) -> list[tuple[str, ...]]:
        handle = self.handle(identity)
        query = {"parent": handle.separator.join(parent)} if parent else {}
        found = [_parts(entry) for entry in self._pages(identity, ("namespaces",), "namespaces", query, parent)]
        below = len(parent) + 1
        # A catalog that answers with more than it was asked for must not make listings run in circles.
        return list(dict.fromkeys(parts for parts in found if len(parts) == below and parts[:-1] == parent))

    def namespace(self, identity: Identity, namespace: tuple[str, ...]) -> Mapping[str, str]:
        body = self._get(identity, ("namespaces", self._joined(identity, namespace)), {}, namespace)
        return _texts(body.get("properties"))

    def names(self, identity: Identity, namespace: tuple[str, ...], kind: str) -> list[str]:
        if kind == "views" and not self.handle(identity).has_views:
            self.namespace(identity, namespace)  # there is one
            return []
        path = ("namespaces", self._joined(identity, namespace), kind)
        names: dict[str, None] = {}
        for entry in self._pages(identity, path, "identifiers", {}, namespace):
            if not isinstance(entry, Mapping) or not isinstance(entry.get("name"), str):
                raise unexpected()
            names[entry["name"]] = None
        return list(names)

    def read_restrictions(self, identity: Identity, namespace: tuple[str, ...], name: str) -> ReadRestrictions | None:
        """Return what the catalog says, with a table, of reading it as this user. It is asked each time."""
        path = ("namespaces", self._joined(identity, namespace), "tables", name)
        # The entity tag is that of the table, and what is restricted may have changed without it.
        return restrictions_of(self._get(identity, path, {"snapshots": "refs"}, namespace, fresh=True))

    def _joined(self, identity: Identity, namespace: tuple[str, ...]) -> str:
        return self.handle(identity).separator.join(namespace)

    def _pages(
        self,
        identity: Identity,
        path: Sequence[str],
        member: str,
        query: Mapping[str, str],
        namespace: tuple[str, ...],
    ) -> Iterator[Any]:
        deadline = self.transport.deadline()
        token, seen, count = "", {""}, 0
        while True:
            asked = {**query, "pageToken": token, "pageSize": str(self._config.page_size)}
            body = self._get(identity, path, asked, namespace, deadline)
            entries = body.get(member)
            if not isinstance(entries, list):
                raise unexpected()
            count += len(entries)
            if count > self._config.max_names:
                raise ResourcesError("The catalog has more names here than SQE lists", hint="raise max_names")
            yield from entries
            following = body.get("next-page-token")
            if not following:
                return
            if not isinstance(following, str) or following in seen:
                raise unexpected()
            seen.add(following)
            token = following

    def _get(
        self,
        identity: Identity,
        path: Sequence[str],
        query: Mapping[str, str],
        namespace: tuple[str, ...],
        deadline: float | None = None,
        *,
        fresh: bool = False,
    ) -> Mapping[str, Any]:
        target = self._target(path, query, self.handle(identity))
        key = self._login.key(identity)
        generation = self._answers.generation
        known = None if fresh else self._answers.find(key, target)
        headers = self._signed(identity, target)
        if known is not None:
            headers = {**headers, "If-None-Match": known[0]}
        answer = self.transport.send("GET", target, headers=headers, deadline=deadline)
        if answer.status == HTTPStatus.NOT_MODIFIED and known is not None:
            body: Any = known[1]
        elif answer.status == HTTPStatus.OK:
            body = answer.body
            if "etag" in answer.headers and not fresh:
                self._answers.keep((answer.headers["etag"], body), key, target, asked_in=generation)
        else:
            self._refuse(answer, identity, namespace)
        if not isinstance(body, Mapping):
            raise unexpected()
        return body

    def _target(self, path: Sequence[str], query: Mapping[str, str], handle: Handle | None = None) -> str:
        # The prefix is a path of the catalog's own; each other part is one segment.
        base, prefix = (self._base, "") if handle is None else (handle.base, handle.prefix)
        parts = [quote(prefix.strip("/"), safe="/%")] if prefix else []
        parts += [quote(part, safe="") for part in path]
        return "/".join((base, *parts)) + (f"?{urlencode(query, quote_via=quote)}" if query else "")

    def _signed(self, identity: Identity, target: str) -> Mapping[str, str]:
        return {**self._headers, **self._login.headers(identity, "GET", self._origin + target)}

    def _refuse(self, answer: Answer, identity: Identity, namespace: tuple[str, ...] | None) -> NoReturn:
        """Raise what a status means. Denied, hidden and missing schemas look the same (ERR-5)."""
        status = answer.status
        expired = identity.expires_at is not None and identity.expires_at <= self._clock.now()
        denied = status == HTTPStatus.FORBIDDEN or (
            status == HTTPStatus.INTERNAL_SERVER_ERROR and _DENIAL.search(answer.error_text) is not None
        )
        if status in (HTTPStatus.UNAUTHORIZED, _EXPIRED) or (denied and expired):
            raise UserError(
                "The catalog does not accept your login any more",
                code=ErrorCode.AUTHENTICATION_FAILED,
                hint="log in again",
            )
        if (denied or status == HTTPStatus.NOT_FOUND) and namespace:
            raise ObjectNotFoundError(f"Schema {'.'.join(namespace)} does not exist", code=ErrorCode.SCHEMA_NOT_FOUND)
        if denied:
            raise AccessDeniedError("The catalog refuses this to you")
        if status == HTTPStatus.TOO_MANY_REQUESTS:
            raise ResourcesError(
                "The catalog is asked too often",
                hint="try again later",
                retry_after_secs=round(answer.retry_after_secs),
            )
        if status >= 500:
            raise ExternalError(
                "The catalog does not answer", code=ErrorCode.CATALOG_UNAVAILABLE, hint="try again later"
            )
        raise ExternalError("The catalog refuses the request")

    def forget(self, key: str) -> None:
        self._handles.forget(key)
        self._answers.forget(key)

    def forget_all(self) -> None:
        self._handles.clear()
        self._answers.clear()

    def close(self) -> None:
        self.forget_all()
        self.transport.close()


def _wants_signatures(settings: Mapping[str, str]) -> bool:
    named = settings.get("rest.auth.type", "").lower() == "sigv4"
    return named or settings.get("rest.sigv4-enabled", "").lower() == "true"


def _texts(value: object) -> Mapping[str, str]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise unexpected()
    return {name: text for name, text in value.items() if isinstance(name, str) and isinstance(text, str)}


def _parts(entry: object) -> tuple[str, ...]:
    if not isinstance(entry, list) or not entry or not all(isinstance(part, str) and part for part in entry):
        raise unexpected()
    return tuple(entry)
