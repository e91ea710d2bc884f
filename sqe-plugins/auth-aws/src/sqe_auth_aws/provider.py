"""The login provider `aws_iam`: AWS says whose key it is, and the configuration says whether they may come in."""

from __future__ import annotations

import hashlib
import json
import logging
import re
from dataclasses import replace
from datetime import timedelta
from types import MappingProxyType

from sqe_auth_aws.config import AwsConfig
from sqe_auth_aws.principals import Principal, read_arn
from sqe_auth_aws.sts import Caller, SecurityTokenService
from sqe_auth_aws.web_token import issuer_of, read_token
from sqe_core.spi import (
    AuthProvider,
    AwsCredential,
    BasicCredential,
    BearerCredential,
    ExternalError,
    Identity,
    InvalidCredentialsError,
    LoginRequest,
    NotSupportedError,
    PluginContext,
    Secret,
    is_clean_name,
)

_log = logging.getLogger("sqe_core.auth_aws")

# User names of Basic logins that are AWS's: a key of a user, or of a session.
_KEY_ID = re.compile(r"(?:AKIA|ASIA)[A-Z0-9]{12,124}")
_OF_SESSION = "ASIA"


class AwsProvider(AuthProvider):
    """Vouches for the users and roles of some accounts.

    Args:
        name: the name of this provider.
        config: whom it vouches for.
        context: the clock.
    """

    def __init__(self, name: str, config: AwsConfig, context: PluginContext) -> None:
        self._name = name
        self._config = config
        self._clock = context.clock
        self._accounts = config.allowed_accounts
        self._personal = {principal.arn for principal in map(read_arn, config.personal_roles) if principal}
        self._sts = SecurityTokenService(config) if config.validate_with_sts else None
        if self._sts is None:
            self.production_objection = f"the login provider '{name}' checks no key (`validate_with_sts` is false)"
            _log.warning("login provider %s: nobody checks the keys (validate_with_sts = false)", name)

    def authenticate(self, request: LoginRequest) -> Identity | None:
        match request.credential:
            case AwsCredential() as keys:
                return self._of_keys(keys)
            case BasicCredential(username=username, password=password) if _KEY_ID.fullmatch(username):
                return self._of_keys(_keys_of_basic(username, password))
            case BearerCredential(token=token):
                return self._of_token(token)
        return None

    def refresh(self, identity: Identity) -> Identity:
        """Ask again with the keys that opened the session: they may have been withdrawn, or their time be over.

        Raises:
            NotSupportedError: a web identity ends with its token, and an unchecked key was never good.
        """
        if self._sts is None or identity.refresh_token is None:
            raise NotSupportedError("this login is not renewed")
        renewed = self._of_keys(_unpacked(identity.refresh_token))
        if renewed.key != identity.key:
            raise InvalidCredentialsError
        return renewed

    def check(self) -> None:
        if self._sts is not None:
            self._sts.check()

    def _of_keys(self, keys: AwsCredential) -> Identity:
        if not _KEY_ID.fullmatch(keys.access_key_id) or not keys.secret_access_key:
            raise InvalidCredentialsError(reason="these are no access keys")
        if keys.access_key_id.startswith(_OF_SESSION) != bool(keys.session_token):
            raise InvalidCredentialsError
        if self._sts is None:
            return self._unchecked(keys.access_key_id)
        caller = self._sts.caller_of(keys)
        identity = self._identity(caller, self._principal(caller.arn, caller.account))
        expiry = self._clock.now() + timedelta(seconds=self._config.recheck_secs)
        return replace(identity, refresh_token=_packed(keys), expires_at=expiry)

    def _unchecked(self, key_id: str) -> Identity:
        # No roles: anybody can write down the number of a key.
        return Identity(issuer=f"sqe:{self._name}", subject=key_id, username=key_id, provider=self._name)

    def _principal(self, arn: str, account: str) -> Principal:
        """Who it is, if they may come in at all."""
        principal = read_arn(arn)
        if self._sts is None or principal is None:
            _log.info("login provider %s: a key is good, and is neither a user's nor a role's", self._name)
            raise InvalidCredentialsError
        if principal.account != account or principal.partition != self._sts.partition:
            raise ExternalError("The answer of STS contradicts itself")
        if principal.account not in self._accounts:
            _log.info("login provider %s: a key is good, and of an account that may not log in", self._name)
            raise InvalidCredentialsError
        return principal

    def _identity(self, caller: Caller, principal: Principal) -> Identity:
        """Write down who a key belongs to.

        The name of a role's session is whatever its caller says. It is who they are only where the role's trust policy
        ties it to them; otherwise everybody with the role is one identity, and the name is kept for the audit.
        """
        unique_id, _, session = caller.user_id.partition(":")
        personal = principal.session is None or principal.arn in self._personal
        if (principal.session or "") != session:
            raise ExternalError("The answer of STS contradicts itself")
        return self._checked(
            Identity(
                issuer=f"aws:{principal.partition}:{principal.account}",
                subject=caller.user_id if personal else unique_id,
                username=self._username(principal, personal=personal),
                provider=self._name,
                roles=frozenset({principal.arn}),  # `[auth] role_mappings` says what it stands for
                claims=MappingProxyType({"aws_arn": principal.arn, "aws_account": principal.account}),
                actor=principal.session_arn if principal.session else None,
                personal=personal,
            )
        )

    def _username(self, principal: Principal, *, personal: bool) -> str:
        if self._config.user_name == "name":
            return principal.session if personal and principal.session else principal.name
        return principal.session_arn if personal and principal.session else principal.arn

    def _of_token(self, token: Secret) -> Identity | None:
        role_arn = self._config.web_identity_role_arn
        # A token is shown to AWS only when it says to be of the issuer that AWS was told of.
        if role_arn is None or issuer_of(token.reveal()) != self._config.web_identity_issuer:
            return None
        read = read_token(token.reveal(), self._config.web_identity_user_claim)
        if read is None or not all(map(is_clean_name, (read.subject, read.username))):
            raise InvalidCredentialsError
        if self._sts is None or read.expires_at <= self._clock.now():
            raise InvalidCredentialsError
        # Names of sessions have 64 characters at most, and subjects more.
        session_name = "sqe-" + hashlib.sha256(read.subject.encode()).hexdigest()[:40]
        answer = self._sts.web_identity(token, role_arn, session_name)
        asked = read_arn(role_arn)
        principal = read_arn(answer.arn)
        if principal is None or asked is None or principal.arn != asked.arn or principal.session != session_name:
            raise ExternalError("The answer of STS contradicts itself")
        if answer.subject not in (None, read.subject):
            raise ExternalError("The answer of STS contradicts itself")
        self._principal(answer.arn, principal.account)
        return self._checked(
            Identity(
                issuer=read.issuer,
                subject=read.subject,
                username=read.username,
                provider=self._name,
                roles=frozenset({principal.arn}),  # `[auth] role_mappings` says what it stands for
                claims=MappingProxyType({"aws_arn": principal.arn, "aws_account": principal.account}),
                expires_at=read.expires_at,
            )
        )

    def _checked(self, identity: Identity) -> Identity:
        if not all(map(is_clean_name, (identity.issuer, identity.subject, identity.username))):
            raise InvalidCredentialsError
        return identity


def _keys_of_basic(username: str, password: Secret) -> AwsCredential:
    """Return the keys of a Basic login. Secrets have no colon, so the token of a session can stand after one."""
    secret, colon, token = password.reveal().partition(":")
    return AwsCredential(
        access_key_id=username,
        secret_access_key=Secret(secret),
        session_token=Secret(token) if colon else None,
    )


def _packed(keys: AwsCredential) -> Secret:
    token = keys.session_token.reveal() if keys.session_token else None
    return Secret(json.dumps([keys.access_key_id, keys.secret_access_key.reveal(), token]))


def _unpacked(packed: Secret) -> AwsCredential:
    key_id, secret, token = json.loads(packed.reveal())
    return AwsCredential(
        access_key_id=key_id, secret_access_key=Secret(secret), session_token=Secret(token) if token else None
    )
