"""A stand-in for Apache Polaris on loopback, because its server cannot be had for the tests.

It has the management API after Polaris' public OpenAPI description (`polaris-management-service.yml`), and is strict:
paths, methods, members, types, patterns and enumerations that the description does not have are 400, and noted as
violations. What roles hold decides about tables: with `forward_to` it stands in front of a real REST catalog and lets
through what Polaris would let through.
"""

from __future__ import annotations

import http.client
import json
import re
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from sqe_http.testing import Loopback, QuietHandler

MANAGEMENT = "/api/management/v1/"
CATALOG = "/api/catalog/v1/"
CLIENT = ("sqe-grants", "s3cr3t-of-sqe-77")
SERVICE_TOKEN = "service-token-9a1c"

_NAME = re.compile(r"(?!\s*[sS][yY][sS][tT][eE][mM]\$).{1,256}", re.DOTALL)
_TABLE_CHANGES = {
    *("TABLE_ASSIGN_UUID", "TABLE_UPGRADE_FORMAT_VERSION", "TABLE_ADD_SCHEMA", "TABLE_SET_CURRENT_SCHEMA"),
    *("TABLE_ADD_PARTITION_SPEC", "TABLE_ADD_SORT_ORDER", "TABLE_SET_DEFAULT_SORT_ORDER", "TABLE_ADD_SNAPSHOT"),
    *("TABLE_SET_SNAPSHOT_REF", "TABLE_REMOVE_SNAPSHOTS", "TABLE_REMOVE_SNAPSHOT_REF", "TABLE_SET_LOCATION"),
    *("TABLE_SET_PROPERTIES", "TABLE_REMOVE_PROPERTIES", "TABLE_SET_STATISTICS", "TABLE_REMOVE_STATISTICS"),
    *("TABLE_REMOVE_PARTITION_SPECS", "TABLE_MANAGE_STRUCTURE"),
}
_VIEW = {
    *("CATALOG_MANAGE_ACCESS", "VIEW_DROP", "VIEW_LIST", "VIEW_READ_PROPERTIES", "VIEW_WRITE_PROPERTIES"),
    "VIEW_FULL_METADATA",
}
_TABLE = _TABLE_CHANGES | {
    *("CATALOG_MANAGE_ACCESS", "TABLE_DROP", "TABLE_LIST", "TABLE_READ_PROPERTIES", "TABLE_WRITE_PROPERTIES"),
    *("TABLE_READ_DATA", "TABLE_WRITE_DATA", "TABLE_FULL_METADATA", "TABLE_ATTACH_POLICY", "TABLE_DETACH_POLICY"),
}
_CONTAINER = (_VIEW | _TABLE) - {"TABLE_ATTACH_POLICY", "TABLE_DETACH_POLICY"} | {
    *("CATALOG_MANAGE_CONTENT", "CATALOG_MANAGE_METADATA", "NAMESPACE_CREATE", "TABLE_CREATE", "VIEW_CREATE"),
    *("NAMESPACE_DROP", "NAMESPACE_LIST", "NAMESPACE_READ_PROPERTIES", "NAMESPACE_WRITE_PROPERTIES"),
    *("NAMESPACE_FULL_METADATA", "POLICY_CREATE", "POLICY_WRITE", "POLICY_READ", "POLICY_DROP", "POLICY_LIST"),
    "POLICY_FULL_METADATA",
}
PRIVILEGES: Mapping[str, set[str]] = {
    "view": _VIEW,
    "table": _TABLE,
    "namespace": _CONTAINER | {"NAMESPACE_ATTACH_POLICY", "NAMESPACE_DETACH_POLICY"},
    "catalog": _CONTAINER
    | {"CATALOG_READ_PROPERTIES", "CATALOG_WRITE_PROPERTIES", "CATALOG_ATTACH_POLICY", "CATALOG_DETACH_POLICY"},
}
# What reads and what writes a table, as Polaris' authorizer has it.
_READS = {"TABLE_READ_DATA", "TABLE_WRITE_DATA", "CATALOG_MANAGE_CONTENT"}
_WRITES = {"TABLE_WRITE_DATA", "CATALOG_MANAGE_CONTENT"}
_LISTS = _READS | {"TABLE_LIST", "TABLE_READ_PROPERTIES", "TABLE_WRITE_PROPERTIES", "TABLE_FULL_METADATA"}
_LOOKS = {"NAMESPACE_LIST", "NAMESPACE_READ_PROPERTIES", "CATALOG_MANAGE_CONTENT"}

Right = tuple[str, str, tuple[str, ...], str | None]


class Refused(Exception):
    """An answer that is no success."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


@dataclass
class CatalogRole:
    properties: dict[str, str] = field(default_factory=dict)
    rights: set[Right] = field(default_factory=set)


@dataclass
class Request:
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    raw: bytes

    @property
    def what(self) -> str:
        return f"{self.method} {self.path.removeprefix(MANAGEMENT)}"


class StandInPolaris(Loopback):
    """Principals, roles and grants, in memory. `admins` may use the management API; nobody else may."""

    def __init__(self, forward_to: str | None = None) -> None:
        self.people = {SERVICE_TOKEN: "sqe-service"}
        """Tokens, and whose they are."""
        self.admins = {"sqe-service"}
        self.principals: dict[str, set[str]] = {"sqe-service": set()}
        self.roles: dict[str, dict[str, Any]] = {"service_admin": {}}
        self.catalogs: dict[str, dict[str, CatalogRole]] = {}
        self.assigned: dict[tuple[str, str], set[str]] = {}
        """(principal role, catalog) to catalog roles."""
        self.objects: dict[str, set[tuple[str, tuple[str, ...], str | None]]] = {}
        """What is there to be granted on; only looked at where nothing is forwarded."""
        self.realm: str | None = None
        self.requests: list[Request] = []
        self.violations: list[str] = []
        self.intercept: Callable[[Request], tuple[int, Any] | None] | None = None
        """Answers in the place of the server, where it returns something."""
        self.lost: Callable[[Request], bool] | None = None
        """Says whether the answer to a request gets lost, after the request was carried out."""
        self._forward = urlsplit(forward_to) if forward_to else None
        self._lock = threading.RLock()
        super().__init__(self._handler())

    def __enter__(self) -> StandInPolaris:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def add_catalog(self, name: str) -> None:
        self.catalogs[name] = {"catalog_admin": CatalogRole(rights={("catalog", "CATALOG_MANAGE_ACCESS", (), None)})}
        self.assigned["service_admin", name] = {"catalog_admin"}
        self.objects[name] = set()

    def rights_of(self, role: str, catalog: str) -> set[Right]:
        """What a principal role has in a catalog."""
        return {
            right for name in self.assigned.get((role, catalog), ()) for right in self.catalogs[catalog][name].rights
        }

    def asked(self) -> list[str]:
        """The requests to the management API."""
        return [request.what for request in self.requests if request.path.startswith(MANAGEMENT)]

    # The server

    def _handler(self) -> type[QuietHandler]:
        standin = self

        class Handler(QuietHandler):
            timeout = 20

            def _serve(self) -> None:
                raw = self.read_body()
                parts = urlsplit(self.path)
                request = Request(
                    method=self.command,
                    path=parts.path,
                    query=dict(parse_qsl(parts.query, keep_blank_values=True)),
                    headers={name.lower(): value for name, value in self.headers.items()},
                    raw=raw,
                )
                standin.requests.append(request)
                status, body = standin.answer(request, self.path)
                if standin.lost is not None and standin.lost(request):
                    self.close_connection = True
                    return
                with suppress(OSError):
                    self._send(status, body)

            def _send(self, status: int, body: Any) -> None:
                content = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
                self.send_response(status)
                if status != 204:
                    self.send_header("Content-Length", str(len(content)))
                self.send_header("Content-Type", "application/json")
                self.end_headers()
                if status != 204 and self.command != "HEAD":
                    self.wfile.write(content)

            do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = _serve

        return Handler

    def answer(self, request: Request, target: str) -> tuple[int, Any]:
        try:
            if self.intercept is not None and (answer := self.intercept(request)) is not None:
                return answer
            if self.realm is not None and request.headers.get("polaris-realm") != self.realm:
                raise Refused(404, "Missing or unknown realm")
            if request.path == f"{CATALOG}oauth/tokens":
                return self._token(request)
            who = self._who(request)
            if request.path.startswith(MANAGEMENT):
                with self._lock:
                    return self._manage(request, who)
            return self._forwarded(request, target, who)
        except Refused as refused:
            if refused.status == 400:
                self.violations.append(f"{request.what}: {refused.message}")
            kind = {401: "NotAuthorizedException", 403: "ForbiddenException", 404: "NotFoundException"}
            error = {"message": refused.message, "type": kind.get(refused.status, "Exception"), "code": refused.status}
            return refused.status, {"error": error}

    def _who(self, request: Request) -> str:
        who = self.people.get(request.headers.get("authorization", "").removeprefix("Bearer "))
        if who is None:
            raise Refused(401, "Invalid token")
        return who

    def _token(self, request: Request) -> tuple[int, Any]:
        form = dict(parse_qsl(request.raw.decode()))
        expected = {"grant_type": "client_credentials", "client_id": CLIENT[0], "client_secret": CLIENT[1]}
        if set(form) != {*expected, "scope"} or not form["scope"].startswith("PRINCIPAL_ROLE:"):
            raise Refused(400, f"a token request with {sorted(form)}")
        if any(form[key] != value for key, value in expected.items()):
            return 401, {"error": "unauthorized_client"}
        return 200, {"access_token": SERVICE_TOKEN, "token_type": "bearer", "expires_in": 3600}

    # The management API

    def _manage(self, request: Request, who: str) -> tuple[int, Any]:
        raw_parts = request.path.removeprefix(MANAGEMENT).split("/")
        parts = [_checked(unquote(part)) for part in raw_parts]
        if request.query and set(request.query) - {"cascade"}:
            raise Refused(400, f"query {sorted(request.query)}")
        body = self._body(request)
        if who not in self.admins:
            raise Refused(403, f"Principal '{who}' with activated PrincipalRoles '[]' is not authorized")
        match request.method, parts, body:
            case "GET", ["principal-roles"], None:
                return 200, {"roles": [{"name": name, **more} for name, more in self.roles.items()]}
            case "POST", ["principal-roles"], {"principalRole": dict(role)} if len(body) == 1:
                return self._create_principal_role(role)
            case "DELETE", ["principal-roles", role], None:
                self._principal_role(role)
                del self.roles[role]
                self.assigned = {key: value for key, value in self.assigned.items() if key[0] != role}
                for held in self.principals.values():
                    held.discard(role)
                return 204, None
            case "GET", ["principal-roles", role, "principals"], None:
                self._principal_role(role)
                return 200, {"principals": [{"name": name} for name, held in self.principals.items() if role in held]}
            case "GET", ["principals", name, "principal-roles"], None:
                return 200, {"roles": [{"name": role} for role in self._principal(name)]}
            case "PUT", ["principals", name, "principal-roles"], {"principalRole": dict(role)} if len(body) == 1:
                entity = _entity(role, federated=bool)
                if self._principal_role(entity["name"]).get("federated"):
                    raise Refused(400, "Cannot grant a federated role")
                self._principal(name).add(entity["name"])
                return 201, None
            case "DELETE", ["principals", name, "principal-roles", role], None:
                if role not in self._principal(name):
                    raise Refused(404, "Grant not found")
                self._principal(name).remove(role)
                return 204, None
            case "GET", ["principal-roles", role, "catalog-roles", catalog], None:
                self._principal_role(role), self._catalog(catalog)
                return 200, {"roles": [{"name": name} for name in self.assigned.get((role, catalog), ())]}
            case "PUT", ["principal-roles", role, "catalog-roles", catalog], {"catalogRole": dict(own)} if (
                len(body) == 1
            ):
                self._principal_role(role)
                self._catalog_role(catalog, _entity(own)["name"])
                self.assigned.setdefault((role, catalog), set()).add(own["name"])
                return 201, None
            case _, ["catalogs", catalog, "catalog-roles", *rest], _:
                return self._manage_catalog_roles(request, catalog, rest, body)
        raise Refused(400, "no such operation")

    def _manage_catalog_roles(self, request: Request, catalog: str, rest: list[str], body: Any) -> tuple[int, Any]:
        roles = self._catalog(catalog)
        match request.method, rest, body:
            case "GET", [], None:
                return 200, {"roles": [{"name": name, "properties": role.properties} for name, role in roles.items()]}
            case "POST", [], {"catalogRole": dict(role)} if len(body) == 1:
                entity = _entity(role)
                if entity["name"] in roles:
                    raise Refused(409, "CatalogRole already exists")
                roles[entity["name"]] = CatalogRole(properties=entity.get("properties", {}))
                return 201, entity
            case "GET", [name], None:
                return 200, {"name": name, "properties": self._catalog_role(catalog, name).properties}
            case "DELETE", [name], None:
                self._catalog_role(catalog, name)
                del roles[name]
                for (_, of), held in self.assigned.items():
                    if of == catalog:
                        held.discard(name)
                return 204, None
            case "GET", [name, "principal-roles"], None:
                self._catalog_role(catalog, name)
                holders = [role for (role, of), held in self.assigned.items() if of == catalog and name in held]
                return 200, {"roles": [{"name": role} for role in holders]}
            case "GET", [name, "grants"], None:
                return 200, {"grants": [_grant_json(right) for right in self._catalog_role(catalog, name).rights]}
            case "PUT", [name, "grants"], {"grant": dict(grant)} if len(body) == 1:
                right = self._grant(catalog, grant)
                self._catalog_role(catalog, name).rights.add(right)
                return 201, None
            case "POST", [name, "grants"], {"grant": dict(grant)} if len(body) == 1:
                right = self._grant(catalog, grant)
                if right not in self._catalog_role(catalog, name).rights:
                    raise Refused(404, "Grant not found")
                self._catalog_role(catalog, name).rights.remove(right)
                return 201, None
        raise Refused(400, "no such operation")

    def _body(self, request: Request) -> Any:
        if not request.raw:
            return None
        if request.headers.get("content-type") != "application/json":
            raise Refused(400, "a body that is no JSON")
        return json.loads(request.raw)

    def _create_principal_role(self, role: dict[str, Any]) -> tuple[int, Any]:
        entity = _entity(role, federated=bool)
        if entity["name"] in self.roles:
            raise Refused(409, "PrincipalRole already exists")
        self.roles[entity["name"]] = {"createTimestamp": 1_700_000_000_000}
        return 201, entity

    def _principal(self, name: str) -> set[str]:
        if name not in self.principals:
            raise Refused(404, f"Principal {name} not found")
        return self.principals[name]

    def _principal_role(self, name: str) -> dict[str, Any]:
        if name not in self.roles:
            raise Refused(404, f"PrincipalRole {name} not found")
        return self.roles[name]

    def _catalog(self, name: str) -> dict[str, CatalogRole]:
        if name not in self.catalogs:
            raise Refused(404, f"Catalog {name} not found")
        return self.catalogs[name]

    def _catalog_role(self, catalog: str, name: str) -> CatalogRole:
        if name not in self._catalog(catalog):
            raise Refused(404, f"CatalogRole {name} not found")
        return self.catalogs[catalog][name]

    def _grant(self, catalog: str, grant: dict[str, Any]) -> Right:
        """Check a GrantResource: its members by its type, and that what it names is there."""
        kind = grant.get("type")
        if kind not in PRIVILEGES:
            raise Refused(400, f"a grant of type {kind!r}")
        members = {"type", "privilege"}
        if kind != "catalog":
            members |= {"namespace"}
        if kind in ("table", "view"):
            members |= {f"{kind}Name"}
        if set(grant) != members:
            raise Refused(400, f"a {kind} grant with {sorted(grant)}")
        if grant["privilege"] not in PRIVILEGES[kind]:
            raise Refused(400, f"the privilege {grant['privilege']!r} on a {kind}")
        namespace = grant.get("namespace", [])
        if not isinstance(namespace, list) or not all(isinstance(part, str) for part in namespace):
            raise Refused(400, "a namespace that is no array of texts")
        name = grant.get(f"{kind}Name")
        if kind in ("table", "view") and not (isinstance(name, str) and 1 <= len(name) <= 256):
            raise Refused(400, f"the {kind} {name!r}")
        if self._forward is None and kind != "catalog" and (kind, tuple(namespace), name) not in self.objects[catalog]:
            raise Refused(404, f"{kind} not found")
        return kind, grant["privilege"], tuple(namespace), name

    # The catalog in front of which it stands

    def _forwarded(self, request: Request, target: str, who: str) -> tuple[int, Any]:
        if self._forward is None or not request.path.startswith(CATALOG):
            raise Refused(404, "no such path")
        parts = [unquote(part) for part in request.path.removeprefix(CATALOG).split("/")]
        if parts == ["config"]:
            warehouse = request.query.get("warehouse", "")
            if warehouse not in self.catalogs:
                raise Refused(404, f"Unable to find warehouse {warehouse}")
            return 200, {"defaults": {}, "overrides": {"prefix": warehouse}}
        catalog, rest = parts[0], parts[1:]
        self._decide(request, catalog, rest, who)
        connection = http.client.HTTPConnection(self._forward.hostname or "", self._forward.port, timeout=30)
        try:
            # The catalog behind has one warehouse and no prefix.
            path = f"/v1/{target.removeprefix(CATALOG).partition('/')[2]}"
            kept = ("content-type", "accept", "x-client-version")
            headers = {name: value for name, value in request.headers.items() if name in kept}
            connection.request(request.method, path, body=request.raw or None, headers=headers)
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    def _decide(self, request: Request, catalog: str, rest: list[str], who: str) -> None:
        if who in self.admins:
            return
        held = {right for role in self.principals.get(who, ()) for right in self.rights_of(role, catalog)}
        namespace = tuple(rest[1].split("\x1f")) if len(rest) > 1 else ()
        match rest:
            case ["namespaces", _, "tables", name]:
                needed = _READS if request.method in ("GET", "HEAD") else _WRITES
                allowed = _has(held, needed, namespace, ("table", name))
            case ["namespaces", _, "tables"]:
                allowed = _has(held, _LISTS if request.method == "GET" else _WRITES, namespace, None)
            case ["namespaces", *_]:
                allowed = request.method in ("GET", "HEAD") and _has(held, _LOOKS, namespace, None)
            case _:
                allowed = request.method == "POST" and rest[:1] == ["tables"]
        if not allowed:
            raise Refused(403, f"Principal '{who}' is not authorized for op {request.method} {'/'.join(rest)}")


def _has(held: set[Right], needed: set[str], namespace: tuple[str, ...], named: tuple[str, str] | None) -> bool:
    """Whether something in a namespace, or the namespace, is covered: rights reach downwards."""
    for kind, privilege, of, name in held:
        if privilege not in needed:
            continue
        if kind == "catalog" or (kind == "namespace" and namespace[: len(of)] == of):
            return True
        if named is not None and (kind, name) == named and of == namespace:
            return True
    return False


def _checked(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise Refused(400, f"the name {name!r}")
    return name


def _entity(role: dict[str, Any], **more: type) -> dict[str, Any]:
    """Check a PrincipalRole or a CatalogRole of a request."""
    types: dict[str, type] = {"name": str, "properties": dict, **more}
    if "name" not in role or set(role) - set(types):
        raise Refused(400, f"a role with {sorted(role)}")
    if any(not isinstance(value, types[key]) for key, value in role.items()):
        raise Refused(400, "a role with members of another type")
    if not all(isinstance(text, str) for pair in role.get("properties", {}).items() for text in pair):
        raise Refused(400, "properties that are no texts")
    _checked(role["name"])
    return role


def _grant_json(right: Right) -> dict[str, Any]:
    kind, privilege, namespace, name = right
    body: dict[str, Any] = {"type": kind, "privilege": privilege}
    if kind != "catalog":
        body["namespace"] = list(namespace)
    if name is not None:
        body[f"{kind}Name"] = name
    return body
