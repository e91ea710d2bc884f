"""The public keys of an issuer: fetched, kept for a bounded time, and given up when they are withdrawn (JWT-8).

    age < 0.8 refresh_secs           used as they are
    age < refresh_secs               used, while a thread fetches them anew: a busy server never waits
    refresh_secs <= age < ttl_secs   one request waits for the fetch; when it fails they are used on, and each half
                                     minute another one waits
    ttl_secs <= age                  not used: whoever asks waits for the fetch, and is refused when it fails

A token whose key is unknown fetches them too, once per half minute for all threads together; at once where the issuer
itself has just handed out the token, since strangers cannot make that happen.
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from joserfc.errors import JoseError
from joserfc.jwk import ECKey, OKPKey, RSAKey
from joserfc.jws import JWSRegistry

from sqe_auth_oidc.compact import BadToken
from sqe_core.spi import ErrorCode, ExternalError, Metrics

_log = logging.getLogger("sqe_core.auth_oidc")

PublicKey = RSAKey | ECKey | OKPKey

_TYPES: Mapping[str, type[PublicKey]] = {"RSA": RSAKey, "EC": ECKey, "OKP": OKPKey}
_FITTING: Mapping[str, tuple[str, str | None]] = {
    **{f"{family}{size}": ("RSA", None) for family in ("RS", "PS") for size in (256, 384, 512)},
    "ES256": ("EC", "P-256"),
    "ES384": ("EC", "P-384"),
    "ES512": ("EC", "P-521"),
    "EdDSA": ("OKP", None),
    "Ed25519": ("OKP", "Ed25519"),
    "Ed448": ("OKP", "Ed448"),
}
ALGORITHMS = tuple(_FITTING)
"""What a configuration may allow: signatures with a key pair, and nothing else."""

# Of a key pair; whatever else stands there, a private part above all, is not read.
_PUBLIC = ("kty", "n", "e", "crv", "x", "y")
_CURVES = frozenset({"P-256", "P-384", "P-521", "Ed25519", "Ed448"})
_SMALLEST_RSA_BITS = 2048
_LARGEST_RSA_BITS = 8192
_LONGEST_EXPONENT = 12  # characters; nearly every key has AQAB
_MOST_KEYS = 100
_UNKNOWN_KEY_SECS = 30.0
_AFTER_FAILURE_SECS = 5.0
_WAIT_SECS = 15.0
# From this part of `refresh_secs` on the keys are fetched while they are used.
_EARLY = 0.8


@dataclass(frozen=True, slots=True, kw_only=True)
class SigningKey:
    """One key of the issuer's, and the algorithms that it says it is for."""

    kid: str
    kind: str
    curve: str | None
    algorithm: str | None
    fingerprint: str
    key: PublicKey = field(repr=False)

    def verifies(self, algorithm: str, signed: bytes, signature: bytes) -> bool:
        """Whether a signature is right. Raises BadToken when this key is not for that algorithm (JWT-1)."""
        kind, curve = _FITTING[algorithm]
        if self.kind != kind or (curve is not None and self.curve != curve):
            raise BadToken("has an algorithm that its key does not fit")
        if self.algorithm not in (None, algorithm) and {self.algorithm, algorithm} != {"EdDSA", self.curve}:
            raise BadToken("has an algorithm that its key is not meant for")
        try:
            # Not through joserfc's own reading of the token: the algorithm is decided, and so are the bytes.
            return JWSRegistry.algorithms[algorithm].verify(signed, signature, self.key)
        except (JoseError, ValueError, TypeError):
            return False


def read_keys(document: Mapping[str, Any]) -> Mapping[str, SigningKey]:
    """Return the keys of a key set that can check signatures, by their names; others are left out.

    Raises:
        ExternalError: it is no key set.
    """
    entries = document.get("keys")
    if not isinstance(entries, list) or len(entries) > _MOST_KEYS:
        raise ExternalError("The keys of the identity provider are no key set, or too many")
    found: dict[str, SigningKey] = {}
    twice: set[str] = set()
    for entry in entries:
        key = _read_key(entry) if isinstance(entry, dict) else None
        if key is None:
            continue
        if key.kid in found and found[key.kid].fingerprint != key.fingerprint:
            twice.add(key.kid)
        found[key.kid] = key
    for kid in twice:
        # Nobody could say which of them a token means.
        _log.warning("the identity provider has two keys of one name; neither is used")
        del found[kid]
    return MappingProxyType(found)


def _read_key(entry: dict[str, Any]) -> SigningKey | None:
    kid, kind = entry.get("kid"), entry.get("kty")
    operations = entry.get("key_ops", ["verify"])
    if not isinstance(kid, str) or not kid or not isinstance(kind, str) or kind not in _TYPES:
        return None
    if entry.get("use", "sig") != "sig" or not isinstance(operations, list) or "verify" not in operations:
        return None
    algorithm = entry.get("alg")
    if algorithm is not None and (not isinstance(algorithm, str) or algorithm not in _FITTING):
        return None
    if kind == "RSA" and not _is_sound(entry.get("n"), entry.get("e")):
        return None
    public: dict[str, str | list[str]] = {name: entry[name] for name in _PUBLIC if name in entry}
    try:
        key = _TYPES[kind].import_key(public)
        key.get_op_key("verify")
    except (JoseError, ValueError, TypeError, KeyError):
        return None
    curve = key.curve_name if isinstance(key, ECKey | OKPKey) else None
    if isinstance(key, RSAKey):
        if key.public_key.key_size < _SMALLEST_RSA_BITS:  # zeros in front made it look larger
            return None
    elif curve not in _CURVES:
        return None
    canonical = json.dumps(public, sort_keys=True).encode()
    return SigningKey(
        kid=kid,
        kind=kind,
        curve=curve,
        algorithm=algorithm,
        fingerprint=hashlib.sha256(canonical).hexdigest(),
        key=key,
    )


def _is_sound(modulus: object, exponent: object) -> bool:
    """Whether an RSA key is large enough to trust, and small enough to compute with."""
    if not isinstance(modulus, str) or not isinstance(exponent, str):
        return False
    bits = len(modulus.rstrip("=")) * 6
    return _SMALLEST_RSA_BITS <= bits <= _LARGEST_RSA_BITS + 8 and len(exponent) <= _LONGEST_EXPONENT


class KeyStore:
    """The keys of one issuer; several issuers never share one (JWT-3). Safe for use from many threads.

    Args:
        fetch: reads the key set; raises ExternalError.
        monotonic: the clock.
        metrics: where fetches are counted.
        refresh_secs: age from which on keys are fetched anew while they are used.
        ttl_secs: age from which on they are not used any more.
    """

    def __init__(
        self,
        fetch: Callable[[], Mapping[str, Any]],
        *,
        monotonic: Callable[[], float],
        metrics: Metrics,
        refresh_secs: float,
        ttl_secs: float,
    ) -> None:
        self._fetch = fetch
        self._monotonic = monotonic
        self._metrics = metrics
        self._refresh_secs = min(refresh_secs, ttl_secs)
        self._ttl_secs = ttl_secs
        self._changed = threading.Condition()
        self._keys: Mapping[str, SigningKey] = MappingProxyType({})
        self._fetched_at: float | None = None
        self._began_at: float | None = None
        self._fetching = False
        self._failure: ExternalError | None = None
        self._turn = 0

    def find(self, kid: str, *, just_made: bool = False) -> SigningKey:
        """Return the key of that name.

        Args:
            kid: its name.
            just_made: the issuer has just handed out a token with it, so it is new rather than made up.

        Raises:
            BadToken: the issuer has no such key.
            ExternalError: its keys are not known, and it does not answer.
        """
        with self._changed:
            found, wait = self._look(kid, self._monotonic())
            wait = wait or (found is None and just_made)
            if found is not None and not wait:
                return found
            mine = wait and not self._fetching
            if mine:
                self._begin()
            elif self._fetching:
                turn = self._turn
                self._changed.wait_for(lambda: self._turn != turn, timeout=_WAIT_SECS)
                if just_made and kid not in self._keys and self._turn != turn:
                    # That fetch may have begun before the key was there.
                    mine = True
                    self._begin()
        if mine:
            self._run()
        return self._after_fetch(kid)

    def _look(self, kid: str, now: float) -> tuple[SigningKey | None, bool]:
        """Return the key as far as it is known, and whether the keys have to be fetched before it counts."""
        found = self._keys.get(kid)
        since_begin = math.inf if self._began_at is None else now - self._began_at
        age = math.inf if self._fetched_at is None else now - self._fetched_at
        if age >= self._ttl_secs:
            return None, since_begin >= _AFTER_FAILURE_SECS
        if found is None:
            return None, since_begin >= _UNKNOWN_KEY_SECS
        if age >= self._refresh_secs and since_begin >= _UNKNOWN_KEY_SECS and not self._fetching:
            return found, True
        if age >= self._refresh_secs * _EARLY and since_begin >= _AFTER_FAILURE_SECS and not self._fetching:
            self._begin()
            self._in_background()
        return found, False

    def check(self) -> None:
        """Fetch the keys when there are none. Raises ExternalError when that fails."""
        try:
            self.find("")
        except BadToken:
            return

    def holds(self, key: SigningKey) -> bool:
        """Whether a key that was found earlier is still the issuer's; keeps the keys fresh as `find` does.

        Raises:
            ExternalError: its keys are not known any more, and it does not answer.
        """
        try:
            return self.find(key.kid).fingerprint == key.fingerprint
        except BadToken:
            return False

    def _after_fetch(self, kid: str) -> SigningKey:
        with self._changed:
            age = None if self._fetched_at is None else self._monotonic() - self._fetched_at
            if age is None or age >= self._ttl_secs:
                raise ExternalError(
                    "The keys of the identity provider cannot be fetched", code=ErrorCode.CATALOG_UNAVAILABLE
                ) from self._failure
            found = self._keys.get(kid)
        if found is None:
            raise BadToken("is signed with a key that its issuer does not have")
        return found

    def _begin(self) -> None:
        self._fetching = True
        self._began_at = self._monotonic()

    def _in_background(self) -> None:
        thread = threading.Thread(target=self._run, name="sqe-oidc-keys", daemon=True)
        try:
            thread.start()
        except RuntimeError:
            self._fetching = False

    def _run(self) -> None:
        keys: Mapping[str, SigningKey] | None = None
        began = self._monotonic()
        try:
            keys = read_keys(self._fetch())
            if not keys:
                _log.warning("the identity provider has no key that checks signatures")
        except ExternalError as error:
            self._failure = error
            _log.warning("the keys of the identity provider cannot be fetched: %s", error)
        finally:
            self._metrics.count(
                "sqe_auth_jwks_fetches_total", labels={"status": "error" if keys is None else "success"}
            )
            with self._changed:
                if keys is not None:
                    # Their age counts from before they were asked for: what is withdrawn meanwhile is not new.
                    self._keys, self._fetched_at = keys, began
                self._fetching = False
                self._turn += 1
                self._changed.notify_all()

    def names(self) -> Sequence[str]:
        """Return the names of the keys, for tests and `sqe doctor`."""
        with self._changed:
            return tuple(self._keys)
