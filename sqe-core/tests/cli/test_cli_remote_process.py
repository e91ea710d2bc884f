"""`sqe-cli` with a server, as a process: exit codes, Ctrl-C, the password, the shell."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from testbed.clocks import wait_for
from testbed.making import each_ended
from testbed.terminal import PtyShell

from sqe_core import __version__

CLI = [sys.executable, "-m", "sqe_core.cli.main"]
SERVER = Path(__file__).with_name("cli_server_fake.py")

RunCli = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def port() -> Iterator[str]:
    process = subprocess.Popen([sys.executable, str(SERVER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        assert process.stdin is not None
        process.stdin.close()
        process.wait(20)


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "LANG": "C"}


@pytest.fixture
def run(port: str, environment: dict[str, str], tmp_path: Path) -> RunCli:
    def run(*arguments: str, script: str = "", **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*CLI, "--port", port, *arguments],
            input=script,
            capture_output=True,
            text=True,
            timeout=60,
            cwd=tmp_path,
            env={**environment, **more},
            check=False,
            start_new_session=True,  # there is no terminal to ask on
        )

    return run


def test_the_sample_of_the_features(run: RunCli) -> None:
    done = run("--protocol", "flight", "--host", "localhost", "-e", "SELECT 1 AS one")
    assert (done.returncode, done.stdout, done.stderr) == (0, "one\n-----\n  1\n(1 row)\n", "")


def test_a_script_with_commands_and_changes(run: RunCli) -> None:
    script = """
        CREATE TABLE t (n bigint);
        INSERT INTO t VALUES (1), (2), (3);
        SET SESSION x = 1;
        .tables
        .schema orders
        .format csv
        SELECT nothing;
    """
    done = run(script=script)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("CREATE TABLE\nINSERT: 3 rows\nSET SESSION\ntable\n")
    assert done.stdout.endswith('n,text\n,""\n')


def test_an_error_looks_as_it_does_in_the_embedded_engine(run: RunCli, tmp_path: Path) -> None:
    (tmp_path / "s.sql").write_text("SELECT 2;\n\n  SELECT 2; MISSING orderz;\nSELECT 2")
    done = run("-f", "csv", "--file", "s.sql")
    assert (done.returncode, done.stdout) == (1, "n\n2\nn\n2\nn\n2\n")
    assert done.stderr.splitlines() == [
        "USER_ERROR TABLE_NOT_FOUND: s.sql, line 3:21: Table 'orderz' does not exist",
        "  3 |   SELECT 2; MISSING orderz;",
        "    |                     ^",
        'Hint: did you mean "orders"?',
    ]
    stopped = run("-f", "csv", "--stop-on-error", "-e", "NONSENSE; SELECT 2")
    assert (stopped.returncode, stopped.stdout) == (1, "")
    raw = run("--raw-errors", "-e", "MISSING orderz")
    assert (raw.returncode, raw.stderr) == (1, "TABLE_NOT_FOUND: Table 'orderz' does not exist\n")


def test_a_script_ends_where_its_session_does(run: RunCli) -> None:
    done = run("--raw-errors", "-f", "csv", "-e", "EXPIRE; SELECT 2; SELECT 2")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.count("SESSION_EXPIRED: The session on the server has ended") == 2


def test_who_signs_in(run: RunCli) -> None:
    alice = ("-f", "csv", "-u", "alice", "-e", "SELECT 2")
    assert run(*alice, SQE_PASSWORD="wonderland").stdout == "n\n2\n"
    assert run("-f", "csv", "-e", "SELECT 2", SQE_USER="alice", SQE_PASSWORD="wonderland").stdout == "n\n2\n"
    for refused in (
        run(*alice, SQE_PASSWORD="x"),
        run("-e", "SELECT 2", SQE_USER="alice", SQE_PASSWORD=""),
        run("-e", "SELECT 2", SQE_TOKEN="t", SQE_USER="alice", SQE_PASSWORD="wonderland"),
        run("-e", "SELECT 2", "--token", "t"),
    ):
        assert refused.returncode == 2
        assert re.fullmatch(r"sqe-cli: localhost:\d+: Authentication failed\n", refused.stderr)
    asked = run(*alice)
    assert (asked.returncode, asked.stdout) == (2, "")
    assert asked.stderr == "sqe-cli: there is no terminal to ask for the password; set SQE_PASSWORD\n"


def test_nothing_listens(run: RunCli) -> None:
    done = run("--port", "1", "-e", "SELECT 2")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "sqe-cli: cannot connect to localhost:1: nothing listens there\n"


def wait_until_signed_in(pid: int) -> None:
    """The imports take long on a busy machine; what follows the connection does not."""
    process = psutil.Process(pid)
    wait_for(lambda: any(each.status == psutil.CONN_ESTABLISHED for each in process.net_connections("tcp")), 60)
    time.sleep(1.5)


@pytest.mark.parametrize("statement", ["SELECT slow", "INSERT slow", "SELECT endless"])
def test_ctrl_c_cancels(port: str, environment: dict[str, str], statement: str) -> None:
    with subprocess.Popen(
        [*CLI, "--port", port, "-f", "csv", "-e", f"{statement}; SELECT 2"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    ) as process:
        wait_until_signed_in(process.pid)
        process.send_signal(signal.SIGINT)
        out, told = process.communicate(timeout=20)
    assert process.returncode == 130
    assert "USER_ERROR QUERY_CANCELLED: The statement was cancelled" in told
    assert "Traceback" not in told
    assert not out.endswith("n\n2\n")


def test_a_reader_that_goes_away(port: str, environment: dict[str, str]) -> None:
    with subprocess.Popen(
        [*CLI, "--port", port, "-f", "csv", "-e", "SELECT endless"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"n\n"
        process.stdout.close()
        assert process.wait(20) == 141


# The shell


@pytest.fixture
def open_shell(port: str, tmp_path: Path) -> Iterator[Callable[..., PtyShell]]:
    yield from each_ended(
        lambda *arguments, **options: PtyShell(tmp_path, "--port", port, *arguments, command=CLI, **options)
    )


def test_the_shell(open_shell: Callable[..., PtyShell]) -> None:
    shell = open_shell()
    shell.expect(rf"SQE {re.escape(__version__)}, SQE Coordinator 0 at localhost:\d+, signed in anonymously\.")
    shell.expect("sqe>")
    shown = shell.run("SELECT 1 AS one;", r"\(1 row\)")
    assert "one\n-----\n  1\n(1 row)" in shown
    shell.expect("sqe>")
    shell.run("USE sales;", "USE")
    shell.expect("sqe>")
    assert "sqe iceberg.sales" in shell.raw  # the title of the window
    shell.type('SELECT * FROM "default".ord\t')
    shell.expect("(?s)ord.*ers")
    shell.type("\x03")
    shell.expect("sqe>")
    shell.run("EXPIRE;", "sqe>")
    shell.run("SELECT 2;", "signed in again, in iceberg.sales; settings")
    shell.expect("sqe>")
    shell.run("SELECT 1 AS one;", r"\(1 row\)")
    shell.expect("sqe>")
    time.sleep(0.3)
    shell.type("\x04")
    assert shell.end() == 0
    assert "Traceback" not in shell.text
    assert "engine" not in shell.text


def test_progress_and_ctrl_c_in_the_shell(open_shell: Callable[..., PtyShell]) -> None:
    shell = open_shell()
    shell.expect("sqe>")
    shell.type("SELECT slow;\r")
    shell.expect(r"\[########\.+\]  40%  \d+ s  Ctrl-C cancels  1,234 rows  4/10 tasks, 2 running")
    shell.type("\x03")
    shell.expect("QUERY_CANCELLED: The statement was cancelled")
    shell.expect("sqe>")
    shell.run("SELECT 2;", r"\(1 row\)")


def test_the_password_is_asked_for_and_not_shown(open_shell: Callable[..., PtyShell]) -> None:
    shell = open_shell("-u", "alice")
    shell.expect("Password of alice at localhost:")
    shell.type("wonderland\r")
    shell.expect("signed in as alice")
    shell.expect("sqe>")
    assert "wonderland" not in shell.raw
    wrong = open_shell("-u", "alice")
    wrong.expect("Password of alice")
    wrong.type("looking-glass\r")
    wrong.expect("Authentication failed")
    assert wrong.end() == 2


def test_ctrl_c_at_the_password_leaves(open_shell: Callable[..., PtyShell]) -> None:
    shell = open_shell("-u", "alice")
    shell.expect("Password of alice")
    code = None
    for _ in range(5):
        # As people do: a press that comes while the terminal is being set up is pressed again.
        shell.type("\x03")
        with suppress(AssertionError):
            code = shell.end(timeout=4)
            break
    assert code == 130
    assert "Traceback" not in shell.text


def test_what_is_typed_at_the_shell_is_no_password_of_a_script(open_shell: Callable[..., PtyShell]) -> None:
    # The terminal is asked, although standard input is a script.
    script = open_shell("-u", "alice", "-f", "csv", "-e", "SELECT 2")
    script.expect("Password of alice")
    script.type("wonderland\r")
    script.expect("n\n2\n")
    assert script.end() == 0
