"""The kinds `grants` and `in-memory`."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from sqe_core.policy.grants.enforcer import GrantsEnforcer
from sqe_core.policy.grants.evaluation import Precedence
from sqe_core.policy.grants.postgres import PostgresStore
from sqe_core.policy.grants.sqlite import MemoryStore, SqliteStore
from sqe_core.spi.errors import ConfigError, ExternalError, StartupError
from sqe_core.spi.factory import PluginContext, setting
from sqe_core.spi.identity import Secret
from sqe_core.spi.policy import PolicyEnforcerFactory

_FILE = "grants.db"

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryConfig:
    """What both kinds take of `[policy]`."""

    mask_precedence: Precedence = setting("tag", "which of two masks wins, of tag and table")
    uncovered: Literal["maker", "catalog"] = setting("maker", "whose a table is that no grant covers")


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantsConfig(MemoryConfig):
    """The keys of `[policy.grants]`."""

    path: Path | None = setting(None, "the file of the store; unset = `grants.db` in the server's state folder")
    url: Secret | None = setting(
        None, "a PostgreSQL database instead, `postgresql://user:password@host/db`", secret=True
    )
    timeout_secs: int = setting(5, "how long the store may take, and wait for others", minimum=1)


class GrantsFactory(PolicyEnforcerFactory[GrantsConfig]):
    """Makes the engine of a server that says nothing else."""

    kind = "grants"
    config_type = GrantsConfig

    def create(self, name: str, config: GrantsConfig, context: PluginContext) -> GrantsEnforcer:
        """Open the store; a new one is made once and named in the log, since in it nothing is granted yet."""
        now, secs = context.clock.now, config.timeout_secs
        store: SqliteStore | PostgresStore
        if config.url is not None:
            if config.path is not None:
                raise ConfigError(("policy.grants: path and url exclude each other",))
            store = PostgresStore(config.url, timeout_secs=secs, now=now, production_mode=context.production_mode)
            where = "in PostgreSQL"
        else:
            if config.path is None and context.state_dir is None:
                raise ConfigError(("policy.grants.path is missing: there is no state folder here",))
            path = config.path or Path(context.state_dir or "") / _FILE
            store = SqliteStore(path, busy_secs=secs, now=now, alone=config.path is None)
            where = f"at {path}"
        if context.rehearsal:
            # What would be made is empty.
            found = store if store.is_there() else MemoryStore(now=now)
            return GrantsEnforcer(found, now=now, mask_precedence=config.mask_precedence)
        enforcer = GrantsEnforcer(store, now=now, mask_precedence=config.mask_precedence)
        try:
            if store.prepare():
                _log.warning("made a new grant store %s: until something is granted, the catalogs alone decide", where)
            enforcer.check()
        except BaseException as error:
            enforcer.close()
            if isinstance(error, ExternalError):
                raise StartupError(f"the grant store {where} cannot be used: {error.message}") from error
            raise
        return enforcer


class MemoryFactory(PolicyEnforcerFactory[MemoryConfig]):
    """Makes an engine whose grants end with the process; production refuses it."""

    kind = "in-memory"
    config_type = MemoryConfig

    def create(self, name: str, config: MemoryConfig, context: PluginContext) -> GrantsEnforcer:
        if context.production_mode:
            raise ConfigError(
                (f"policy engine '{name}' forgets every grant at its end, which production_mode refuses",)
            )
        now = context.clock.now
        return GrantsEnforcer(MemoryStore(now=now), now=now, mask_precedence=config.mask_precedence)
