"""The keys of a `[[auth.providers]]` entry with `type = "aws_iam"`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from sqe_auth_aws.principals import read_arn
from sqe_core.spi import setting
from sqe_http.places import is_loopback


@dataclass(frozen=True, slots=True, kw_only=True)
class AwsConfig:
    """Which AWS is asked, whose people may log in, and what they are called."""

    region: str | None = setting(
        None,
        "Region whose STS is asked; needed with `validate_with_sts`.",
        pattern=("[a-z]{2,}(-[a-z0-9]+)+", "a region such as eu-west-1"),
    )
    validate_with_sts: bool = setting(
        True, "Ask AWS whether a key is good; without it nobody does (development, refused in production)."
    )
    endpoint_url: str | None = setting(
        None, "Another address of STS, for a VPC endpoint; unset = the region's own.", url=("https", "http")
    )
    ca_file: Path | None = setting(
        None, "Certificates of the authorities that may vouch for STS; unset = the system's."
    )
    accounts: tuple[str, ...] = setting(
        (),
        "Accounts whose users and roles may log in; empty = that of `web_identity_role_arn`.",
        pattern=("[0-9]{12}", "an account of 12 digits"),
    )
    personal_roles: tuple[str, ...] = setting(
        (),
        "ARNs of roles whose session names are people's, because their trust policies see to it; "
        "whoever assumes another role is that role.",
    )
    user_name: Literal["arn", "name"] = setting(
        "arn",
        "What a user is called: the whole ARN, or its last part, which others may have as well "
        "in another account or at another provider.",
    )
    web_identity_role_arn: str | None = setting(
        None, "Role that bearer tokens are presented for (AssumeRoleWithWebIdentity); unset = none are."
    )
    web_identity_issuer: str | None = setting(
        None, "Whose tokens these are (`iss`); those of others are left to other providers."
    )
    web_identity_user_claim: str = setting("sub", "Claim of the token that is the user's name.")
    recheck_secs: int = setting(
        900,
        "How often AWS is asked again whether a key that opened a session is still good.",
        minimum=120,
        maximum=43200,
    )
    timeout_secs: int = setting(5, "Time for one question to STS, the connection included.", minimum=1, maximum=60)

    def __post_init__(self) -> None:
        self._check_endpoint()
        if (self.web_identity_role_arn is None) != (self.web_identity_issuer is None):
            raise ValueError("web_identity_role_arn and web_identity_issuer belong together")
        for arn in (*self.personal_roles, *([self.web_identity_role_arn] if self.web_identity_role_arn else [])):
            principal = read_arn(arn)
            if principal is None or principal.kind != "role":
                raise ValueError("personal_roles and web_identity_role_arn hold ARNs of roles")
        if self.validate_with_sts:
            if self.region is None:
                raise ValueError("region is missing; validate_with_sts needs it")
            if not self.allowed_accounts:
                # Every key of the world is good somewhere: AWS says whose it is, and not whether they may come in.
                raise ValueError("accounts is missing: nobody could log in")

    def _check_endpoint(self) -> None:
        parts = urlsplit(self.endpoint_url or "")
        more = parts.username is not None or parts.password is not None or parts.query or parts.fragment
        if more or parts.path not in ("", "/"):
            raise ValueError("endpoint_url holds a host and a port only")
        if parts.scheme == "http" and not is_loopback(parts.hostname or ""):
            raise ValueError("endpoint_url has to be https, or on this machine")

    @property
    def allowed_accounts(self) -> frozenset[str]:
        if self.accounts:
            return frozenset(self.accounts)
        role = read_arn(self.web_identity_role_arn or "")
        return frozenset({role.account} if role else ())
