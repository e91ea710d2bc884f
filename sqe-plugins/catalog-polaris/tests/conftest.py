"""A REST catalog on loopback that takes only what the protocol has, or answers as badly as a test wants.

It stands for the servers that cannot be had for tests, too: Apache Polaris (realm header, scopes of its token endpoint)
and Unity Catalog, after their public OpenAPI descriptions.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from testbed.making import each_ended

from sqe_catalog_polaris.config import RestAuth, RestConfig
from sqe_catalog_polaris.kinds import RestBackend, make_backend
from sqe_core.spi import CatalogContext
from sqe_http.testing import HttpFake, Reply, Request

VIEWS = [
    "GET /v1/{prefix}/namespaces",
    "GET /v1/{prefix}/namespaces/{namespace}/views",
    "GET /v1/{prefix}/namespaces/{namespace}/views/{view}",
]
TOKEN_TYPE = "urn:ietf:params:oauth:token-type:access_token"

Parts = tuple[str, ...]


def error(status: int, kind: str = "Exception", message: str = "no", **headers: str) -> Reply:
    """The protocol's error."""
    body = {"error": {"message": message, "type": kind, "code": status}}
    return Reply(status=status, body=body, headers={name.replace("_", "-"): value for name, value in headers.items()})


class FakeCatalog(HttpFake):
    """Lists what each user may see, and notes every request that the protocol does not have."""

    error = staticmethod(error)
    prefix = "lake"
    separator = "\x1f"

    def __init__(self) -> None:
        super().__init__()
        self.violations: list[str] = []
        self.people = {"token-of-alice-5d1f": "alice", "token-of-bob-77c3": "bob", "service-token": "service"}
        self.namespaces: dict[Parts, dict[str, str]] = {("hr",): {"owner": "people"}, ("hr", "pay"): {}, ("fin",): {}}
        self.tables: dict[Parts, list[str]] = {("hr",): ["emp", "roles"], ("hr", "pay"): ["salaries"], ("fin",): []}
        self.views: dict[Parts, list[str]] = {("hr",): ["grown_ups"]}
        self.loaded: dict[tuple[Parts, str], dict[str, Any]] = {}
        """What a table is loaded as, and who gets which restrictions with it."""
        self.restricted: dict[tuple[str, str], Any] = {}
        self.hidden: dict[str, set[Parts]] = {"bob": {("fin",)}}
        """The namespaces that a user may not load; they are listed all the same."""
        self.config: dict[str, Any] = {"defaults": {}, "overrides": {"prefix": "lake"}, "endpoints": VIEWS}
        self.warehouses = {"lake": {"alice", "bob", "service"}, "other": {"alice"}}
        self.realm: str | None = None
        self.anonymous = False
        self.etags = False
        self.page: int | None = None
        self.url += "/api/catalog"
        self.token_endpoint = f"{self.url}/v1/oauth/tokens"

    def paths(self) -> list[str]:
        """What was asked for, without what is in front."""
        return [request.path.removeprefix("/api/catalog/v1/") for request in self.requests]

    # What is right

    def honest(self, request: Request) -> Reply:
        """Answer as the protocol has it."""
        if request.path == urlsplit(self.token_endpoint).path:
            return self._token(request)
        who = "service" if self.anonymous else self.people.get(request.bearer, "")
        if not who:
            return error(401, "NotAuthorizedException")
        if self.anonymous and "authorization" in request.headers:
            return self._violation("a login where nobody asks for one")
        if self.realm is not None and request.headers.get("polaris-realm") != self.realm:
            return self._violation("no realm")
        base = "/api/catalog/v1/"
        if request.method != "GET" or not request.path.startswith(base):
            return self._violation(f"{request.method} {request.path}")
        parts = [unquote(part) for part in request.path.removeprefix(base).split("/")]
        if parts == ["config"]:
            return self._config(request, who)
        if self.prefix:
            if parts[0] != self.prefix:
                return self._violation(f"prefix {parts[0]}")
            parts = parts[1:]
        match parts:
            case ["namespaces"]:
                return self._listing(request, who)
            case ["namespaces", joined]:
                return self._namespace(request, who, tuple(joined.split(self.separator)))
            case ["namespaces", joined, "tables", name]:
                return self._table(request, who, tuple(joined.split(self.separator)), name)
            case ["namespaces", joined, "tables" | "views" as kind]:
                return self._objects(request, who, tuple(joined.split(self.separator)), kind)
        return self._violation(request.path)

    def _violation(self, what: str) -> Reply:
        self.violations.append(what)
        return error(400, "BadRequestException", what)

    def _known(self, request: Request, *names: str) -> Reply | None:
        unknown = set(request.query) - set(names)
        return self._violation(f"query parameters {sorted(unknown)}") if unknown else None

    def _config(self, request: Request, who: str) -> Reply:
        if wrong := self._known(request, "warehouse"):
            return wrong
        warehouse = request.query.get("warehouse", "lake")
        if who not in self.warehouses.get(warehouse, ()):
            return error(404, "NotFoundException", "Unable to find warehouse")
        return Reply(body=self.config)

    def _page(self, request: Request, member: str, found: list[Any]) -> Reply:
        size = self.page or int(request.query.get("pageSize", "1000"))
        start = int(request.query.get("pageToken") or 0)
        body: dict[str, Any] = {member: found[start : start + size]}
        if "pageToken" in request.query:
            body["next-page-token"] = str(start + size) if start + size < len(found) else None
        else:
            body[member] = found
        reply = Reply(body=body)
        if not self.etags:
            return reply
        tag = f'"{hash(json.dumps(body))}"'
        if request.headers.get("if-none-match") == tag:
            return Reply(status=304, headers={"ETag": tag})
        return Reply(body=body, headers={"ETag": tag})

    def _listing(self, request: Request, who: str) -> Reply:
        if wrong := self._known(request, "parent", "pageToken", "pageSize"):
            return wrong
        parent = tuple(request.query["parent"].split(self.separator)) if "parent" in request.query else ()
        if parent and parent not in self.namespaces:
            return error(404, "NoSuchNamespaceException")
        below = [list(parts) for parts in self.namespaces if parts[:-1] == parent]
        return self._page(request, "namespaces", below)

    def _may_load(self, who: str, namespace: Parts) -> Reply | None:
        if namespace not in self.namespaces:
            return error(404, "NoSuchNamespaceException", "Namespace does not exist")
        if namespace in self.hidden.get(who, ()):
            return error(
                403, "ForbiddenException", f"Principal '{who}' is not authorized for op LOAD_NAMESPACE_METADATA"
            )
        return None

    def _namespace(self, request: Request, who: str, namespace: Parts) -> Reply:
        wrong = self._known(request) or self._may_load(who, namespace)
        return wrong or Reply(body={"namespace": list(namespace), "properties": self.namespaces[namespace]})

    def _objects(self, request: Request, who: str, namespace: Parts, kind: str) -> Reply:
        if wrong := self._known(request, "pageToken", "pageSize") or self._may_load(who, namespace):
            return wrong
        names = (self.tables if kind == "tables" else self.views).get(namespace, [])
        found = [{"namespace": list(namespace), "name": name} for name in names]
        return self._page(request, "identifiers", found)

    def _table(self, request: Request, who: str, namespace: Parts, name: str) -> Reply:
        if wrong := self._known(request, "snapshots") or self._may_load(who, namespace):
            return wrong
        if (namespace, name) not in self.loaded:
            return error(404, "NoSuchTableException")
        body = {"metadata-location": "file:/nowhere", "metadata": self.loaded[namespace, name], "config": {}}
        if (who, name) in self.restricted:
            body["read-restrictions"] = self.restricted[who, name]
        # As the protocol has it, the tag is that of the table, whoever asks.
        headers = {"ETag": '"table"'}
        if request.headers.get("if-none-match") == headers["ETag"]:
            return Reply(status=304, headers=headers)
        return Reply(body=body, headers=headers)

    def _token(self, request: Request) -> Reply:
        """Polaris' own token endpoint, and one of an identity provider for the exchange."""
        if request.headers.get("content-type") != "application/x-www-form-urlencoded" or request.method != "POST":
            return self._violation("a token request that is no form")
        if "authorization" in request.headers:
            return self._violation("a login with a token request")
        form = dict(request.form)
        client = (form.pop("client_id", None), form.pop("client_secret", None))
        match form.pop("grant_type", None):
            case "client_credentials":
                scope = form.pop("scope", "")
                if form or not scope.startswith("PRINCIPAL_ROLE:"):
                    return self._violation(f"scope {scope!r}, and {sorted(form)}")
                if client != ("root", "s3cr3t"):
                    return Reply(status=401, body={"error": "unauthorized_client"})
                return self.issue("service-token")
            case "urn:ietf:params:oauth:grant-type:token-exchange":
                subject = form.pop("subject_token", "")
                types = (form.pop("subject_token_type", None), form.pop("requested_token_type", None))
                form.pop("audience", None), form.pop("scope", None)
                if form or types != (TOKEN_TYPE, TOKEN_TYPE):
                    return self._violation(f"an exchange with {types}, and {sorted(form)}")
                if subject not in self.people or client[0] != "sqe":
                    return Reply(status=400, body={"error": "invalid_grant"})
                self.people[f"exchanged-{subject}"] = self.people[subject]
                return self.issue(f"exchanged-{subject}")
        return self._violation("an unknown grant")

    def issue(self, token: str) -> Reply:
        """The answer that holds a token."""
        return Reply(body={"access_token": token, "token_type": "Bearer", "expires_in": 300})


@pytest.fixture
def catalog() -> Iterator[FakeCatalog]:
    """The server; whatever it was asked was in the protocol."""
    fake = FakeCatalog()
    yield fake
    fake.stop()
    assert fake.violations == []


Make = Callable[..., RestBackend]


@pytest.fixture
def make(catalog: FakeCatalog) -> Iterator[Make]:
    """Make a backend for the server: patient, with one retry."""

    def create(
        config_type: type[RestConfig] = RestConfig, *, context: CatalogContext | None = None, **keys: Any
    ) -> RestBackend:
        if "auth" in keys and isinstance(keys["auth"], dict):
            keys["auth"] = RestAuth(**keys["auth"])
        config = config_type(
            **{"catalog_url": catalog.url, "warehouse": "lake", "timeout_secs": 20, "max_retries": 1, **keys}
        )
        return make_backend("lake", config, context or CatalogContext())

    yield from each_ended(create)
