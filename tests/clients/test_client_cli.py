"""`sqe-cli --host` with a real server: each way to sign in, each option of TLS, and where a session begins."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

CLI = str(Path(sys.executable).with_name("sqe-cli"))
WHO = ("-f", "csv", "-e", "SELECT current_user AS who")
Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    def run(server: Any, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [CLI, "--host", "localhost", "--port", str(server.port), *arguments],
            env={"HOME": str(tmp_path), "PATH": os.environ["PATH"], **inherited(), **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            start_new_session=True,  # there is no terminal to ask on
        )

    return run


def inherited() -> dict[str, str]:
    return {name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ}


@pytest.mark.parametrize("option", ["-u", "--user", "--username"])
def test_user_and_password(server: Any, run: Run, option: str) -> None:
    done = run(server, option, "etl", *WHO, SQE_PASSWORD=server.keys["etl"])
    assert (done.returncode, done.stdout, done.stderr) == (0, "who\netl\n", "")


def test_environment_and_tokens(server: Any, run: Run) -> None:
    etl, ana = server.keys["etl"], server.keys["ana"]
    assert run(server, *WHO, SQE_USER="etl", SQE_PASSWORD=etl).stdout == "who\netl\n"
    assert run(server, *WHO, SQE_TOKEN=ana).stdout == "who\nana\n"
    assert run(server, "--token", ana, *WHO).stdout == "who\nana\n"
    assert run(server, *WHO, SQE_TOKEN=ana, SQE_USER="etl", SQE_PASSWORD=etl).stdout == "who\nana\n"
    assert run(server, "-u", "etl", *WHO, SQE_TOKEN=ana, SQE_PASSWORD=etl).stdout == "who\netl\n"
    assert run(server, *WHO).stdout == "who\nanonymous\n"


def test_a_wrong_login_runs_nothing(server: Any, run: Run) -> None:
    for login in ({"SQE_TOKEN": "sqe_wrong"}, {"SQE_USER": "etl", "SQE_PASSWORD": "sqe_wrong"}):
        done = run(server, *WHO, **login)
        assert (done.returncode, done.stdout) == (2, "")
        assert "Authentication failed" in done.stderr
        assert "sqe_wrong" not in done.stderr


def test_where_the_session_begins(server: Any, run: Run) -> None:
    here = ("-f", "csv", "-e", "SELECT current_catalog AS c, current_schema AS s")
    key = {"SQE_TOKEN": server.keys["etl"]}
    done = run(server, "--protocol", "flight", "--catalog", "iceberg", "--schema", "information_schema", *here, **key)
    assert (done.stdout, done.stderr) == ("c,s\niceberg,information_schema\n", "")
    for option in ("--catalog", "--schema"):
        assert run(server, option, "nope", *here, **key).returncode == 2
    assert run(server, "--protocol", "http", *here, **key).returncode == 2


def test_tls(tls_server: Any, run: Run) -> None:
    key = {"SQE_TOKEN": tls_server.keys["etl"]}
    authority = str(tls_server.folder / "localhost.pem")
    assert run(tls_server, "--tls-ca", authority, *WHO, **key).stdout == "who\netl\n"
    assert run(tls_server, "--insecure", *WHO, **key).stdout == "who\netl\n"
    for refused in ((), ("--tls",)):
        done = run(tls_server, *refused, *WHO, **key)
        assert (done.returncode, done.stdout) == (2, ""), refused


def test_adbc_with_tls(tls_server: Any) -> None:
    """The same server and authority, as docs/clients.md tells ADBC."""
    authority = (tls_server.folder / "localhost.pem").read_text()
    option = {"adbc.flight.sql.client_option.tls_root_certs": authority}
    with tls_server.connect(**option) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT current_user")
        assert cursor.fetchall() == [("etl",)]
