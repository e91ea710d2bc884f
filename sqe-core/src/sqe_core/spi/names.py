"""Names are tuples of parts, never joined text (NAME-1)."""

from __future__ import annotations

from dataclasses import dataclass

RESERVED_PREFIXES = ("_sqe_", "__sqe")
"""What begins so, whatever its case, is a name of SQE's own and nobody else's (NAME-6)."""


def quote_part(part: str) -> str:
    """Write one part of a name as a user may type it, quoted where that is needed.

    Example:
        >>> quote_part("orders"), quote_part("My Table")
        ('orders', '"My Table"')
    """
    plain = part.isascii() and part.isidentifier() and part == part.lower()
    return part if plain else '"' + part.replace('"', '""') + '"'


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class NamespaceName:
    """A schema: the visible name of its catalog and the parts of the namespace."""

    catalog: str
    namespace: tuple[str, ...]

    def __str__(self) -> str:
        return f"{quote_part(self.catalog)}.{quote_part('.'.join(self.namespace))}"


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class ObjectName:
    """A table or a view, resolved: the identity that policies, caches and the audit use (POL-10)."""

    catalog: str
    namespace: tuple[str, ...]
    name: str

    @property
    def schema(self) -> NamespaceName:
        """The schema that holds the object."""
        return NamespaceName(catalog=self.catalog, namespace=self.namespace)

    @property
    def parts(self) -> tuple[str, ...]:
        """All parts, the catalog first."""
        return (self.catalog, *self.namespace, self.name)

    def __str__(self) -> str:
        return f"{self.schema}.{quote_part(self.name)}"
