"""Grant stores: other systems that keep grants and roles, and enforce them by themselves.

    [access_control] backend = "<kind>"   GRANT, REVOKE and statements about roles go there, not to the policy engine

A store decides nothing for SQE: the catalog that it belongs to does, with each request of a user.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from sqe_core.spi.catalog import CatalogBackend
from sqe_core.spi.factory import ConfigT, PluginContext, PluginFactory
from sqe_core.spi.policy import SupportsGrants, SupportsRoles


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantStoreContext(PluginContext):
    """What the core offers to the factory of a grant store, beside the rest.

    Args:
        catalogs: returns what serves each catalog at this moment, by the name that users write. To be asked with each
            statement: catalogs come and go.
    """

    catalogs: Callable[[], Mapping[str, CatalogBackend]] = field(default=dict)


class GrantStore(SupportsGrants, SupportsRoles):
    """Where GRANT and REVOKE are written when it is not the policy engine. Its methods are called from many threads.

    Before it calls, the core has seen that the author is an administrator, or that `may_grant` says so. A store that
    acts with rights of its own must not do for the author what the core cannot have meant: names are checked, and what
    the other system cannot hold exactly is refused with `NotSupportedError`, never widened (POL-15).

    What an author may not see and what is not there are one error. Texts of the other system are for nobody (ERR-1).

    Example:
        >>> class Ledger(GrantStore):
        ...     def put_grant(self, grant, *, author):
        ...         raise NotSupportedError("only whole schemas can be granted here")
        >>> issubclass(Ledger, SupportsRoles)
        True
    """

    def check(self) -> None:
        """Raise when nothing can be written there; called by `sqe doctor`."""

    def close(self) -> None:
        """Free what the store holds. Idempotent."""


class GrantStoreFactory(PluginFactory[ConfigT, GrantStoreContext, GrantStore]):
    """Makes the store of an `[access_control] backend`. The other system is reached at the first use.

    Keys of `config_type` stand in `[access_control.<kind>]`; those that `[access_control]` has too, as `url`, are
    taken from there.

    Example:
        >>> class LedgerFactory(GrantStoreFactory[NoConfig]):
        ...     kind = "ledger"
        ...     config_type = NoConfig
        ...
        ...     def create(self, name, config, context):
        ...         return Ledger()
    """
