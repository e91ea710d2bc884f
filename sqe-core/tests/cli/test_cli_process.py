"""`sqe-cli` as a process without a terminal: exit codes, pipes, errors, scripts."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from cli_fakes import FAKE_CLI

from sqe_core import __version__
from sqe_core.cli.main import main


def test_execute_writes_the_sample(run_cli: Any) -> None:
    done = run_cli("-e", "SELECT 1 AS one")
    assert (done.returncode, done.stdout, done.stderr) == (0, "one\n-----\n  1\n(1 row)\n", "")


def test_statements_are_separated_by_semicolons_and_execute_repeats(run_cli: Any) -> None:
    done = run_cli("-f", "csv", "-e", "SELECT 1; SELECT 2;", "--execute", "SELECT 3")
    assert done.stdout == "n\n1\nn\n2\nn\n3\n"


def test_standard_input_is_a_script(run_cli: Any) -> None:
    done = run_cli("-f", "tsv", script="-- first\nSELECT 1;\n\n.format json\nSELECT 2;\nSET FORMAT csv;\nSELECT 3\n")
    assert done.stdout == 'n\n1\n[\n{"n": 2}\n]\nn\n3\n'
    assert done.stderr == ""


def test_nothing_to_do_is_all_right_and_opens_nothing(run_cli: Any) -> None:
    assert run_cli(script="").returncode == 0
    done = run_cli("-e", " -- nothing\n /* at all */ ;")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_files_and_statements_run_in_their_order(run_cli: Any, tmp_path: Path) -> None:
    (tmp_path / "two.sql").write_text("\ufeffSELECT 2;\n", encoding="utf-8")
    done = run_cli("-f", "csv", "-e", "SELECT 1", "--file", "two.sql", "-e", "SELECT 3")
    assert done.stdout == "n\n1\nn\n2\nn\n3\n"


def test_a_failing_statement_does_not_stop_the_others(run_cli: Any) -> None:
    done = run_cli("-f", "csv", "-e", "NONSENSE here; SELECT 2")
    assert done.returncode == 1
    assert done.stdout == "n\n2\n"
    assert done.stderr.splitlines() == [
        "USER_ERROR SYNTAX_ERROR: line 1:1: mismatched input NONSENSE",
        "  1 | NONSENSE here; SELECT 2",
        "    | ^",
    ]


@pytest.mark.parametrize(
    ("format", "some"), [("csv", "n\n0\n"), ("json", '[\n{"n": 0}\n'), ("tsv", "n\n0\n"), ("table", None)]
)
def test_what_ends_before_its_first_row_writes_nothing(run_cli: Any, format: str, some: str | None) -> None:
    done = run_cli("-f", format, "-e", "FAIL AFTER 0")
    assert (done.returncode, done.stdout) == (1, "")
    assert "Division by zero" in done.stderr
    if some is not None:
        assert run_cli("-f", format, "-e", "FAIL AFTER 1").stdout == some


def test_stop_on_error_stops(run_cli: Any) -> None:
    done = run_cli("--stop-on-error", "-f", "csv", "-e", "SELECT 1; NONSENSE; SELECT 2", "-e", "SELECT 3")
    assert (done.returncode, done.stdout) == (1, "n\n1\n")


def test_an_error_points_into_the_script(run_cli: Any, tmp_path: Path) -> None:
    (tmp_path / "s.sql").write_text("SELECT 1;\n\n  SELECT 2; MISSING\torderz here;\n")
    done = run_cli("--file", "s.sql")
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "USER_ERROR TABLE_NOT_FOUND: s.sql, line 3:21: Table 'orderz' does not exist",
        "  3 |   SELECT 2; MISSING orderz here;",
        "    |                     ^",
        'Hint: did you mean "orders"?',
    ]


def test_raw_errors_are_one_line_for_machines(run_cli: Any) -> None:
    done = run_cli("--raw-errors", "-e", "MISSING orderz")
    assert (done.returncode, done.stderr) == (1, "TABLE_NOT_FOUND: Table 'orderz' does not exist\n")


def test_a_bug_is_told_and_the_script_goes_on(run_cli: Any) -> None:
    done = run_cli("-f", "csv", "-e", "BOOM; SELECT 2")
    assert (done.returncode, done.stdout) == (1, "n\n2\n")
    assert done.stderr.startswith("INTERNAL_ERROR GENERIC_INTERNAL_ERROR: unexpected RuntimeError: a bug\n")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("file", "sentence"),
    [("nowhere.sql", "cannot read nowhere.sql: No such file or directory"), (".", ". is a folder, not a script")],
)
def test_a_script_that_cannot_be_read_is_wrong_usage(run_cli: Any, file: str, sentence: str) -> None:
    done = run_cli("--file", file, script="SELECT 1")
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"sqe-cli: {sentence}\n")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("--no-such-option", "unknown argument '--no-such-option'"),
        ("'SELECT 1'", "unknown argument 'SELECT 1'; a statement is given with -e, a script with --file"),
        (
            "-f load.sql",
            "argument -f/--format: 'load.sql' is no format (table, csv, tsv, json, vertical, markdown, parquet)",
        ),
        ("-f xml", "argument -f/--format: invalid choice: 'xml'"),
        ("--catalog lake", "--catalog 'lake': write it as NAME=PATH"),
        ("--catalog iceberg=x", "--catalog 'iceberg=x': 'iceberg' is a catalog that SQE has already"),
        ("--catalog a=x --catalog A=y", "--catalog 'A=y': 'a' is given twice"),
        ("--memory-limit much", "--memory-limit 'much' is no size; write it like 512MB or 2GB"),
        ("--memory --warehouse w", "--memory keeps nothing, so it cannot be used with --warehouse"),
        ("--port 70000", "argument -p/--port: '70000' is no port number"),
        ("-e", "argument -e/--execute: expected one argument"),
        ("--protocol http -e 'SELECT 1'", "--protocol http is not built yet: this version of SQE"),
        ("--catalog-backend glue", "--catalog-backend mounts an AWS catalog, which this version of SQE"),
        ("--catalog-warehouse arn", "--catalog-warehouse mounts an AWS catalog, which this version of SQE"),
        ("--region eu-west-1", "--region mounts an AWS catalog, which this version of SQE"),
        ("--catalog-name aws", "--catalog-name mounts an AWS catalog, which this version of SQE"),
    ],
)
def test_wrong_usage_is_one_sentence_and_opens_nothing(
    capsys: pytest.CaptureFixture[str], arguments: str, sentence: str
) -> None:
    assert main(shlex.split(arguments), lambda *_: pytest.fail("a backend was opened")) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith(f"sqe-cli: {sentence}")
    assert told.err.count("\n") == 1


def test_embedded_and_a_server_exclude_each_other(run_cli: Any) -> None:
    done = run_cli("--embedded", "--host", "h", "-e", "SELECT 1")
    assert done.returncode == 2
    assert "exclude each other" in done.stderr


def test_the_user_of_the_environment_does_not_ask_for_a_server(run_cli: Any) -> None:
    assert run_cli("-e", "SELECT 1", SQE_USER="root").returncode == 0


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"SELECT '\xff';", "standard input is no UTF-8 text: byte 0xff at 8"),
        (b"SELECT 1;\0", "standard input is no text: it has a NUL character at 9"),
    ],
)
def test_binary_input_is_refused(run_cli: Any, data: bytes, sentence: str) -> None:
    done = run_cli(script=data)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"sqe-cli: {sentence}\n")


def test_an_endless_script_is_refused() -> None:
    with Path("/dev/zero").open("rb") as endless:
        done = subprocess.run(FAKE_CLI, stdin=endless, capture_output=True, timeout=60, check=False, text=True)
    assert done.returncode == 2
    assert "standard input is larger than 64 MiB" in done.stderr


def test_a_missing_file_leaves_nothing_half_done(run_cli: Any) -> None:
    done = run_cli("-e", "SELECT 1", "--file", "nowhere.sql")
    assert (done.returncode, done.stdout) == (2, "")


def test_colours_and_progress_stay_away_from_pipes(run_cli: Any) -> None:
    done = run_cli("-e", "NONSENSE; SELECT 1", TERM="xterm-256color")
    assert "\x1b" not in done.stdout + done.stderr
    assert "\r" not in done.stdout + done.stderr


def test_output_is_utf8_whatever_the_locale(run_cli: Any) -> None:
    done = run_cli("-e", "UNKNÖWN", LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
    assert "UNKNÖWN" in done.stderr


def test_version_and_help_are_quick() -> None:
    for argument, expected in (("--version", f"sqe-cli {__version__}\n"), ("--help", "usage: sqe-cli")):
        code = (
            "import sys; from sqe_core.cli.main import main\n"
            f"try: main([{argument!r}])\nexcept SystemExit as e: assert not e.code\n"
            "heavy = {'pyarrow', 'prompt_toolkit', 'sqlglot', 'pygments', 'rich', 'py4j'} & set(sys.modules)\n"
            "assert not heavy, heavy"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
        assert done.stdout.startswith(expected)


def test_head_ends_it_quietly() -> None:
    cli = subprocess.Popen(
        [*FAKE_CLI, "-f", "csv", "-e", "COUNT 1000000"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert cli.stdout is not None
    assert cli.stderr is not None
    assert cli.stdout.readline() == b"n\n"
    cli.stdout.close()
    assert cli.wait(30) == 141
    assert cli.stderr.read() == b""
    cli.stderr.close()


def test_a_full_disk_is_told() -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [*FAKE_CLI, "-e", "SELECT 1"], stdout=full, stderr=subprocess.PIPE, timeout=60, check=False, text=True
        )
    assert done.returncode == 1
    assert done.stderr == "sqe-cli: cannot write the output: No space left on device\n"


def start_sleeping(tmp_path: Path, *arguments: str) -> subprocess.Popen[str]:
    """Start a statement that sleeps after its first rows."""
    cli = subprocess.Popen(
        [*FAKE_CLI, "-f", "csv", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "FAKE_CLOSED": str(tmp_path / "closed")},
    )
    assert cli.stdout is not None
    # Line by line: `communicate` would not see what is buffered here already.
    assert [cli.stdout.readline() for _ in range(4)] == ["n\n", "0\n", "1\n", "2\n"]
    return cli


def test_ctrl_c_cancels_and_ends_a_script(tmp_path: Path) -> None:
    cli = start_sleeping(tmp_path, "-e", "SLEEP AFTER 3; SELECT 2")
    cli.send_signal(signal.SIGINT)
    out, err = cli.communicate(timeout=30)
    assert cli.returncode == 130
    assert out == ""
    assert err == "USER_ERROR QUERY_CANCELLED: The statement was cancelled\n"
    assert (tmp_path / "closed").exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_termination_closes_the_backend(tmp_path: Path, number: signal.Signals) -> None:
    cli = start_sleeping(tmp_path, "-e", "SLEEP AFTER 3; SELECT 2")
    cli.send_signal(number)
    out, err = cli.communicate(timeout=30)
    assert (cli.returncode, out, err) == (143, "", "")
    assert (tmp_path / "closed").exists()


def test_json_of_a_script_is_an_array_per_statement(run_cli: Any) -> None:
    done = run_cli("-f", "json", "-e", "SELECT 1; CREATE TABLE t; COUNT 3")
    decoder = json.JSONDecoder()
    first, end = decoder.raw_decode(done.stdout)
    second, _ = decoder.raw_decode(done.stdout[end:].lstrip())
    assert (first, second) == ([{"n": 1}], [{"n": 0}, {"n": 1}, {"n": 2}])


def test_a_large_result_is_not_held_in_memory(run_cli: Any) -> None:
    # Not `getrusage`: its peak is inherited from the process that started this one, here the whole test run.
    limit = (
        "import re, sys; sys.argv = sys.argv[1:]; sys.path.insert(0, sys.argv[0]);"
        "from cli_fakes import FakeBackend; from sqe_core.cli.main import main;"
        "code = main(['-e', 'COUNT 3000000'], lambda options: FakeBackend());"
        "peak = re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1];"
        "print(peak, file=sys.stderr); sys.exit(code)"
    )
    folder = os.path.dirname(FAKE_CLI[1])
    done = subprocess.run([sys.executable, "-c", limit, folder], capture_output=True, timeout=120, check=True)
    assert done.stdout.count(b"\n") == 3_000_003
    assert int(done.stderr) < 200_000, "kilobytes; the text alone has 23 MB, as Python objects it would be 200 MB"
