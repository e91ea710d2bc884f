"""The keys of `[policy.opa]`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from sqe_core.spi import Secret, required, setting
from sqe_http.places import is_loopback

# No segment may be empty, a step up, or need escaping.
_PATH = (r"[A-Za-z0-9_-]+(/[A-Za-z0-9_-]+)*", "a path of words such as sqe/authz")


@dataclass(frozen=True, slots=True, kw_only=True)
class OpaConfig:
    """Where OPA is, which of its documents decide, and how long SQE waits for it."""

    url: str = required("Address of OPA, without the path of its API.", url=("https", "http"))
    policy_path: str = setting(
        "sqe/policy/evaluate", "Document that decides about one table per request.", pattern=_PATH
    )
    authz_path: str | None = setting(
        None,
        'Document that decides about all tables of a statement at once, usually "sqe/authz"; when it is '
        "set, `policy_path` is not asked.",
        pattern=_PATH,
    )
    data_prefix: str = setting("sqe/grants", "Document below which GRANT writes.", pattern=_PATH)
    token: Secret | None = setting(None, "Bearer token that OPA knows SQE by.", secret=True)
    ca_file: Path | None = setting(
        None, "Certificates of the authorities that may vouch for OPA; unset = the system's."
    )
    client_cert_file: Path | None = setting(None, "Certificate that SQE shows to OPA, with its chain.")
    client_key_file: Path | None = setting(None, "Private key of that certificate.")
    allow_insecure_transport: bool = setting(
        False, "Plain http to another machine: who is between decides what everybody may read."
    )
    timeout_secs: int = setting(5, "Time for all that one statement asks, retries included.", minimum=1, maximum=300)
    connect_timeout_secs: int = setting(2, "Time to connect; `timeout_secs` goes on meanwhile.", minimum=1, maximum=300)
    max_retries: int = setting(
        2, "How often a request without an answer is sent again, within `timeout_secs`.", minimum=0, maximum=10
    )
    max_connections: int = setting(16, "Most requests that are on their way at a time.", minimum=1, maximum=256)
    max_response_bytes: int = setting(4 * 1024 * 1024, "Largest answer that is read.", unit="bytes", minimum=1024)
    cache_max_entries: int = setting(
        10000, "Most names whose place in listings is remembered; 0 = nothing is kept.", minimum=0
    )
    cache_ttl_secs: int = setting(
        60, "How long an answer may be used again, here and in the cache of `[policy]`; 0 = not at all.", minimum=0
    )
    breaker_failure_threshold: int = setting(5, "Failures in a row after which OPA is left alone.", minimum=1)
    breaker_recovery_secs: int = setting(30, "For how long, until one request tries again.", minimum=1)

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
            raise ValueError("url holds a host, a port and a path only; a bearer token stands in `token`")
        plain = parts.scheme == "http"
        if plain and not self.allow_insecure_transport and not is_loopback(parts.hostname or ""):
            raise ValueError("url has to be https, or on this machine (see allow_insecure_transport)")
        if (self.client_cert_file is None) != (self.client_key_file is None):
            raise ValueError("client_cert_file and client_key_file belong together")
        if plain and (self.client_cert_file or self.ca_file):
            raise ValueError("ca_file and client_cert_file need an https url")
