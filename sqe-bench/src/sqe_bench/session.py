"""What people who log in cost: the login, the look at a token with each request, the first statement, live sessions.

A key set is served on loopback and tokens are signed here, so nothing is measured but SQE.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, TypeVar

from sqe_core.bootstrap import Sqe, compose, session_store
from sqe_core.config.loading import load
from sqe_core.engine.spark.engine import SparkEngine
from sqe_core.observe.metrics import resident_bytes
from sqe_core.plugins.manager import PluginManager
from sqe_core.session.store import LiveSession, SessionStore
from sqe_core.spi.auth import BearerCredential, ClientInfo
from sqe_core.spi.errors import InternalError, StartupError
from sqe_core.spi.identity import Secret

NAME = "session"
_AUDIENCE = "sqe-bench"
_MOST_LOGIN_MS = 5.0
_MOST_TOKEN_MS = 0.3
_MOST_FIRST_MS = 250.0
_MOST_MB = 2048.0
_FIRST = 50
_ROWS = 100_000
_WARMUP = 60
_AT_ONCE = 4
_CLIENT = ClientInfo(protocol="flight", address="127.0.0.1")
_POINT = f"SELECT name FROM points WHERE id = {_ROWS // 2}"

_CONFIG = """
[coordinator]
memory_limit = "{heap}"
spill_dir = "{folder}/spill"
[engine]
class_archive = "use"
[[auth.providers]]
type = "bearer_token"
issuer = "{issuer}"
jwks_url = "{issuer}/keys"
audience = "sqe-bench"
[catalogs.lake]
type = "sqlite"
directory = "{folder}/lake"
[policy]
engine = "in-memory"
uncovered = "catalog"
[session]
idle_timeout_secs = 86400
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--sessions", type=int, default=1000, help="live sessions, each of another user (1000)")
    parser.add_argument(
        "--rounds", type=int, default=20_000, help="how often the token of a session is looked at (20000)"
    )
    parser.add_argument("--heap", default="1GB", help="heap of the engine (1GB)")


def run(arguments: argparse.Namespace) -> Mapping[str, Any]:
    """Measure and print."""
    with tempfile.TemporaryDirectory(prefix="sqe-bench-") as folder, _issuer() as issuer:
        config = Path(folder) / "sqe.toml"
        config.write_text(_CONFIG.format(heap=arguments.heap, issuer=issuer.url, folder=folder))
        loaded, plugins = load(config, environ={"XDG_STATE_HOME": folder}), PluginManager()
        sqe = compose(loaded, plugins)
        try:
            store = session_store(sqe, loaded, plugins)
            try:
                sqe.engine.start()
                sqe.engine.wait_ready(timeout_secs=600)
                return _measure(_Server(sqe, store, issuer), arguments.sessions, arguments.rounds)
            finally:
                store.close()
        finally:
            sqe.close()


class _Issuer:
    """Signs tokens, and serves the key that they are checked with."""

    def __init__(self, url: str, key: Any) -> None:
        self.url = url
        self._key = key

    def token(self, user: str) -> Secret:
        """Return a token of a user."""
        from joserfc import jwt

        now = int(time.time())
        claims = {
            "iss": self.url,
            "aud": _AUDIENCE,
            "sub": f"id-{user}",
            "preferred_username": user,
            "iat": now,
            "exp": now + 7200,
            "realm_access": {"roles": [f"role-{number}" for number in range(8)]},
        }
        return Secret(jwt.encode({"alg": "RS256", "kid": self._key.kid, "typ": "JWT"}, claims, self._key))


@contextmanager
def _issuer() -> Iterator[_Issuer]:
    try:
        from joserfc.jwk import RSAKey
    except ImportError:
        raise StartupError("The tokens are checked by sqe-auth-oidc", hint='pip install "sqe-bench[session]"') from None
    key = RSAKey.generate_key(2048, {"kid": "bench", "alg": "RS256", "use": "sig"})
    body = json.dumps({"keys": [key.as_dict(private=False)]}).encode()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield _Issuer(f"http://127.0.0.1:{server.server_port}", key)
    finally:
        server.shutdown()
        server.server_close()


@dataclass(frozen=True)
class _Server:
    """A server without its protocols: every login and statement comes here as from them."""

    sqe: Sqe
    store: SessionStore
    issuer: _Issuer

    def log_in(self, user: str) -> LiveSession:
        return self.store.authenticate(BearerCredential(token=self.issuer.token(user)), _CLIENT)

    def run(self, live: LiveSession, sql: str) -> int:
        """Run a statement as the protocols do, and read its result."""
        live.ensure_usable()
        with self.sqe.service.execute(live.session, sql) as result:
            return sum(batch.num_rows for batch in result)

    def memory(self) -> Mapping[str, float]:
        """The resident memory of this process and of the engine's, and what lives in the engine's heap, in MB."""
        engine = self.sqe.engine
        assert isinstance(engine, SparkEngine)
        jvm: Any = engine.context._jvm
        for _ in range(3):  # what the engine gives up in one collection goes with the next
            gc.collect()
            jvm.java.lang.System.gc()
            time.sleep(1)
        runtime = jvm.java.lang.Runtime.getRuntime()
        heap = int(runtime.totalMemory()) - int(runtime.freeMemory())
        own, java = resident_bytes(os.getpid()), resident_bytes(engine.pid)
        return {"python_mb": own / 2**20, "engine_mb": java / 2**20, "heap_mb": heap / 2**20}


def _measure(server: _Server, sessions: int, rounds: int) -> Mapping[str, Any]:
    warm = server.log_in("warm")
    server.run(warm, "CREATE SCHEMA IF NOT EXISTS lake.default")
    server.run(warm, f"CREATE TABLE points AS SELECT id, concat('name ', id) AS name FROM range({_ROWS}) AS r(id)")
    for _ in range(_WARMUP):
        server.run(warm, _POINT)
    empty = server.memory()

    tokens = [server.issuer.token(f"user-{number}") for number in range(sessions)]
    lives: list[LiveSession] = []
    times = {"login": _times(lambda token: lives.append(_log_in(server, token)), tokens)}
    times["first"] = _times(lambda live: server.run(live, _POINT), lives[:_FIRST])
    times["again"] = _times(lambda live: server.run(live, _POINT), [warm] * _FIRST)
    times["token"] = _times(lambda credential: _look(server, credential), [BearerCredential(token=tokens[0])] * rounds)
    with ThreadPoolExecutor(_AT_ONCE) as workers:
        if set(workers.map(lambda live: server.run(live, _POINT), lives[_FIRST:])) - {1}:
            raise InternalError("a session saw another table")
    if server.store.count != sessions + 1:
        raise InternalError("a session has ended")
    full = server.memory()
    times["later"] = _times(lambda live: server.run(live, _POINT), lives[:_FIRST])

    total_mb = full["python_mb"] + full["engine_mb"]
    checks = {
        "login_ms": (times["login"].median, _MOST_LOGIN_MS),
        "token_ms": (times["token"].median, _MOST_TOKEN_MS),
        "first_ms": (times["first"].median, _MOST_FIRST_MS),
        "memory_mb": (total_mb, _MOST_MB),
    }
    _print(sessions, times, empty, full, server.sqe.pool.count)
    return {
        "passed": all(found < most for found, most in checks.values()),
        "sessions": sessions,
        "load": os.getloadavg()[0],
        "checks": {name: {"found": found, "most": most} for name, (found, most) in checks.items()},
        "times": {name: asdict(found) for name, found in times.items()},
        "empty": empty,
        "full": full,
    }


def _log_in(server: _Server, token: Secret) -> LiveSession:
    return server.store.authenticate(BearerCredential(token=token), _CLIENT)


def _look(server: _Server, credential: BearerCredential) -> None:
    """What each request costs before its statement is looked at."""
    server.store.authenticate(credential, _CLIENT).ensure_usable()


_TITLES = {
    "login": ("login with a new token, keys warm", _MOST_LOGIN_MS),
    "token": ("token of a request", _MOST_TOKEN_MS),
    "first": ("first statement of a session", _MOST_FIRST_MS),
    "again": ("the same in a warm session", None),
    "later": ("the same after all others", None),
}


@dataclass(frozen=True, slots=True)
class _Times:
    """What something took, in ms; `cpu` is this process' own mean, which a neighbour's load changes less."""

    median: float
    p95: float
    cpu: float


Item = TypeVar("Item")


def _times(call: Callable[[Item], object], items: Sequence[Item]) -> _Times:
    found: list[float] = []
    cpu = time.process_time()
    for item in items:
        started = time.perf_counter()
        call(item)
        found.append((time.perf_counter() - started) * 1000)
    cpu = (time.process_time() - cpu) * 1000 / len(items)
    return _Times(median=statistics.median(found), p95=statistics.quantiles(found, n=20)[-1], cpu=cpu)


def _print(
    sessions: int, times: Mapping[str, _Times], empty: Mapping[str, float], full: Mapping[str, float], engines: int
) -> None:
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    print(f"{'':<36}{'median ms':>12}{'p95 ms':>10}{'CPU ms':>10}{'bound':>8}")
    for name, (title, most) in _TITLES.items():
        found, shown = times[name], "" if most is None else f"{most:g}"
        print(f"{title:<36}{found.median:>12.3f}{found.p95:>10.3f}{found.cpu:>10.3f}{shown:>8}")
    print(f"{'':<36}{'python MB':>12}{'engine MB':>10}{'heap MB':>10}{'bound':>8}")
    for title, memory in (("one session", empty), (f"{sessions + 1} sessions", full)):
        print(f"{title:<36}{memory['python_mb']:>12.0f}{memory['engine_mb']:>10.0f}{memory['heap_mb']:>10.0f}", end="")
        print(f"{_MOST_MB:>8.0f}" if memory is full else "")
    print(f"engine sessions that are open: {engines}")
