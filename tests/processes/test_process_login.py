"""`sqe-cli --login` and `--logout` with a real Keycloak and a real server that checks its tokens."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from testbed.keycloak import CLIENT, PUBLIC_CLIENT, Keycloak
from testbed.people import log_in_as
from testbed.sqe_server import BIN, NO_POLICY, SqeServer

from sqe_core.cli import logs
from sqe_core.cli.arguments import ServerOptions
from sqe_core.cli.remote.backend import open_remote

PEOPLE = Path(__file__).parents[1] / "testbed" / "people.py"
LIFETIME_SECS = 8

RunCli = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def keycloak(keycloak: Keycloak) -> Iterator[Keycloak]:
    """The identity provider; what it gives lives for seconds."""
    keycloak.set_token_lifetime(LIFETIME_SECS)
    yield keycloak
    keycloak.set_token_lifetime()


@pytest.fixture(scope="module")
def port(keycloak: Keycloak, tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """A server that takes tokens of that provider, and nothing else."""
    provider = f"""
        [auth]
        token_refresh_buffer_secs = 3
        [[auth.providers]]
        type = "bearer_token"
        issuer = "{keycloak.issuer}"
        audience = "{CLIENT}"
        user_claim = "preferred_username"
        """
    with SqeServer(tmp_path_factory.mktemp("server"), NO_POLICY + provider) as running:
        yield running.port


@pytest.fixture
def environment(keycloak: Keycloak, tmp_path: Path) -> dict[str, str]:
    return {
        "HOME": str(tmp_path),
        "PATH": os.environ["PATH"],
        "SQE_OIDC_ISSUER": keycloak.issuer,
        "SQE_OIDC_CLIENT_ID": PUBLIC_CLIENT,
        # A browser in which somebody logs in by himself.
        "BROWSER": f"{sys.executable} {PEOPLE} alice %s",
        "PYTHON_KEYRING_BACKEND": "keyring.backends.null.Keyring",
    }


@pytest.fixture
def run(port: int, environment: dict[str, str]) -> RunCli:
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(BIN / "sqe-cli"), "--port", str(port), *arguments],
            **{"stdin": subprocess.DEVNULL, "capture_output": True, "text": True, "timeout": 240},
            env=environment,
        )

    return run


def kept(environment: dict[str, str]) -> dict[str, str]:
    """The tokens that are kept."""
    (file,) = (Path(environment["HOME"]) / ".local/state/sqe/logins").glob("*.json")
    return json.loads(file.read_text())["tokens"]


def refuses(keycloak: Keycloak, refresh_token: str) -> bool:
    form = {"grant_type": "refresh_token", "refresh_token": refresh_token, "client_id": PUBLIC_CLIENT}
    return bool(keycloak.post(keycloak.token_url, **form).get("error") == "invalid_grant")


def test_logging_in_working_on_and_logging_out(
    keycloak: Keycloak, port: int, run: RunCli, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    nobody = run("-e", "SELECT 1")
    assert nobody.returncode == 2
    assert "Authentication failed (log in with --login" in nobody.stderr

    first = run("--login", "-f", "csv", "-e", "SELECT current_user AS me")
    assert (first.returncode, first.stdout) == (0, "me\nalice\n"), first.stderr
    tokens = kept(environment)
    for secret in (tokens["access_token"], tokens["refresh_token"]):
        assert secret not in first.stdout + first.stderr

    # The login is kept: nobody is asked any more, and after the token's end it has been renewed.
    time.sleep(LIFETIME_SECS)
    again = run("-f", "csv", "-e", "SELECT current_user AS me")
    assert (again.returncode, again.stdout) == (0, "me\nalice\n"), again.stderr
    assert kept(environment)["access_token"] != tokens["access_token"]

    # A session goes on beyond the end of the token that it began with, and keeps what was done in it.
    monkeypatch.setattr(logs, "configure", lambda environ, file: None)
    for name in ("HOME", "PYTHON_KEYRING_BACKEND"):
        monkeypatch.setenv(name, environment[name])
    session = open_remote(ServerOptions(host="localhost", port=port), environment, interactive=False)
    try:
        list(session.execute("CREATE SCHEMA sales"))
        list(session.execute("USE sales"))
        time.sleep(2 * LIFETIME_SECS + 5)
        rows = [row for batch in session.execute("SELECT current_schema AS place") for row in batch.to_pylist()]
        assert rows == [{"place": "sales"}]
    finally:
        session.close()

    tokens = kept(environment)
    out = run("--logout")
    assert (out.returncode, out.stderr) == (0, f"Logged out of localhost:{port}.\n")
    assert refuses(keycloak, tokens["refresh_token"])
    after = run("-e", "SELECT 1")
    assert after.returncode == 2
    assert "--login" in after.stderr


def test_logging_in_on_another_device(port: int, environment: dict[str, str]) -> None:
    command = [
        str(BIN / "sqe-cli"),
        "--port",
        str(port),
        "--login=device",
        "-f",
        "csv",
        "-e",
        "SELECT current_user AS me",
    ]
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        watchdog = threading.Timer(200, process.kill)
        watchdog.start()
        assert process.stderr is not None
        told = ""
        while "log in with the code" not in told:
            line = process.stderr.readline()
            assert line, told
            told += line
        found = re.search(r"http://\S+", told)
        assert found is not None
        log_in_as("bob", found[0])
        out, rest = process.communicate(timeout=120)
        watchdog.cancel()
    assert (process.returncode, out) == (0, "me\nbob\n"), told + rest


def test_a_login_that_was_ended_elsewhere_asks_for_a_new_one(
    keycloak: Keycloak, run: RunCli, environment: dict[str, str]
) -> None:
    assert run("--login").returncode == 0
    keycloak.log_out("alice")
    time.sleep(LIFETIME_SECS)
    ended = run("-e", "SELECT 1")
    assert ended.returncode == 2
    assert "The saved login has ended" in ended.stderr
    assert "--login" in ended.stderr
    assert kept(environment)["refresh_token"] not in ended.stderr
