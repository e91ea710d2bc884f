"""The keys of `[policy.cedar]`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from sqe_core.spi import setting

PrincipalId = Literal["username", "subject", "issuer_username", "issuer_subject"]

_SERVICE = (
    "SQE evaluates Cedar in its own process and asks no Cedar service; {} cannot be used: set policies_path instead"
)
_CLAIM = (r"[A-Za-z_][A-Za-z0-9_]*", "the name of a claim that Cedar can write, such as department")


@dataclass(frozen=True, slots=True, kw_only=True)
class CedarConfig:
    """Where the policies are, and how people are called in them."""

    policies_path: Path | None = setting(
        None,
        "File of policies, or a folder whose `*.cedar` files are read; together at most 4 MiB and 1000 "
        "files. Required.",
    )
    schema_path: Path | None = setting(
        None,
        "Schema that policies and entities are checked against, in either of Cedar's forms; at most 1 MiB. "
        "Unset = the one that SQE brings.",
    )
    entities_path: Path | None = setting(
        None,
        "JSON file of further entities: attributes and parents of users, roles, tables; at most 16 MiB. "
        "What SQE sets itself (`username`, `name`, …) may not stand in it.",
    )
    catalog: str | None = setting(
        None,
        'Catalog of names that have none, as `Table::"finance.transactions"`; unset = every name begins '
        "with its catalog.",
    )
    principal: PrincipalId = setting(
        "username", 'What stands in `User::"…"`; the forms with an issuer write `<issuer>|<name>`.'
    )
    issuer: str | None = setting(
        None,
        "Whose identities are decided about; everybody else is denied. Required in production mode when "
        "`principal` holds no issuer: two issuers may each have an alice.",
    )
    claims: tuple[str, ...] = setting(
        (),
        "Claims of the token that policies find in `context.claims`; a schema of your own declares them.",
        pattern=_CLAIM,
    )
    url: str | None = setting(None, "Address of a Cedar service; refused.")
    policy_store_id: str | None = setting(None, "Policy store of a Cedar service; refused.")

    def __post_init__(self) -> None:
        for key in ("url", "policy_store_id"):
            if getattr(self, key) is not None:
                raise ValueError(_SERVICE.format(key))
        if self.policies_path is None:
            raise ValueError("policies_path is missing: the file or folder that the Cedar policies are in")
        if self.claims and self.schema_path is None:
            raise ValueError("claims need a schema_path: the schema that SQE brings declares none")

    @property
    def names_issuers(self) -> bool:
        """Whether users of different issuers are different entities in any case."""
        return self.principal in ("issuer_username", "issuer_subject")
