"""Keyed hashes of credentials: what finds a session again, and never gives the credential away (SESS-1, AUTHN-8)."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from typing import Protocol

from sqe_core.spi.auth import (
    AwsCredential,
    BasicCredential,
    BearerCredential,
    CertificateCredential,
    Credential,
    NoCredential,
)
from sqe_core.spi.identity import Secret


class HasId(Protocol):
    @property
    def id(self) -> str:
        """The id."""


def session_hash(session: HasId) -> str:
    """What names a session for people, in logs and in the audit: its id is a secret (SESS-1)."""
    return hashlib.sha256(session.id.encode()).hexdigest()[:16]


class Fingerprints:
    """Hashes with a key that only this process has, so that a copied map of them tells nothing."""

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)

    def of(self, credential: Credential, address: str | None = None) -> bytes:
        """Return the hash of what was presented, and of which kind it is.

        Clients that present nothing are told apart by their address: otherwise they would share one session.
        """
        digest = hmac.new(self._key, digestmod=hashlib.sha256)
        for part in _parts(credential, address):
            # With its length, so that ("ab", "c") and ("a", "bc") differ.
            digest.update(len(part).to_bytes(8, "big") + part)
        return digest.digest()

    def of_token(self, token: Secret) -> bytes:
        """Return the hash of a session's token, which is that of the bearer which presents it."""
        return self.of(BearerCredential(token=token))


def _parts(credential: Credential, address: str | None) -> tuple[bytes, ...]:
    match credential:
        case BasicCredential(username=name, password=password):
            return b"basic", _text(name), _text(password.reveal())
        case BearerCredential(token=token):
            return b"bearer", _text(token.reveal())
        case CertificateCredential(der=der):
            return (
                b"certificate",
                der,
                _text(repr((credential.subject, credential.issuer, credential.alternative_names))),
            )
        case AwsCredential(access_key_id=name, secret_access_key=secret, session_token=token):
            return b"aws", _text(name), _text(secret.reveal()), _text(token.reveal() if token else "")
        case NoCredential():
            return b"nothing", _text(address or "")


def _text(value: str) -> bytes:
    # Lone surrogates of a broken header are bytes too.
    return value.encode("utf-8", "surrogatepass")
