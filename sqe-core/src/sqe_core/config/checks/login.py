"""A login that cannot work, or that is configured twice."""

from __future__ import annotations

from collections.abc import Iterator

from sqe_core.config.origin import Fault
from sqe_core.config.sections.root import SqeConfig


def check_login_is_complete(config: SqeConfig) -> Iterator[Fault]:
    """`[auth]` says how to log in, and says it whole."""
    auth = config.auth
    if auth is None:
        return
    if auth.keycloak_url and not auth.realm:
        yield Fault(("auth", "realm"), "is missing; `keycloak_url` needs it")
    if auth.realm and not auth.keycloak_url:
        yield Fault(("auth", "keycloak_url"), "is missing; `realm` needs it")
    if auth.keycloak_url and not auth.client_id:
        yield Fault(("auth", "client_id"), "is missing; `keycloak_url` needs it")
    if not (auth.keycloak_url or auth.realm or auth.token_endpoint or auth.providers or auth.external):
        yield Fault(
            ("auth",),
            "names no way to log in; write `token_endpoint`, or `keycloak_url` and `realm`, or [[auth.providers]]; "
            "without an [auth] table there is one anonymous user",
        )


def check_one_form_of_login(config: SqeConfig) -> Iterator[Fault]:
    """One single provider, or a chain."""
    auth = config.auth
    if auth is None:
        return
    if auth.keycloak_url and auth.token_endpoint:
        yield Fault(("auth", "token_endpoint"), "stands beside `keycloak_url`; only one of them can be the provider")
    for key in ("keycloak_url", "token_endpoint"):
        if getattr(auth, key) and auth.providers:
            yield Fault(("auth", key), "stands beside [[auth.providers]]; make it an entry of that chain")
