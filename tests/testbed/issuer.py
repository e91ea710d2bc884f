"""An identity provider in this process: it signs tokens, and serves its keys on loopback."""

from __future__ import annotations

import json
import time
from typing import Any

from joserfc import jwt
from joserfc.jwk import RSAKey

from sqe_http.testing import Loopback, QuietHandler

CLIENT = "sqe"


class Issuer(Loopback):
    """Where tokens come from for servers that check them by keys alone. `stop` ends it."""

    def __init__(self) -> None:
        self._key = RSAKey.generate_key(2048, {"kid": "one", "use": "sig", "alg": "RS256"})
        keys = json.dumps({"keys": [self._key.as_dict(private=False)]}).encode()

        class Handler(QuietHandler):
            def do_GET(self) -> None:
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(keys)))
                self.end_headers()
                self.wfile.write(keys)

        super().__init__(Handler)
        self.jwks_url = f"{self.url}/keys"

    def token(self, username: str, *, secs: int = 3600, **claims: Any) -> str:
        """Sign a token of a person, whose subject is their name."""
        now = int(time.time())
        payload = {
            "iss": self.url,
            "aud": CLIENT,
            "sub": username,
            "preferred_username": username,
            "roles": ["analyst"],
            "iat": now,
            "exp": now + secs,
            **claims,
        }
        return jwt.encode({"alg": "RS256", "kid": "one"}, payload, self._key)
