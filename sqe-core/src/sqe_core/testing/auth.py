"""The contract of login providers."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

import pytest

from sqe_core.spi.auth import (
    AuthProvider,
    AwsCredential,
    BasicCredential,
    BearerCredential,
    Credential,
    LoginRequest,
    SupportsBrowserLogin,
    SupportsDeviceLogin,
)
from sqe_core.spi.errors import InvalidCredentialsError, NotSupportedError
from sqe_core.spi.identity import Secret
from sqe_core.testing.contract import ProductContract, assert_no_secret, in_threads


class AuthProviderContract(ProductContract):
    """What every login provider promises.

    Fixtures to supply: `factory`, `config`, `accepted` (a login that succeeds), `foreign` (logins that are not this
    provider's to judge), and with the capability `rejects` also `rejected` (logins of its own kind that fail: a
    wrong password, an unknown user, an expired token).
    """

    KNOWN_CAPABILITIES: ClassVar[frozenset[str]] = frozenset({"rejects", "refresh", "browser_login", "device_login"})

    @pytest.fixture
    def accepted(self) -> LoginRequest:
        """A login that succeeds."""
        raise NotImplementedError("supply the fixture 'accepted'")

    @pytest.fixture
    def foreign(self) -> Sequence[LoginRequest]:
        """Logins that are somebody else's to judge."""
        raise NotImplementedError("supply the fixture 'foreign'")

    @pytest.fixture
    def rejected(self) -> Sequence[LoginRequest]:
        """Logins of this provider's kind that fail."""
        raise NotImplementedError("supply the fixture 'rejected', or do not declare 'rejects'")

    @pytest.fixture
    def provider(self, product: AuthProvider) -> AuthProvider:
        """The provider under test."""
        return product

    def test_is_a_provider(self, provider: AuthProvider) -> None:
        """The factory makes an AuthProvider that is ready."""
        assert isinstance(provider, AuthProvider)
        provider.check()

    def test_accepted_login_is_complete(self, provider: AuthProvider, accepted: LoginRequest) -> None:
        """Issuer, subject and provider are there: they say who it is and who refreshes (SESS-4, AUTHN-4)."""
        identity = provider.authenticate(accepted)
        assert identity is not None
        assert identity.issuer
        assert identity.subject
        assert identity.provider == self.NAME
        assert identity.expires_at is None or identity.expires_at.tzinfo is not None

    def test_names_are_clean(self, provider: AuthProvider, accepted: LoginRequest) -> None:
        """No control characters or direction marks in what logs and audit will show (AUTHN-10)."""
        identity = provider.authenticate(accepted)
        assert identity is not None
        for text in (identity.username, identity.subject, *identity.roles, *identity.groups):
            assert 0 < len(text) <= 1024
            assert not [char for char in text if unicodedata.category(char) in ("Cc", "Cf")]

    def test_same_login_is_same_person(self, provider: AuthProvider, accepted: LoginRequest) -> None:
        """Logging in again, and from many threads, gives the same issuer and subject."""
        identities = in_threads(lambda: provider.authenticate(accepted))
        assert len({identity.key if identity else None for identity in identities}) == 1

    def test_foreign_login_is_left_to_others(self, provider: AuthProvider, foreign: Sequence[LoginRequest]) -> None:
        """What is not its to judge gets None, so that the next provider is asked (AUTHN-4)."""
        assert foreign
        for request in foreign:
            assert provider.authenticate(request) is None

    def test_rejected_login_raises_the_constant_text(
        self, provider: AuthProvider, request: pytest.FixtureRequest
    ) -> None:
        """Every failure reads the same, whatever was wrong (AUTHN-6)."""
        self.need("rejects")
        rejected: Sequence[LoginRequest] = request.getfixturevalue("rejected")
        assert rejected
        for login in rejected:
            with pytest.raises(InvalidCredentialsError) as caught:
                provider.authenticate(login)
            assert str(caught.value) == str(InvalidCredentialsError())

    def test_client_claims_add_nothing(self, provider: AuthProvider, accepted: LoginRequest) -> None:
        """What a client says about itself is no identity (AUTHN-9)."""
        loud = replace(accepted.client, requested_user="root", source="root", user_agent="root", label="root")
        plain, claimed = provider.authenticate(accepted), provider.authenticate(replace(accepted, client=loud))
        assert plain is not None
        assert claimed is not None
        assert (plain.key, plain.username, plain.roles) == (claimed.key, claimed.username, claimed.roles)

    def test_nothing_secret_prints(self, provider: AuthProvider, accepted: LoginRequest) -> None:
        """Neither the provider nor the identity shows a password or a token (AUTHN-8)."""
        identity = provider.authenticate(accepted)
        assert identity is not None
        secrets = (*_secrets_of(accepted.credential), identity.access_token, identity.refresh_token)
        for shown in (repr(provider), repr(identity), str(identity.claims)):
            assert_no_secret(shown, *secrets)

    def test_refresh_keeps_who_it_is(self, provider: AuthProvider, accepted: LoginRequest) -> None:
        """A refreshed identity is the same person of the same provider; without the capability it is refused."""
        identity = provider.authenticate(accepted)
        assert identity is not None
        if not self.can("refresh"):
            with pytest.raises(NotSupportedError):
                provider.refresh(identity)
            return
        refreshed = provider.refresh(identity)
        assert (refreshed.key, refreshed.provider) == (identity.key, self.NAME)
        assert (refreshed.access_token is None) == (identity.access_token is None)

    def test_fresh_login_is_not_revoked(self, provider: AuthProvider, accepted: LoginRequest) -> None:
        """What was just accepted is not revoked."""
        identity = provider.authenticate(accepted)
        assert identity is not None
        assert provider.is_revoked(identity) is False

    def test_capabilities_are_declared(self, provider: AuthProvider) -> None:
        """A mixin is there exactly when its capability is declared."""
        assert isinstance(provider, SupportsBrowserLogin) == self.can("browser_login")
        assert isinstance(provider, SupportsDeviceLogin) == self.can("device_login")


def _secrets_of(credential: Credential) -> tuple[Secret | None, ...]:
    match credential:
        case BasicCredential(password=password):
            return (password,)
        case BearerCredential(token=token):
            return (token,)
        case AwsCredential(secret_access_key=key, session_token=token):
            return (key, token)
    return ()
