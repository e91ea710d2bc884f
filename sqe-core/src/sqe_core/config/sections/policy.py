"""`[policy]`, `[access_control]`, `[security]`, `[rate_limit]`: who may do what, and how much."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sqe_core.config.plugin_table import PluginTable
from sqe_core.config.schema import HTTP, UNREAD, remainder, secret
from sqe_core.spi.factory import setting
from sqe_core.spi.identity import Secret


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyConfig:
    """`[policy]`. Without this table: `grants` with an empty store, so the catalog alone decides."""

    engine: tuple[str, ...] = setting(
        ("grants",),
        "A name, or a list of names: `grants`, `in-memory`, `passthrough`, or what a plugin brings.",
        one_or_many=True,
    )
    enabled: bool = setting(True, "`false` means `passthrough`.")
    i_understand_no_enforcement: bool = setting(False, "What `passthrough` has to be confirmed with.")
    uncovered: Literal["maker", "catalog"] = setting(
        "maker",
        "Whose a table is that no grant covers, where the catalog cannot know who asks and `[auth]` is there:"
        " `maker` = of whoever made it and of administrators, `catalog` = of everybody whom the catalog lets in.",
        no_effect="with engines other than `grants`, which decide about every table by policies of their own",
    )
    mask_key: Secret | None = secret("HMAC key of hash masks.")
    mask_precedence: Literal["tag", "resource"] = setting("tag", "Which mask of one engine wins.")
    cache_ttl_secs: int = setting(60, "How long a decision is kept; 0 = not at all.", minimum=0)
    cache_max_entries: int = setting(10000, "Most decisions that are kept.", minimum=0)
    options: PluginTable = remainder("Tables of engines that plugins bring: `[policy.opa]` and others.")

    @property
    def engines(self) -> tuple[str, ...]:
        """The engines in effect; `enabled = false` is short for this one, whoever provides it."""
        return self.engine if self.enabled else ("passthrough",)


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessControlConfig:
    """`[access_control]`: where GRANT and REVOKE are written."""

    backend: str = setting("none", "The store that a plugin brings; `none` = the policy engine's own.")
    url: str | None = setting(None, "Address of that system.", url=HTTP)
    timeout_secs: int = setting(30, "Time for the requests of one statement.", minimum=1)
    client_id: str | None = setting(None, "Service account; unset = the administrator's own token.")
    client_secret: Secret | None = secret("Its secret.")
    grant_authority: Literal["admin-role", "ranger-delegate"] = setting(
        "admin-role", "Who may grant.", unbuilt="delegated granting is not built yet"
    )
    options: PluginTable = remainder("Tables of stores that plugins bring: `[access_control.<backend>]`.")


@dataclass(frozen=True, slots=True, kw_only=True)
class SecurityConfig:
    trusted_proxies: tuple[str, ...] = setting(
        (), "IP addresses whose X-Forwarded-For counts; the right-most untrusted hop is the client."
    )
    allow_insecure_transport: bool = setting(False, "Peers without TLS that are not loopback.")
    tls_ends_upstream: bool = setting(
        False, "A proxy on this machine speaks TLS with the clients; production_mode then wants a loopback address."
    )
    allow_password_grant: bool = setting(
        False, "Passwords of people, which pass through this server, in production too."
    )
    allow_shared_service_identity: bool = setting(False, "One shared identity at a catalog, in production too.")
    allow_unkeyed_hash_masks: bool = setting(False, "Hash masks without `policy.mask_key`.")
    allow_unprojected_tags: bool = setting(False, "Ranger without `project-tags`, in production too.", no_effect=UNREAD)


@dataclass(frozen=True, slots=True, kw_only=True)
class RateLimitConfig:
    """`[rate_limit]`: one limiter before all protocols. A minute's worth may come at once, the rest at the rate."""

    enabled: bool = setting(False, "Limit statements and metadata; failed logins are limited in any case.")
    per_user_queries_per_minute: int = setting(
        60, "Statements of one user; of an identity that many share, per client address.", minimum=1
    )
    global_queries_per_minute: int = setting(1000, "Statements of all users.", minimum=1)
    auth_attempts_per_minute: int = setting(10, "Failed logins per client address and user name.", minimum=1)
    metadata_per_user_per_minute: int = setting(
        120, "Metadata requests of one user: listings, and columns of prepared statements.", minimum=1
    )
