"""Polaris' management API: principals, principal roles, catalog roles and grants, after its public OpenAPI description.

What Polaris says about an error stays here: what is denied and what is not there are one answer (ERR-1, ERR-5).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, NoReturn, TypeVar
from urllib.parse import quote, urlsplit

from sqe_catalog_polaris.config import PolarisConfig
from sqe_catalog_polaris.login import Login
from sqe_catalog_polaris.transport import Answer, Transport
from sqe_core.spi import (
    AccessDeniedError,
    CommitConflictError,
    ErrorCode,
    ExternalError,
    Identity,
    PluginContext,
    ResourcesError,
    UserError,
    is_clean_name,
)

_AT_ONCE = 8
_MOST_ROLES = 2000
_LONGEST_NAME = 256
# A name becomes a part of a path. Servers and proxies read these before or after they undo the quoting, as they like.
_UNSAFE = frozenset("/\\%?#;")
_DOTS = frozenset({".", ".."})
_SYSTEM = "system$"

T = TypeVar("T")
R = TypeVar("R")

Names = frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Right:
    """A privilege of Polaris on something in one catalog."""

    type: str
    privilege: str
    namespace: tuple[str, ...] = ()
    name: str | None = None

    @property
    def place(self) -> tuple[str, tuple[str, ...], str | None]:
        return self.type, self.namespace, self.name

    def to_json(self) -> dict[str, Any]:
        body: dict[str, Any] = {"type": self.type, "privilege": self.privilege}
        if self.type != "catalog":
            body["namespace"] = list(self.namespace)
        if self.name is not None:
            body[f"{self.type}Name"] = self.name
        return body


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    name: str
    properties: Mapping[str, str]
    created_millis: int | None = None


class ManagementClient:
    """Asks the API as somebody. Safe for use from many threads.

    Args:
        config: the server; its realm goes with each request.
        context: metrics and versions.
    """

    def __init__(self, config: PolarisConfig, context: PluginContext) -> None:
        parts = urlsplit(config.catalog_url)
        self.base = parts.path.removesuffix("/api/catalog") + "/api/management/v1"
        self.origin = f"{parts.scheme}://{parts.netloc}"
        self.headers = config.own_headers
        self.transport = Transport(config.catalog_url, "Polaris", config, context)

    def probe(self) -> None:
        """Raise when nobody is there; a refused login shows that somebody is."""
        answer = self.transport.send("GET", f"{self.base}/principal-roles", headers=self.headers)
        refused = (HTTPStatus.OK, HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)
        if answer.status not in refused:
            raise ExternalError(
                f"The management API of Polaris answered with status {answer.status}",
                code=ErrorCode.CATALOG_UNAVAILABLE,
            )

    def conversation(self, login: Login, author: Identity) -> Conversation:
        """Return what one statement uses: all its requests together have the time of one."""
        return Conversation(self, login, author, self.transport.deadline())

    def close(self) -> None:
        self.transport.close()


class Conversation:
    """The requests of one statement."""

    def __init__(self, client: ManagementClient, login: Login, author: Identity, deadline: float) -> None:
        self._client = client
        self._login = login
        self._author = author
        self._deadline = deadline

    # Principal roles

    def principal_roles(self) -> Sequence[Role]:
        return _roles(self._get(("principal-roles",), "roles", "list the roles of Polaris"))

    def create_principal_role(self, name: str) -> None:
        body = {"principalRole": {"name": name}}
        answer = self._send("POST", ("principal-roles",), body, again=False)
        if answer.status == HTTPStatus.CONFLICT:
            raise UserError(f"Role {name} exists", code=ErrorCode.INVALID_ARGUMENTS)
        self._expect(answer, "create roles at Polaris")

    def delete_principal_role(self, name: str) -> bool:
        """Remove a principal role; False when it is gone already."""
        answer = self._send("DELETE", ("principal-roles", name))
        return self._deleted(answer, f"drop the role {name}")

    def principals_of(self, role: str) -> Names:
        path = ("principal-roles", role, "principals")
        return frozenset(_name(each) for each in self._get(path, "principals", _about(role)))

    def roles_of_principal(self, principal: str) -> Names:
        what = f"see or change the roles of user {principal}"
        return _names(self._get(("principals", principal, "principal-roles"), "roles", what))

    def assign_principal_role(self, role: str, principal: str) -> None:
        path, body = ("principals", principal, "principal-roles"), {"principalRole": {"name": role}}
        self._expect(self._send("PUT", path, body), f"give the role {role} to user {principal}")

    def revoke_principal_role(self, role: str, principal: str) -> bool:
        """Take a principal role from somebody; False when it is gone already."""
        answer = self._send("DELETE", ("principals", principal, "principal-roles", role))
        return self._deleted(answer, f"take the role {role} from user {principal}")

    # Catalog roles

    def catalog_roles(self, catalog: str) -> Sequence[Role]:
        return _roles(self._get(("catalogs", catalog, "catalog-roles"), "roles", _grants_in(catalog)))

    def find_catalog_role(self, catalog: str, name: str) -> Role | None:
        """Return a catalog role, None when there is none of that name."""
        answer = self._send("GET", ("catalogs", catalog, "catalog-roles", name))
        if answer.status == HTTPStatus.NOT_FOUND:
            return None
        self._expect(answer, _grants_in(catalog))
        return _role(answer.body)

    def create_catalog_role(self, catalog: str, name: str, properties: Mapping[str, str]) -> None:
        body = {"catalogRole": {"name": name, "properties": dict(properties)}}
        answer = self._send("POST", ("catalogs", catalog, "catalog-roles"), body, again=False)
        self._expect(answer, _grants_in(catalog))

    def delete_catalog_role(self, catalog: str, name: str) -> None:
        """Remove a catalog role, with all that it was granted."""
        self._deleted(self._send("DELETE", ("catalogs", catalog, "catalog-roles", name)), _grants_in(catalog))

    def assignees(self, catalog: str, name: str) -> Names:
        path = ("catalogs", catalog, "catalog-roles", name, "principal-roles")
        return _names(self._get(path, "roles", _grants_in(catalog)))

    def catalog_roles_of(self, role: str, catalog: str, *, must_exist: bool = True) -> Names:
        """List the catalog roles that a principal role has in a catalog; none of one that may be missing, and is."""
        answer = self._send("GET", ("principal-roles", role, "catalog-roles", catalog))
        if answer.status == HTTPStatus.NOT_FOUND and not must_exist:
            return frozenset()
        self._expect(answer, _about(role))
        return _names(_list(answer.body, "roles"))

    def assign_catalog_role(self, catalog: str, name: str, role: str) -> None:
        path, body = ("principal-roles", role, "catalog-roles", catalog), {"catalogRole": {"name": name}}
        self._expect(self._send("PUT", path, body), _about(role))

    # Grants

    def rights(self, catalog: str, name: str) -> frozenset[Right]:
        """List what a catalog role was granted; what is on policies is of no concern here."""
        path = ("catalogs", catalog, "catalog-roles", name, "grants")
        found = (_right(each) for each in self._get(path, "grants", _grants_in(catalog)))
        return frozenset(right for right in found if right is not None)

    def add_right(self, catalog: str, name: str, right: Right) -> None:
        path = ("catalogs", catalog, "catalog-roles", name, "grants")
        self._expect(self._send("PUT", path, {"grant": right.to_json()}), _grants_in(catalog))

    def revoke_right(self, catalog: str, name: str, right: Right) -> None:
        """Take something from a catalog role. What was gone already is fine: whoever asks looks again."""
        path = ("catalogs", catalog, "catalog-roles", name, "grants")
        answer = self._send("POST", path, {"grant": right.to_json()})
        if answer.status != HTTPStatus.NOT_FOUND:
            self._expect(answer, _grants_in(catalog))

    def each(self, ask: Callable[[T], R], of: Iterable[T]) -> list[R]:
        """Ask about many things, several at once."""
        things = list(of)
        if len(things) > _MOST_ROLES:
            raise ResourcesError("Polaris has more roles than SQE looks through", hint=f"it looks at {_MOST_ROLES}")
        if len(things) < 2:
            return [ask(thing) for thing in things]
        with ThreadPoolExecutor(min(_AT_ONCE, len(things)), thread_name_prefix="sqe-grants") as pool:
            return list(pool.map(ask, things))

    def _get(self, path: Sequence[str], member: str, what: str) -> list[Any]:
        answer = self._send("GET", path)
        self._expect(answer, what)
        return _list(answer.body, member)

    def _send(self, method: str, path: Sequence[str], body: Any = None, *, again: bool = True) -> Answer:
        for part in path:
            check_name(part)
        client, content = self._client, None
        target = "/".join((client.base, *(quote(part, safe="") for part in path)))
        headers = {**client.headers, **self._login.headers(self._author, method, client.origin + target)}
        if body is not None:
            headers["Content-Type"] = "application/json"
            content = json.dumps(body).encode()
        return client.transport.send(
            method, target, headers=headers, body=content, deadline=self._deadline, again=again
        )

    def _deleted(self, answer: Answer, what: str) -> bool:
        if answer.status == HTTPStatus.NOT_FOUND:
            return False
        self._expect(answer, what)
        return True

    def _expect(self, answer: Answer, what: str) -> None:
        # Which status says that it went well differs between its versions.
        if not 200 <= answer.status < 300:
            self._refuse(answer, what)

    def _refuse(self, answer: Answer, what: str) -> NoReturn:
        match answer.status:
            case HTTPStatus.UNAUTHORIZED if self._login.identity_mode == "user":
                raise UserError(
                    "Polaris does not accept your login any more",
                    code=ErrorCode.AUTHENTICATION_FAILED,
                    hint="log in again",
                )
            case HTTPStatus.UNAUTHORIZED:
                raise ExternalError("Polaris does not accept the service account of [access_control]")
            case HTTPStatus.FORBIDDEN | HTTPStatus.NOT_FOUND:
                raise AccessDeniedError(
                    f"Polaris does not let SQE {what}, or has nothing of that name",
                    hint="CREATE ROLE makes roles; users and catalogs are made at Polaris",
                )
            case HTTPStatus.BAD_REQUEST:
                raise UserError(
                    f"Polaris does not {what} in this way",
                    code=ErrorCode.INVALID_ARGUMENTS,
                    hint="roles of an identity provider are given there",
                )
            case HTTPStatus.CONFLICT:
                raise CommitConflictError("Somebody else changed the same grants at Polaris", hint="send it again")
            case HTTPStatus.TOO_MANY_REQUESTS:
                raise ResourcesError(
                    "Polaris is asked too often",
                    hint="try again later",
                    retry_after_secs=round(answer.retry_after_secs),
                )
        if answer.status >= 500:
            raise ExternalError("Polaris does not answer", code=ErrorCode.CATALOG_UNAVAILABLE, hint="try again later")
        raise ExternalError("Polaris refuses the request")


def is_name(name: str) -> bool:
    """Whether Polaris can have a name, and it would mean no other path on the way there."""
    return not (
        len(name) > _LONGEST_NAME
        or not is_clean_name(name)
        or name in _DOTS
        or not _UNSAFE.isdisjoint(name)
        or name.lstrip().lower().startswith(_SYSTEM)
    )


def check_name(name: str) -> None:
    """Refuse what is no name."""
    if not is_name(name):
        raise UserError(
            "A name cannot be used at Polaris",
            code=ErrorCode.INVALID_ARGUMENTS,
            hint='up to 256 characters, none of / \\ % ? # ; and not "." or ".."',
        )


def _about(role: str) -> str:
    return f"see or change what the role {role} has"


def _grants_in(catalog: str) -> str:
    return f"see or change grants in catalog {catalog}"


def _unexpected() -> ExternalError:
    return ExternalError("The management API of Polaris does not answer as expected")


def _list(body: Any, member: str) -> list[Any]:
    found = body.get(member) if isinstance(body, Mapping) else None
    if not isinstance(found, list):
        raise _unexpected()
    return found


def _name(entry: Any) -> str:
    name = entry.get("name") if isinstance(entry, Mapping) else None
    if not isinstance(name, str) or not name:
        raise _unexpected()
    return name


def _names(entries: Iterable[Any]) -> Names:
    return frozenset(_name(entry) for entry in entries)


def _role(entry: Any) -> Role:
    name = _name(entry)
    properties, created = entry.get("properties") or {}, entry.get("createTimestamp")
    if not isinstance(properties, Mapping):
        raise _unexpected()
    texts = {key: value for key, value in properties.items() if isinstance(value, str)}
    return Role(name=name, properties=texts, created_millis=created if type(created) is int else None)


def _roles(entries: Iterable[Any]) -> Sequence[Role]:
    return [_role(entry) for entry in entries]


def _right(entry: Any) -> Right | None:
    """Read a grant. One that cannot be read is an error: what is not seen could not be revoked."""
    kind = entry.get("type") if isinstance(entry, Mapping) else None
    if kind not in ("catalog", "namespace", "table", "view"):
        if kind == "policy":
            return None
        raise _unexpected()
    namespace = [] if kind == "catalog" else entry.get("namespace")
    name = entry.get(f"{kind}Name") if kind in ("table", "view") else None
    texts = [entry.get("privilege"), *(namespace if isinstance(namespace, list) else [None])]
    if kind in ("table", "view"):
        texts.append(name)
    if not all(isinstance(text, str) and text for text in texts):
        raise _unexpected()
    return Right(type=kind, privilege=entry["privilege"], namespace=tuple(namespace or ()), name=name)
