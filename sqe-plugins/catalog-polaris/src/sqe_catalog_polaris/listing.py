"""Names of a catalog as one user sees them, without the engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from sqe_catalog_polaris.client import Kept, RestClient
from sqe_core.spi import (
    CatalogMetadata,
    Identity,
    NotSupportedError,
    ObjectNotFoundError,
    SqeError,
    TableMetadata,
)

_AT_ONCE = 8
_VERDICT_SECS = 900.0
_MOST_VERDICTS = 100_000


class Verdicts:
    """Which namespaces each user may look into, asked once for each."""

    def __init__(self, client: RestClient) -> None:
        self._client = client
        self._kept: Kept[bool] = Kept(_MOST_VERDICTS, _VERDICT_SECS)

    def visible(self, identity: Identity, key: str, namespaces: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
        """Return those that are not refused; a catalog that cannot say hides nothing."""
        generation = self._kept.generation
        known = {namespace: self._kept.find(key, *namespace) for namespace in namespaces}
        unknown = [namespace for namespace, verdict in known.items() if verdict is None]
        if unknown:
            with ThreadPoolExecutor(min(_AT_ONCE, len(unknown)), thread_name_prefix="sqe-visibility") as pool:
                verdicts = pool.map(lambda each: self._ask(identity, each), unknown)
                for namespace, verdict in zip(unknown, verdicts, strict=True):
                    known[namespace] = verdict
                    if verdict is not None:
                        self._kept.keep(verdict, key, *namespace, asked_in=generation)
        return [namespace for namespace in namespaces if known[namespace] is not False]

    def _ask(self, identity: Identity, namespace: tuple[str, ...]) -> bool | None:
        try:
            self._client.namespace(identity, namespace)
        except ObjectNotFoundError:
            return False
        except SqeError:
            return None
        return True

    def forget(self, key: str) -> None:
        self._kept.forget(key)

    def clear(self) -> None:
        self._kept.clear()


class RestListing(CatalogMetadata):
    """Listings over the protocol. Tables are loaded by the engine, which shows the same: it sends the same token."""

    def __init__(self, client: RestClient, identity: Identity, key: str, verdicts: Verdicts | None) -> None:
        self._client = client
        self._identity = identity
        self._key = key
        self._verdicts = verdicts

    def list_namespaces(self, parent: tuple[str, ...] = ()) -> Sequence[tuple[str, ...]]:
        """List the namespaces directly below another one, without those that this user may not look into."""
        found = self._client.namespaces(self._identity, parent)
        return found if self._verdicts is None else self._verdicts.visible(self._identity, self._key, found)

    def list_tables(self, namespace: tuple[str, ...]) -> Sequence[str]:
        """List the tables of a namespace; some catalogs name its views among them."""
        has_views = self._client.handle(self._identity).has_views
        views = set(self.list_views(namespace)) if has_views else set()
        return [name for name in self._client.names(self._identity, namespace, "tables") if name not in views]

    def list_views(self, namespace: tuple[str, ...]) -> Sequence[str]:
        return self._client.names(self._identity, namespace, "views")

    def load_namespace(self, namespace: tuple[str, ...]) -> Mapping[str, str]:
        return self._client.namespace(self._identity, namespace)

    def load_table(self, namespace: tuple[str, ...], name: str) -> TableMetadata:
        """Refuse: the engine does that, with the same token."""
        raise NotSupportedError("loading a table needs the engine")
