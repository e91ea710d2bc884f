"""AWS Signature Version 4 of requests without a body."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import parse_qsl, quote, urlsplit

from sqe_core.spi import Secret

_EMPTY = hashlib.sha256(b"").hexdigest()
_UNRESERVED = "-_.~"


@dataclass(frozen=True, slots=True, kw_only=True)
class Signer:
    access_key: str
    secret_key: Secret
    session_token: Secret | None
    region: str
    service: str

    def headers(self, method: str, url: str, now: datetime | None = None) -> Mapping[str, str]:
        """Return the headers of a request that has no body."""
        parts = urlsplit(url)
        stamp = (now or datetime.now(UTC)).strftime("%Y%m%dT%H%M%SZ")
        signed = {"host": parts.netloc, "x-amz-content-sha256": _EMPTY, "x-amz-date": stamp}
        if self.session_token:
            signed["x-amz-security-token"] = self.session_token.reveal()
        names = ";".join(sorted(signed))
        # The path is escaped twice: once as it is sent, once more for the signature.
        path = quote(parts.path or "/", safe=f"/{_UNRESERVED}")
        query = "&".join(
            f"{quote(name, safe=_UNRESERVED)}={quote(value, safe=_UNRESERVED)}"
            for name, value in sorted(parse_qsl(parts.query, keep_blank_values=True))
        )
        listed = "".join(f"{name}:{signed[name]}\n" for name in sorted(signed))
        request = "\n".join((method, path, query, listed, names, _EMPTY))
        scope = f"{stamp[:8]}/{self.region}/{self.service}/aws4_request"
        text = "\n".join(("AWS4-HMAC-SHA256", stamp, scope, hashlib.sha256(request.encode()).hexdigest()))
        signature = hmac.new(self._key(stamp[:8]), text.encode(), hashlib.sha256).hexdigest()
        credential = f"{self.access_key}/{scope}"
        authorization = f"AWS4-HMAC-SHA256 Credential={credential}, SignedHeaders={names}, Signature={signature}"
        return {**{name: signed[name] for name in signed if name != "host"}, "Authorization": authorization}

    def _key(self, day: str) -> bytes:
        key = f"AWS4{self.secret_key.reveal()}".encode()
        for part in (day, self.region, self.service, "aws4_request"):
            key = hmac.new(key, part.encode(), hashlib.sha256).digest()
        return key
