"""Whether a token counts, as its issuer says right now (RFC 7662). Answers are kept for seconds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sqe_auth_oidc.endpoint import TokenEndpoint
from sqe_auth_oidc.remembered import Remembered
from sqe_core.spi import ExternalError, Secret

_MOST_KEPT = 10_000


@dataclass(frozen=True, slots=True)
class _Kept:
    at: float
    answer: Mapping[str, Any] = field(repr=False)


class Introspection:
    """Asks about tokens. Safe for use from many threads.

    Args:
        endpoint: SQE as a client of the identity provider.
        url: where to ask.
        monotonic: the clock.
        cache_secs: how long an answer counts.
        grace_secs: how long it counts when there is no newer one, because the identity provider does not answer.
    """

    def __init__(
        self,
        endpoint: TokenEndpoint,
        url: Callable[[], str],
        *,
        monotonic: Callable[[], float],
        cache_secs: float,
        grace_secs: float,
    ) -> None:
        self._endpoint = endpoint
        self._url = url
        self._monotonic = monotonic
        self._cache_secs = cache_secs
        self._grace_secs = max(grace_secs, cache_secs)
        self._kept: Remembered[_Kept] = Remembered(_MOST_KEPT)

    def ask(self, token: Secret, *, afresh: bool = False) -> Mapping[str, Any] | None:
        """Return the claims of a token that counts, None for one that does not.

        Raises:
            ExternalError: the identity provider did not say.
        """
        now, kept = self._monotonic(), self._kept.find(token.reveal())
        if kept is not None and not afresh and now - kept.at < self._cache_secs:
            return _claims(kept.answer)
        try:
            answer = self._endpoint.ask(self._url(), token)
        except ExternalError:
            if kept is None or now - kept.at >= self._grace_secs:
                raise
            return _claims(kept.answer)
        self._kept.keep(token.reveal(), _Kept(now, answer))
        return _claims(answer)


def _claims(answer: Mapping[str, Any]) -> Mapping[str, Any] | None:
    return answer if answer.get("active") is True else None
