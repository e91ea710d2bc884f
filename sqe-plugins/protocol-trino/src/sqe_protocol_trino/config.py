"""`[protocols.trino]`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sqe_core.spi import setting


@dataclass(frozen=True, slots=True, kw_only=True)
class TrinoConfig:
    """The keys beside `port`, `bind_address` and `public_url`, which every protocol has."""

    page_bytes: int = setting(4 << 20, "bytes of rows in one page", minimum=1 << 10, maximum=128 << 20)
    page_linger_millis: int = setting(50, "how long the first rows of a page wait for more, in milliseconds", minimum=0)
    cache_bytes: int = setting(512 << 20, "bytes of all pages that wait for their clients", minimum=1 << 20)
    max_statements: int = setting(2000, "statements that clients have at once, ended ones included", minimum=1)
    compression: Literal["auto", "always", "never"] = setting(
        "auto", "gzip and zstd of answers, where a client takes them; auto: not for clients on this machine"
    )
    max_connections: int = setting(4096, "connections at once", minimum=1)
    max_strangers: int = setting(1024, "connections at once on which nobody has logged in yet", minimum=1)
    max_strangers_per_address: int = setting(256, "such connections of one address", minimum=1)
    head_timeout_secs: int = setting(10, "time for the head of a request", minimum=1)
    body_timeout_secs: int = setting(30, "time for the text of a statement", minimum=1)
    idle_timeout_secs: int = setting(300, "a connection without requests ends after this long", minimum=1)
