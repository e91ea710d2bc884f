"""What plugins can bring, by name, and which of our own distributions brings what."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum


class ExtensionPoint(Enum):
    """The six places where a plugin can stand; the value is the first part of a declared kind."""

    AUTH = "auth"
    CATALOG = "catalog"
    POLICY = "policy"
    GRANTS = "grants"
    PROTOCOL = "protocol"
    LINEAGE = "lineage"

    @property
    def label(self) -> str:
        return _LABELS[self]


_LABELS = {
    ExtensionPoint.AUTH: "login provider",
    ExtensionPoint.CATALOG: "catalog type",
    ExtensionPoint.POLICY: "policy engine",
    ExtensionPoint.GRANTS: "store of grants",
    ExtensionPoint.PROTOCOL: "protocol",
    ExtensionPoint.LINEAGE: "lineage sink",
}


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind, for example the catalog type `polaris`; written `catalog.polaris`."""

    point: ExtensionPoint
    name: str

    @classmethod
    def parse(cls, text: str) -> Kind:
        point, dot, name = text.partition(".")
        if not dot or not name:
            raise ValueError(f"{text!r} is not of the form <point>.<kind>")
        return cls(ExtensionPoint(point), name)

    def __str__(self) -> str:
        return f"{self.point.value}.{self.name}"

    @property
    def label(self) -> str:
        """For messages: `catalog type 'polaris'`."""
        return f"{self.point.label} '{self.name}'"


_DISTRIBUTIONS = {
    "sqe-auth-oidc": (
        "auth.oidc_password",
        "auth.client_credentials",
        "auth.client_credentials_passthrough",
        "auth.bearer_token",
        "auth.token_exchange",
        "auth.bearer_passthrough",
        "auth.external",
    ),
    "sqe-auth-aws": ("auth.aws_iam",),
    "sqe-catalog-polaris": (
        "catalog.rest",
        "catalog.iceberg_rest",
        "catalog.polaris",
        "catalog.nessie",
        "catalog.unity",
        "catalog.horizon",
        "grants.polaris",
    ),
    "sqe-policy-opa": ("policy.opa",),
    "sqe-policy-cedar": ("policy.cedar",),
    "sqe-protocol-trino": ("protocol.trino",),
}

KNOWN_DISTRIBUTIONS: Mapping[Kind, str] = {
    Kind.parse(kind): distribution for distribution, kinds in _DISTRIBUTIONS.items() for kind in kinds
}
"""What to install for a kind that nobody here provides: a hint and nothing else, an installed plugin always wins."""
