"""Who signs in to a server: from the options, the environment, and the terminal."""

from __future__ import annotations

import base64
import getpass
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from sqe_core.cli.arguments import ServerOptions
from sqe_core.cli.exit_codes import UsageError
from sqe_core.cli.login.flow import TokenSource, log_in, saved_login, store_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """What is shown to the server, and how people are told of it."""

    who: str
    header: str | None = field(default=None, repr=False)
    """The value of `authorization`; None signs in as nobody in particular, or with `tokens`."""
    tokens: TokenSource | None = None
    """Where a token comes from that has to be renewed."""

    def authorization(self) -> str | None:
        """Return the value of `authorization` as it is now. Raises LoginError: somebody has to log in anew."""
        return self.header if self.tokens is None else f"Bearer {self.tokens.access_token().reveal()}"


def login_of(server: ServerOptions, environ: Mapping[str, str], ask: Callable[[str], str]) -> Login:
    """Find the credential.

    An option goes before the environment, a token of the environment before its user, and both before a login that was
    kept. Raises LoginError: an identity provider refused.
    """
    if server.login is not None:
        return _with(log_in(server, environ, store_of(server, environ)))
    token, user = server.token, server.user
    if token is None and user is None:
        token = environ.get("SQE_TOKEN") or None
        user = environ.get("SQE_USER") or None
    if token is not None:
        token = token.strip()
        if not token.isascii() or not token.isprintable() or " " in token:
            raise UsageError("the token holds characters that no token has")
        return Login(who="with a token", header=f"Bearer {token}")
    if user is None:
        kept = saved_login(server, environ, store_of(server, environ))
        return Login(who="anonymously") if kept is None else _with(kept)
    if ":" in user:
        raise UsageError(f"the user name {user!r} holds a colon, with which a login cannot be written")
    password = environ.get("SQE_PASSWORD")
    if password is None:
        password = ask(f"Password of {user} at {server.address}: ")
    pair = f"{user}:{password}".encode("utf-8", "surrogateescape")
    return Login(who=f"as {user}", header=f"Basic {base64.b64encode(pair).decode('ascii')}")


def _with(tokens: TokenSource) -> Login:
    return Login(who=f"as {tokens.user}" if tokens.user else "with a login of yours", tokens=tokens)


def ask_on_terminal(prompt: str) -> str:
    """Ask without echo, on the terminal itself: standard input may be a script."""
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    except OSError:
        raise UsageError("there is no terminal to ask for the password; set SQE_PASSWORD") from None
    try:
        return getpass.getpass(prompt)
    except EOFError:
        raise UsageError("no password was typed") from None
