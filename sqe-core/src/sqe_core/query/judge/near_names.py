"""What a name that was not found may have meant: visible names only."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from sqe_core.catalog.registry import Mount
from sqe_core.catalog.visible import VisibleCatalogs
from sqe_core.query.errors.suggestions import closest, did_you_mean
from sqe_core.query.judge.names import NameResolver, ResolvedName, schema_not_found
from sqe_core.session.statement_session import StatementSession
from sqe_core.spi.errors import ObjectNotFoundError, SqeError, UserError
from sqe_core.spi.names import NamespaceName


@dataclass(frozen=True, slots=True)
class NearNames:
    """Looks among what one user sees."""

    session: StatementSession
    visible: VisibleCatalogs
    resolver: NameResolver

    def hint(self, resolved: ResolvedName) -> str | None:
        """Suggest visible names close to one that was not found."""
        if not self.visible.shows(resolved.mount):
            return self.resolver.suggest(resolved.mount.name)
        # Whoever may not list has no hint, and the same error as everybody else.
        with suppress(SqeError):
            return self._near(resolved)
        return None

    def no_schema(self, mount: Mount, schema: NamespaceName) -> UserError:
        """Return the one answer about a schema that is not there, with what it may have meant."""
        known = [".".join(namespace) for namespace in self.visible.schemas(mount)]
        return schema_not_found(schema, hint=did_you_mean(".".join(schema.namespace), known))

    def _near(self, resolved: ResolvedName) -> str | None:
        try:
            listed = self.visible.objects(resolved.mount, resolved.name.namespace)
        except ObjectNotFoundError:
            return self.no_schema(resolved.mount, resolved.name.schema).hint
        names = {name.name: name for name, _ in listed}
        own = [view.name for view in self.session.views()]
        if resolved.name.name in names:
            self.visible.find(resolved.mount, resolved.name)  # what a name close to it takes (ERR-5)
        while (near := closest(resolved.name.name, [*names, *own])) is not None and near in names:
            # What is listed may have no column that this user sees, and is missing then.
            if self.visible.find(resolved.mount, names[near]) is not None:
                break
            del names[near]
        return did_you_mean(resolved.name.name, [near] if near is not None else [])
