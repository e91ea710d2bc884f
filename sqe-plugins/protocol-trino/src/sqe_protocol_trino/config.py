"""`[protocols.trino]`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from sqe_core.spi import Secret, setting


@dataclass(frozen=True, slots=True, kw_only=True)
class SpoolingConfig:
    """`[protocols.trino.spooling]`."""

    enabled: bool = setting(True, "large results as segments, for clients that ask for them")
    location: str | None = setting(
        None,
        "a folder, or `s3://bucket/prefix`; unset: a folder beside what the server keeps",
        pattern=(r"/.*|s3://[^/]+(/.*)?", "a path from the root, or `s3://bucket/prefix`"),
    )
    s3_endpoint: str | None = setting(None, "where S3 is; unset: at AWS", url=("http", "https"))
    s3_region: str | None = setting(None, "its region; unset: as the machine says")
    s3_access_key: Secret | None = setting(None, "the key to it; unset: as the machine says")
    s3_secret_key: Secret | None = setting(None, "its secret")
    inline_bytes: int = setting(1 << 20, "bytes of rows that a result has at least to be spooled", minimum=1)
    first_segment_bytes: int = setting(8 << 20, "bytes of rows in the first segment", minimum=1 << 10)
    segment_bytes: int = setting(16 << 20, "bytes of rows in a segment", minimum=1 << 10, maximum=256 << 20)
    max_statement_bytes: int = setting(4 << 30, "bytes that wait for one client; more go into pages", minimum=0)
    max_bytes: int = setting(16 << 30, "bytes that wait for all clients", minimum=0)
    min_free_bytes: int = setting(1 << 30, "what stays free on the disk", minimum=0)
    ttl_secs: int = setting(900, "segments that nobody came for are deleted after this long", minimum=1)
    max_downloads: int = setting(128, "segments that are read at once", minimum=1)
    download_idle_secs: int = setting(60, "a client that reads nothing for this long is disconnected", minimum=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrinoConfig:
    """The keys beside `port`, `bind_address` and `public_url`, which every protocol has."""

    page_bytes: int = setting(4 << 20, "bytes of rows in one page", minimum=1 << 10, maximum=128 << 20)
    page_linger_millis: int = setting(50, "how long the first rows of a page wait for more, in milliseconds", minimum=0)
    cache_bytes: int = setting(512 << 20, "bytes of all pages that wait for their clients", minimum=1 << 20)
    max_statements: int = setting(2000, "statements that clients have at once, ended ones included", minimum=1)
    max_statements_per_user: int = setting(500, "those of one user", minimum=1)
    compression: Literal["auto", "always", "never"] = setting(
        "auto", "gzip and zstd of answers, where a client takes them; auto: not for clients on this machine"
    )
    max_connections: int = setting(4096, "connections at once", minimum=1)
    max_strangers: int = setting(1024, "connections at once on which nobody has logged in yet", minimum=1)
    max_strangers_per_address: int = setting(256, "such connections of one address", minimum=1)
    head_timeout_secs: int = setting(10, "time for the head of a request", minimum=1)
    body_timeout_secs: int = setting(30, "time for the text of a statement", minimum=1)
    idle_timeout_secs: int = setting(300, "a connection without requests ends after this long", minimum=1)
    spooling: SpoolingConfig = field(default_factory=SpoolingConfig, metadata={"doc": "Large results as segments."})
