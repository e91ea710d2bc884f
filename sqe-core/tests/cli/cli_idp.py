"""An identity provider on loopback that answers honestly, or as badly as a test wants."""

from __future__ import annotations

import base64
import hashlib
import http.client
import json
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from sqe_http.testing import HttpFake, Reply, Request

CLIENT = "sqe-cli"


def of_json(value: Any, status: int = 200) -> Reply:
    return Reply(body=value, status=status)


class FakeIdp(HttpFake):
    """Knows one person, whose browser logs in by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.forms: list[tuple[str, dict[str, str]]] = []
        self.replies: dict[str, Callable[[dict[str, str]], Reply]] = {}
        """By path, in place of the honest answer."""
        self.metadata: dict[str, Any] = {}
        self.claims: dict[str, Any] = {}
        self.answer: dict[str, str] = {}
        self.lifetime_secs = 300.0
        self.pending = 0
        self.revoked: list[str] = []
        self._codes: dict[str, dict[str, str]] = {}
        self._refresh: set[str] = set()
        self._count = 0
        self.issuer = f"{self.url}/realms/r"

    def browse(self, url: str) -> bool:
        """Be the browser: begin where the command line says, log in, and follow the redirect back."""
        url = self.led_to(url)
        query = {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
        self.forms.append(("/browser", query))
        self._count += 1
        code = f"code-{self._count}"
        self._codes[code] = query
        answer = {"state": query["state"], "code": code, "iss": self.issuer, **self.answer}
        answer = {name: value for name, value in answer.items() if value}
        threading.Thread(target=self.visit, args=(f"{query['redirect_uri']}?{urlencode(answer)}",), daemon=True).start()
        return True

    @staticmethod
    def led_to(url: str) -> str:
        """Where an address leads."""
        parts = urlsplit(url)
        connection = http.client.HTTPConnection(parts.netloc, timeout=5)
        connection.request("GET", parts.path)
        location = connection.getresponse().getheader("Location", "")
        connection.close()
        return location

    @staticmethod
    def visit(url: str) -> int:
        with suppress(OSError):
            try:
                with urllib.request.urlopen(url, timeout=5) as page:
                    return int(page.status)
            except urllib.error.HTTPError as error:
                error.close()
                return error.code
        return 0

    def tokens(self, nonce: str | None = None) -> dict[str, Any]:
        """New tokens of alice."""
        self._count += 1
        self._refresh.add(f"refresh-{self._count}")
        claims = {"iss": self.issuer, "aud": CLIENT, "sub": "17", "preferred_username": "alice"}
        claims |= {"exp": time.time() + 300, **({"nonce": nonce} if nonce else {}), **self.claims}
        return {
            "access_token": f"access-{self._count}",
            "refresh_token": f"refresh-{self._count}",
            "id_token": ".".join((_part({"alg": "RS256"}), _part(claims), "c2ln")),
            "token_type": "Bearer",
            "expires_in": self.lifetime_secs,
        }

    def withdraw(self) -> None:
        """End every login."""
        self._refresh.clear()

    def honest(self, request: Request) -> Reply:
        path, form = request.path, dict(request.form)
        self.forms.append((path, form))
        name = path.rpartition("/")[2]
        return self.replies[name](form) if name in self.replies else self._honest(path, form)

    def _honest(self, path: str, form: dict[str, str]) -> Reply:
        match path:
            case "/realms/r/.well-known/openid-configuration":
                here = self.issuer
                return of_json(
                    {
                        "issuer": here,
                        "authorization_endpoint": f"{here}/auth",
                        "token_endpoint": f"{here}/token",
                        "device_authorization_endpoint": f"{here}/device",
                        "revocation_endpoint": f"{here}/revoke",
                        "authorization_response_iss_parameter_supported": True,
                        **self.metadata,
                    }
                )
            case "/realms/r/device":
                return of_json(
                    {
                        "device_code": "device-code",
                        "user_code": "ABCD-EFGH",
                        "verification_uri": f"{self.issuer}/activate",
                        "expires_in": 600,
                        "interval": 1,
                    }
                )
            case "/realms/r/token":
                return self._token(form)
            case "/realms/r/revoke":
                self.revoked.append(form["token"])
                self._refresh.discard(form["token"])
                return Reply(body=b"")
        return Reply(status=404, body=b"<html>")

    def _token(self, form: dict[str, str]) -> Reply:
        match form.get("grant_type"):
            case "authorization_code":
                asked = self._codes.pop(form["code"], None)
                digest = hashlib.sha256(form["code_verifier"].encode()).digest()
                challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
                if (
                    asked is None
                    or asked["code_challenge"] != challenge
                    or asked["redirect_uri"] != form["redirect_uri"]
                ):
                    return of_json({"error": "invalid_grant"}, 400)
                return of_json(self.tokens(asked["nonce"]))
            case "refresh_token":
                if form["refresh_token"] not in self._refresh:
                    return of_json({"error": "invalid_grant", "error_description": "canary of the provider"}, 400)
                self._refresh.discard(form["refresh_token"])
                answer = self.tokens()
                del answer["id_token"]
                return of_json(answer)
        if self.pending > 0:
            self.pending -= 1
            return of_json({"error": "authorization_pending"}, 400)
        return of_json(self.tokens())


def _part(value: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()
