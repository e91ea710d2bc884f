"""Which tokens are accepted: signature, issuer, audience, time, and the kind of token (JWT-1 to 7)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Any

from sqe_auth_oidc.compact import BadToken, read_compact
from sqe_auth_oidc.keys import KeyStore, SigningKey
from sqe_auth_oidc.remembered import Remembered
from sqe_core.spi import Clock

_MOST_REMEMBERED = 10_000
_LATEST = datetime(9999, 1, 1, tzinfo=UTC).timestamp()
# What says in the claims themselves that a token is for something else than access (JWT-7).
_ACCESS_TYPES = frozenset({"bearer", "jwt", "at+jwt", "access", "access_token"})
_OF_ID_TOKENS = ("at_hash", "c_hash", "s_hash")


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRules:
    """What a token has to say.

    Args:
        algorithms: the allowed ones.
        issuer: the exact issuer; None when the key set alone says whose tokens they are.
        audiences: one of them has to be in `aud`; empty when any audience will do.
        parties: clients that tokens may have been made for (`azp`, `client_id`); empty for all.
        leeway_secs: how far clocks may be apart.
        max_lifetime_secs: longest time between `iat` and `exp`; 0 for any.
        id_tokens: whether ID tokens are accepted as well.
    """

    algorithms: frozenset[str]
    issuer: str | None = None
    audiences: frozenset[str] = frozenset()
    parties: frozenset[str] = frozenset()
    leeway_secs: int = 30
    max_lifetime_secs: int = 0
    id_tokens: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedToken:
    """The claims of a token that was accepted, the key that vouches for them, and when that ends."""

    claims: Mapping[str, Any] = field(repr=False)
    key: SigningKey | None
    expires_at: datetime


class TokenVerifier:
    """Judges tokens of one issuer. Remembers those that it accepted, by their hash, until they end.

    Args:
        keys: the issuer's keys.
        rules: what a token has to say.
        clock: the server's.
    """

    def __init__(self, keys: KeyStore, rules: TokenRules, clock: Clock) -> None:
        self._keys = keys
        self._rules = rules
        self._clock = clock
        self._remembered: Remembered[VerifiedToken] = Remembered(_MOST_REMEMBERED)

    def verify(self, token: str, *, just_made: bool = False) -> VerifiedToken:
        """Accept a token.

        Args:
            token: the text.
            just_made: whether it is the issuer itself that has just handed it out.

        Raises:
            BadToken: it is refused.
            ExternalError: the issuer's keys are not known.
        """
        known = self._remembered.find(token)
        if known is not None and known.key is not None:
            if known.expires_at > self._clock.now() and self._keys.holds(known.key):
                return known
            self._remembered.forget(token)
        accepted = self._judge(token, just_made=just_made)
        self._remembered.keep(token, accepted)
        return accepted

    def is_withdrawn(self, token: str) -> bool:
        """Whether a token that was accepted would not be now, for another reason than its age."""
        try:
            self.verify(token)
        except BadToken:
            return True
        return False

    def check(self) -> None:
        self._keys.check()

    def _judge(self, token: str, *, just_made: bool) -> VerifiedToken:
        compact = read_compact(token)
        if compact.algorithm not in self._rules.algorithms:
            raise BadToken("has an algorithm that is not allowed (alg)")
        issuer = compact.claims.get("iss")
        if self._rules.issuer is not None and issuer != self._rules.issuer:
            # Before its key is looked for: strangers' tokens fetch nobody's keys.
            raise BadToken("is of another issuer (iss)")
        key = self._keys.find(compact.kid, just_made=just_made)
        if not key.verifies(compact.algorithm, compact.signed, compact.signature):
            raise BadToken("has a wrong signature")
        return VerifiedToken(
            claims=MappingProxyType(compact.claims),
            key=key,
            expires_at=judge_claims(compact.claims, self._rules, self._clock.now()),
        )


def judge_claims(claims: Mapping[str, Any], rules: TokenRules, now: datetime) -> datetime:
    """Return when a token ends. Raises BadToken when its claims are not those of a token that is valid here."""
    if not isinstance(claims.get("iss"), str) or (rules.issuer is not None and claims["iss"] != rules.issuer):
        raise BadToken("is of another issuer (iss)")
    _judge_audience(claims, rules)
    _judge_kind(claims, rules)
    return _judge_time(claims, rules, now)


def _judge_audience(claims: Mapping[str, Any], rules: TokenRules) -> None:
    audience = claims.get("aud", [])
    listed = [audience] if isinstance(audience, str) else audience
    if not isinstance(listed, list) or not all(isinstance(name, str) for name in listed):
        raise BadToken("has an audience that is none (aud)")
    if rules.audiences and rules.audiences.isdisjoint(listed):
        raise BadToken("is for another audience (aud)")
    if rules.parties:
        parties = [claims[name] for name in ("azp", "client_id", "appid", "cid") if name in claims]
        # Two that differ are for whoever reads the other one.
        if not parties or not all(isinstance(name, str) and name in rules.parties for name in parties):
            raise BadToken("was made for another client (azp)")


def _judge_kind(claims: Mapping[str, Any], rules: TokenRules) -> None:
    if "cnf" in claims:
        raise BadToken("is bound to a key whose possession a bearer does not prove (cnf)")
    kind, use = claims.get("typ"), claims.get("token_use", "access")
    wanted = _ACCESS_TYPES | ({"id"} if rules.id_tokens else frozenset())
    for value in (kind, use):
        if value is not None and not (isinstance(value, str) and value.lower() in wanted):
            raise BadToken("is no access token (typ, token_use)")
    if not rules.id_tokens and any(name in claims for name in _OF_ID_TOKENS):
        raise BadToken("is an ID token (at_hash)")
    if "events" in claims:
        raise BadToken("is a message about a logout (events)")


def _judge_time(claims: Mapping[str, Any], rules: TokenRules, now: datetime) -> datetime:
    moment, leeway = now.timestamp(), rules.leeway_secs
    expiry, begin, made = (_moment(claims, name) for name in ("exp", "nbf", "iat"))
    if expiry is None:
        raise BadToken("never ends (exp)")
    if expiry + leeway <= moment:
        raise BadToken("is over (exp)")
    if begin is not None and begin - leeway > moment:
        raise BadToken("does not begin yet (nbf)")
    if made is not None and made - leeway > moment:
        raise BadToken("was made in the future (iat)")
    if rules.max_lifetime_secs:
        since = made if made is not None else min(moment, begin if begin is not None else moment)
        if expiry - since > rules.max_lifetime_secs:
            raise BadToken("lives too long (exp)")
    # The leeway is for clocks that are apart: what is used again later ends when it says.
    ends = datetime.fromtimestamp(expiry, UTC)
    return ends if ends > now else now + timedelta(seconds=1)


def _moment(claims: Mapping[str, Any], name: str) -> float | None:
    value = claims.get(name)
    if name not in claims:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < _LATEST:
        raise BadToken(f"has a time that is none ({name})")
    return float(value)
