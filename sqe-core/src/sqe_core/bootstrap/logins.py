"""Who may log in, and who is connected."""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType

from sqe_core.bootstrap.core import Sqe
from sqe_core.bootstrap.instances import Instances, configured_instances, create_all
from sqe_core.config.catalog_names import FALLBACK_NAME, mounted_catalogs
from sqe_core.config.loading import LoadedConfig
from sqe_core.config.sections.auth import AuthConfig
from sqe_core.plugins.kinds import ExtensionPoint
from sqe_core.plugins.manager import PluginManager
from sqe_core.query.run.audited import SessionAudit
from sqe_core.query.run.running import EndReason
from sqe_core.session.attempts import LoginAttempts
from sqe_core.session.login import LoginChain
from sqe_core.session.pending_logins import WaitingBrowserLogins, WaitingDeviceLogins
from sqe_core.session.session import Session
from sqe_core.session.store import SessionLimits, SessionStore
from sqe_core.spi.auth import AuthProvider, ClientInfo, SupportsBrowserLogin, SupportsDeviceLogin
from sqe_core.spi.factory import Metrics
from sqe_core.spi.identity import Identity
from sqe_core.spi.protocol import BrowserLogins, DeviceLogins


def login_providers(
    loaded: LoadedConfig, plugins: PluginManager, *, metrics: Metrics | None = None, instances: Instances | None = None
) -> Sequence[tuple[str, AuthProvider]]:
    """Create the login providers of a configuration, in its order, each with a name of its own.

    Raises:
        ConfigError: plugins that are missing or broken, settings that do not fit, or that `production_mode` refuses.
        StartupError: what a provider needs is not there.
    """
    instances = instances or configured_instances(loaded, plugins, metrics=metrics)
    return [(instance.name, provider) for instance, provider in create_all(instances.of(ExtensionPoint.AUTH))]


def session_store(
    sqe: Sqe,
    loaded: LoadedConfig,
    plugins: PluginManager,
    *,
    metrics: Metrics | None = None,
    instances: Instances | None = None,
) -> SessionStore:
    """Compose who may log in and who is connected. Closing the store closes the login providers too.

    Without `[auth]` everybody is one anonymous user. Raises what `login_providers` raises.
    """
    config = loaded.config
    chain = LoginChain(
        login_providers(loaded, plugins, metrics=metrics, instances=instances),
        # Guessing is limited whether or not statements are (AUTHN-7).
        attempts=LoginAttempts(config.rate_limit.auth_attempts_per_minute, metrics=metrics),
        timeout_secs=config.coordinator.auth_handshake_timeout_secs,
        allow_insecure_transport=config.security.allow_insecure_transport,
        metrics=metrics,
        role_mappings=config.auth.role_mappings if config.auth else MappingProxyType({}),
    )
    mounts = mounted_catalogs(config)
    catalog = next((mount.name for mount in mounts if mount.default), mounts[0].name if mounts else FALLBACK_NAME)

    def open_session(identity: Identity, client: ClientInfo) -> Session:
        session = sqe.open_session(identity, catalog=catalog, protocol=client.protocol, client_address=client.address)
        session.keeps_roles = not client.reconnects or client.connection is None or client.label is not None
        return session

    store = SessionStore(
        chain,
        open_session=open_session,
        close_session=sqe.service.close_session,
        kill_session=lambda session: sqe.service.close_session(session, reason=EndReason.KILLED),
        expire_session=lambda session: sqe.service.close_session(session, reason=EndReason.EXPIRED),
        is_busy=sqe.service.is_running,
        limits=SessionLimits(
            idle_secs=config.session.idle_timeout_secs,
            absolute_secs=config.session.absolute_timeout_secs,
            sweep_secs=config.session.expiry_sweep_interval_secs,
            most=config.session.max_sessions,
            most_per_user=config.session.max_sessions_per_user,
            refresh_buffer_secs=config.auth.token_refresh_buffer_secs if config.auth else 60,
        ),
        observer=SessionAudit(sqe.audit) if sqe.audit is not None else None,
    )
    sqe.sessions.serve(store)
    return store


def browser_logins(sessions: SessionStore, auth: AuthConfig | None) -> BrowserLogins | None:
    """Return the logins of `[auth.external]`; None when there are none."""
    external = auth.external if auth else None
    if external is None or not sessions.chain.offers(SupportsBrowserLogin):
        return None
    return WaitingBrowserLogins(
        sessions.chain, sessions, redirect_uri=external.redirect_uri, ttl_secs=external.challenge_timeout_secs
    )


def device_logins(sessions: SessionStore, auth: AuthConfig | None) -> DeviceLogins | None:
    """Return the logins of `[auth.external.device]`; None when there are none."""
    external = auth.external if auth else None
    if external is None or external.device is None or not sessions.chain.offers(SupportsDeviceLogin):
        return None
    return WaitingDeviceLogins(sessions.chain, sessions, ttl_secs=external.challenge_timeout_secs)
