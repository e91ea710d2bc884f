"""`--login`, `--logout`, and the tokens of a saved login while a shell is open."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Mapping

from sqe_core.cli.arguments import ServerOptions
from sqe_core.cli.exit_codes import UsageError
from sqe_core.cli.login.http import LoginError, ProviderSilentError, is_safe_url
from sqe_core.cli.login.provider import DEFAULT_SCOPE, Client, Provider, Tokens
from sqe_core.cli.login.store import LoginStore, SavedLogin, default_folder, system_vault
from sqe_core.cli.shell.terminal_text import clean
from sqe_core.spi.identity import Secret

# A token is renewed this long before its end, or in the last quarter of its life when that is shorter.
_BUFFER_SECS = 60.0


class TokenSource:
    """The tokens of a saved login, renewed when it is time. Safe for use from several threads.

    Args:
        store: where they are kept.
        login: what was read from there.
    """

    def __init__(self, store: LoginStore, login: SavedLogin) -> None:
        self._store = store
        self._client = login.client
        self._tokens = login.tokens
        self._lock = threading.Lock()

    @property
    def user(self) -> str | None:
        """Whose they are, as far as the identity provider says."""
        return self._tokens.user if self._tokens else None

    def due_in(self) -> float:
        """How many seconds there are until the next renewal; none or fewer when it is time."""
        return _due_in(self._tokens) if self._tokens else 0.0

    def access_token(self) -> Secret:
        """Return a token that is good for a while.

        Raises:
            LoginError: the login has ended; somebody has to log in anew.
        """
        with self._lock:
            if self._tokens is None or _due_in(self._tokens) <= 0:
                self._tokens = self._renewed()
            return self._tokens.access_token

    def _renewed(self) -> Tokens:
        with self._store.lock():
            # Another shell may have renewed it, or logged out, meanwhile.
            saved = self._store.read()
            if saved is None or saved.client != self._client or saved.tokens is None:
                raise LoginError("Nobody is logged in any more", hint="log in with --login")
            if _due_in(saved.tokens) > 0:
                return saved.tokens
            try:
                tokens = Provider(self._client).refresh(saved.tokens)
            except ProviderSilentError:
                if saved.tokens.expires_at > time.time():
                    return saved.tokens
                raise
            except LoginError as error:
                raise LoginError(f"The saved login has ended: {error.message}", hint="log in with --login") from None
            self._store.write(SavedLogin(client=self._client, tokens=tokens))
            return tokens


def store_of(server: ServerOptions, environ: Mapping[str, str]) -> LoginStore:
    return LoginStore(_name_of(server), default_folder(environ), system_vault)


def log_in(server: ServerOptions, environ: Mapping[str, str], store: LoginStore) -> TokenSource:
    """Have somebody log in, and keep the login.

    Raises:
        UsageError: the connection is not safe for tokens, or the identity provider is not known.
        LoginError: nobody logged in.
    """
    refuse_unsafe(server)
    saved = store.read()
    client = _client_of(server, environ, saved.client if saved else None)
    provider = Provider(client)
    from sqe_core.cli.login.browser import has_browser, login_in_browser
    from sqe_core.cli.login.device import login_on_device

    in_browser = server.login == "browser" or (server.login != "device" and has_browser(environ))
    tokens = login_in_browser(provider, _tell) if in_browser else login_on_device(provider, _tell)
    login = SavedLogin(client=client, tokens=tokens)
    with store.lock():
        store.write(login)
    _tell(f"Logged in as {tokens.user}." if tokens.user else "Logged in.")
    return TokenSource(store, login)


def saved_login(server: ServerOptions, environ: Mapping[str, str], store: LoginStore) -> TokenSource | None:
    """Return the login that is kept for a server; None when there is none."""
    saved = store.read()
    if saved is None or saved.tokens is None:
        return None
    refuse_unsafe(server)
    wanted = _client_of(server, environ, saved.client)
    if (wanted.issuer, wanted.client_id) != (saved.client.issuer, saved.client.client_id):
        raise UsageError("the saved login is of another identity provider or client; log in with --login")
    return TokenSource(store, saved)


def log_out(server: ServerOptions, environ: Mapping[str, str], tell: Callable[[str], None]) -> bool:
    """Revoke and delete the login of a server; False when the identity provider did not revoke it."""
    store = store_of(server, environ)
    with store.lock():
        saved = store.read()
        if saved is None or saved.tokens is None:
            tell(f"Nobody is logged in at {server.address}.")
            return True
        # Deleted first: whatever the identity provider says, nobody here uses it again.
        store.forget_tokens()
        try:
            Provider(saved.client).revoke(saved.tokens)
        except LoginError as error:
            tell(
                f"The login at {server.address} is deleted here. {error.message}: whoever copied it can use it until"
                " it ends."
            )
            return False
    tell(f"Logged out of {server.address}.")
    return True


def refuse_unsafe(server: ServerOptions) -> None:
    """Raise when somebody else could read the tokens of a login, or be taken for the server."""
    if not server.is_local and not (server.tls and server.check_certificate):
        raise UsageError(
            "a login is sent only to a server that is encrypted and known: add --tls or --tls-ca, without --insecure"
        )


def _client_of(server: ServerOptions, environ: Mapping[str, str], saved: Client | None) -> Client:
    """Who is asked: from the options, the environment, and the last login at this server. Never from the server."""
    issuer = server.issuer or environ.get("SQE_OIDC_ISSUER") or (saved.issuer if saved else None)
    # What goes with one issuer is not used for another.
    known = saved if saved is not None and saved.issuer == issuer else None
    client_id = server.client_id or environ.get("SQE_OIDC_CLIENT_ID") or (known.client_id if known else None)
    if not issuer or not client_id:
        missing = "--issuer" if not issuer else "--client-id"
        variable = "SQE_OIDC_ISSUER" if not issuer else "SQE_OIDC_CLIENT_ID"
        raise UsageError(f"--login needs {missing} (or {variable}); the administrator of the server knows it")
    if not is_safe_url(issuer) or "?" in issuer:
        raise UsageError("--issuer is an address that begins with https://")
    scope = server.scope or environ.get("SQE_OIDC_SCOPE") or (known.scope if known else None)
    audience = server.audience or environ.get("SQE_OIDC_AUDIENCE") or (known.audience if known else None)
    return Client(issuer=issuer, client_id=client_id, scope=scope or DEFAULT_SCOPE, audience=audience)


def _name_of(server: ServerOptions) -> str:
    """A server's name for its login. A plain and an encrypted one at the same place are two."""
    return f"{'tls' if server.tls else 'plain'}://{server.host.lower()}:{server.port}"


def _due_in(tokens: Tokens) -> float:
    return tokens.expires_at - min(_BUFFER_SECS, tokens.lifetime_secs / 4) - time.time()


def _tell(text: str) -> None:
    print(clean(text), file=sys.stderr, flush=True)
