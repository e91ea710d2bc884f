"""Requests of OAuth 2 to one identity provider: grants, revocation, and questions about tokens."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

from authlib.oauth2.rfc6749.parameters import prepare_token_request

from sqe_auth_oidc.compact import LARGEST_TOKEN
from sqe_auth_oidc.http import Answer, HttpClient
from sqe_core.spi import ErrorCode, ExternalError, Secret

_log = logging.getLogger("sqe_core.auth_oidc")
_OF_THE_CLIENT = frozenset({"invalid_client", "unauthorized_client"})
# Faults of the configuration at one of the two ends, which no user can do anything about.
_OF_THE_REQUEST = frozenset({"unsupported_grant_type", "invalid_scope", "invalid_target", "unsupported_response_type"})
_LONGEST_LIFE_SECS = 10 * 365 * 86400


class Refused(Exception):
    """The identity provider answered, and refuses: `code` is OAuth's word for why."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenAnswer:
    access_token: Secret
    refresh_token: Secret | None
    id_token: Secret | None
    expires_in: float | None


class TokenEndpoint:
    """Asks a token endpoint as one client.

    Args:
        client: sends the requests.
        url: the endpoint's address; asked each time, because it may come from metadata.
        client_id: whose requests they are; None when the caller brings that along.
        client_secret: the client's secret; None for a public client.
    """

    def __init__(
        self,
        client: HttpClient,
        url: Callable[[], str],
        client_id: str | None = None,
        client_secret: Secret | None = None,
    ) -> None:
        self._client = client
        self.url = url
        self._client_id = client_id
        self._client_secret = client_secret

    def grant(self, grant_type: str, **fields: str | None) -> TokenAnswer:
        """Ask for tokens.

        Raises:
            Refused: what was presented is not good for tokens.
            ExternalError: there is no answer, or the two ends do not fit together.
        """
        ours = "client_id" not in fields
        answer = self._post(self.url(), grant_type, fields)
        if answer.status == 200 and answer.body is not None:
            return _read_tokens(answer.body)
        code = _code(answer) or ("invalid_client" if answer.status == 401 else "")
        if (ours and code in _OF_THE_CLIENT) or code in _OF_THE_REQUEST or not code:
            raise _misfit(code, answer.status)
        raise Refused(code)

    def ask(self, url: str, token: Secret) -> Mapping[str, Any]:
        answer = self._client.post(url, self._with_client({"token": token.reveal()}))
        if answer.status != 200 or answer.body is None or not isinstance(answer.body.get("active"), bool):
            raise _misfit(_code(answer), answer.status)
        return answer.body

    def begin_device(self, url: str, **fields: str) -> Mapping[str, Any]:
        answer = self._client.post(url, self._with_client(fields))
        if answer.status != 200 or answer.body is None:
            raise _misfit(_code(answer), answer.status)
        return answer.body

    def revoke(self, url: str, token: Secret, hint: str) -> None:
        answer = self._client.post(url, self._with_client({"token": token.reveal(), "token_type_hint": hint}))
        if answer.status >= 400:
            raise _misfit(_code(answer), answer.status)

    def _post(self, url: str, grant_type: str, fields: Mapping[str, str | None]) -> Answer:
        body = prepare_token_request(grant_type, **fields)
        return self._client.post(url, self._with_client(dict(parse_qsl(body, keep_blank_values=True))))

    def _with_client(self, fields: Mapping[str, str]) -> Mapping[str, str]:
        """Add the client as form fields, which every provider reads; a secret in a header is optional for some."""
        if "client_id" in fields or self._client_id is None:
            return fields
        secret = {"client_secret": self._client_secret.reveal()} if self._client_secret else {}
        return {**fields, "client_id": self._client_id, **secret}


def _read_tokens(body: Mapping[str, Any]) -> TokenAnswer:
    kind = body.get("token_type", "Bearer")
    # "N_A": what an exchange hands out that is no bearer; nothing here could use it.
    if not isinstance(kind, str) or kind.lower() != "bearer":
        raise ExternalError("The identity provider hands out tokens that are no bearers")
    access = _token(body, "access_token")
    if access is None:
        raise ExternalError("The identity provider answered without an access token")
    lifetime = body.get("expires_in")
    if isinstance(lifetime, str) and lifetime.isascii() and lifetime.isdigit() and len(lifetime) < 12:
        lifetime = int(lifetime)  # some write numbers as text
    if lifetime is not None and (
        isinstance(lifetime, bool) or not isinstance(lifetime, int | float) or not 0 <= lifetime <= _LONGEST_LIFE_SECS
    ):
        raise ExternalError("The identity provider answered with a lifetime that is none")
    return TokenAnswer(
        access_token=access,
        refresh_token=_token(body, "refresh_token"),
        id_token=_token(body, "id_token"),
        expires_in=lifetime,
    )


def _token(body: Mapping[str, Any], name: str) -> Secret | None:
    value = body.get(name)
    if value is None or value == "":
        return None
    if not isinstance(value, str) or len(value) > LARGEST_TOKEN or not (value.isascii() and value.isprintable()):
        raise ExternalError(f"The identity provider answered with a {name} that is none, or too long")
    return Secret(value)


def _code(answer: Answer) -> str:
    """Return OAuth's word for a refusal; the text beside it is not repeated."""
    code = answer.body.get("error") if answer.body is not None else None
    return code if isinstance(code, str) and len(code) <= 64 and code.isascii() and code.isprintable() else ""


def _misfit(code: str, status: int) -> ExternalError:
    said = f"{code}, status {status}" if code else f"status {status}"
    hint = "check client_id and client_secret" if code in _OF_THE_CLIENT else "check the client's settings there"
    return ExternalError(
        f"The identity provider refuses SQE's request ({said}); {hint}", code=ErrorCode.CATALOG_UNAVAILABLE
    )
