"""What becomes of objects is told to the stores of grants, after the catalog has done it (POL-10)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqe_core.policy.authorizer import Authorizer
from sqe_core.spi.catalog import TableMetadata, ViewMetadata
from sqe_core.spi.errors import ObjectNotFoundError
from sqe_core.spi.identity import Identity
from sqe_core.spi.names import NamespaceName, ObjectName
from sqe_core.spi.policy import SupportsOwnership

Load = Callable[[tuple[str, ...], str], TableMetadata | ViewMetadata]
"""`load_table` or `load_view` of a catalog."""


@dataclass(frozen=True, slots=True)
class ObjectLives:
    """Tells of objects that one user makes, renames and drops."""

    authorizer: Authorizer
    identity: Identity

    @property
    def watched(self) -> bool:
        return bool(self.authorizer.stores(SupportsOwnership))

    def created(self, name: ObjectName, load: Load) -> None:
        """A new object belongs to whoever made it; what has taken its name since does not."""
        uuid = uuid_of(load, name) if self.watched else None
        if uuid is not None:
            self._made(name, uuid)

    def created_schema(self, name: NamespaceName) -> None:
        """A new schema, which has no id, belongs to whoever made it."""
        self._made(name, None)

    def _made(self, name: ObjectName | NamespaceName, uuid: str | None) -> None:
        for store in self.authorizer.stores(SupportsOwnership):
            store.object_created(name, uuid=uuid, owner=self.identity)
        self._flush()

    def renamed(self, old: ObjectName, new: ObjectName) -> None:
        """Grants and policies go with the object."""
        for store in self.authorizer.stores(SupportsOwnership):
            store.object_renamed(old, new, author=self.identity)
        self._flush()

    def dropped(self, name: ObjectName | NamespaceName, uuid: str | None = None) -> None:
        """What was granted on it is gone with it."""
        for store in self.authorizer.stores(SupportsOwnership):
            store.object_dropped(name, uuid=uuid, author=self.identity)
        self._flush()

    def _flush(self) -> None:
        if self.watched:
            self.authorizer.flush()


def uuid_of(load: Load, name: ObjectName) -> str | None:
    """Return the catalog's own id of an object that was just made; None when it is gone again, and nobody's."""
    try:
        return load(name.namespace, name.name).uuid
    except ObjectNotFoundError:
        return None
