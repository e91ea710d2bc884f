"""The interactive shell, typed at through a pseudo-terminal as a person would."""

from __future__ import annotations

import re
import shlex
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cli_fakes import FAKE_CLI
from testbed.making import each_ended
from testbed.terminal import PtyShell


@pytest.fixture
def begin_shell(tmp_path: Path) -> Iterator[Callable[..., PtyShell]]:
    """Begins a shell, and does not wait for its prompt."""
    yield from each_ended(
        lambda *arguments, command=FAKE_CLI, **options: PtyShell(tmp_path, *arguments, command=command, **options)
    )


@pytest.fixture
def open_shell(begin_shell: Callable[..., PtyShell]) -> Callable[..., PtyShell]:
    def make(*arguments: str, **options: str) -> PtyShell:
        shell = begin_shell(*arguments, **options)
        shell.expect("sqe>")
        return shell

    return make


@pytest.fixture
def shell(open_shell: Callable[..., PtyShell]) -> PtyShell:
    return open_shell()


def test_a_statement_over_several_lines(shell: PtyShell) -> None:
    shell.type("SELECT 1\r")
    shell.expect(r"\.\.\.>")
    shown = shell.run("AS one;", r"\(1 row\)")
    assert "one\n-----\n  1\n(1 row)" in shown
    shell.expect(r"Time: \d+")
    shell.expect("sqe>")


def test_a_semicolon_in_a_string_or_comment_ends_nothing(shell: PtyShell) -> None:
    shell.type("NONSENSE 'a;\r")
    shell.expect(r"\.\.\.>")
    shell.type("' -- ;\r")
    shell.expect(r"\.\.\.>")
    shell.run(";", "SYNTAX_ERROR: line 1:1: mismatched input NONSENSE")


def test_several_statements_on_one_line(shell: PtyShell) -> None:
    shown = shell.run("SELECT 1; SELECT 2;", r"\n2\n\(1 row\)")
    assert "\n1\n(1 row)" in shown


def test_what_is_to_be_noted_is_told(shell: PtyShell) -> None:
    assert "GRANT" in shell.run("GRANT it;", r"Warning: no\\x1b\[31m such role")


@pytest.mark.parametrize("leave", ["\\q\r", "quit\r", "exit\r", "EXIT;\r", ".exit\r", ".quit\r", ".q\r", "\x04"])
def test_leaving(shell: PtyShell, leave: str) -> None:
    shell.type(leave)
    assert shell.end() == 0


def test_a_command_inside_of_a_statement_gets_a_note(shell: PtyShell) -> None:
    shell.type("SELECT 7\r")
    shell.expect(r"\.\.\.>")
    shell.type("\\d\r")
    shell.expect("part of the statement above: end that with ; first")
    shell.expect(r"(?s)sqe>.*?\.\.\.>.*?\.\.\.>")  # drawn again: until then the terminal is not the shell's
    shell.type("\x03")
    shell.expect("sqe>")
    shell.run("SELECT 7;", r"\n7\n\(1 row\)")


def test_ctrl_c_clears_the_line(shell: PtyShell) -> None:
    shell.type("half of a\r")
    shell.expect(r"\.\.\.>")
    shell.type("statement\x03")
    shell.expect("sqe>")
    shell.run("SELECT 7;", r"\n7\n\(1 row\)")


def test_ctrl_c_cancels_the_statement_and_not_the_shell(shell: PtyShell) -> None:
    shell.type("SLEEP; SELECT 5;\r")
    shown = shell.expect("4/10 tasks")
    assert "40%" in shown
    assert "Ctrl-C cancels" in shown
    assert "1,234 rows" in shown
    shell.type("\x03")
    shell.expect("QUERY_CANCELLED")
    assert "\n5\n" not in shell.expect("sqe>"), "what followed on the same line was cancelled too"
    shell.run("SELECT 6;", r"\n6\n\(1 row\)")


def test_an_error_is_coloured_and_points_at_its_place(shell: PtyShell) -> None:
    shell.run("MISSING orderz;", 'Hint: did you mean "orders"\\?')
    assert "\x1b[1;31mUSER_ERROR TABLE_NOT_FOUND\x1b[0m: line 1:9" in shell.raw
    assert "\n    |         ^\n" in shell.text


def test_no_color(open_shell: Callable[..., PtyShell]) -> None:
    shell = open_shell(NO_COLOR="1")
    shell.run("MISSING orderz;", "Hint: did you mean")
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]", shell.raw)


def test_formats(shell: PtyShell) -> None:
    shell.run("\\format json", "sqe>")
    shell.run("SELECT 1;", r'\[\n\{"n": 1\}\n\]\n\(1 row\)')
    shell.run("SET FORMAT csv;", "sqe>")
    shell.run("SELECT 2;", r"\nn\n2\n\(1 row\)")
    shell.run(".format", "Format: csv")
    shell.run(".format xml", "unknown format xml")
    shell.run("\\x", "Format: vertical")
    shell.run("SELECT 3;", r"-\[ 1 \]\n?.*n \| 3")


def test_timer(shell: PtyShell) -> None:
    shell.run(".timer off", "sqe>")
    assert "Time" not in shell.run("SELECT 1;", "sqe>")
    shell.run("\\timing", "Timer: on")
    shell.run("SELECT 1;", "Time: ")


def test_tab_completes_names(shell: PtyShell) -> None:
    shell.run("SELECT 1;", r"\(1 row\)(?s:.*)sqe>")
    shell.type("NONSENSE FROM ord\t")
    shell.expect("ers")
    shell.type(";\r")
    shell.expect(r"1 \| NONSENSE FROM orders;")


def test_history_is_kept_without_secrets(open_shell: Callable[..., PtyShell], tmp_path: Path) -> None:
    first = open_shell()
    first.run("SELECT 41;", r"\(1 row\)")
    first.run("CREATE SECRET s (TYPE bearer, TOKEN 'hush');", "CREATE TABLE")
    first.run("NONSENSE 'password';", r"SYNTAX_ERROR(?s:.*)sqe>")
    first.type("\x04")
    assert first.end() == 0
    file = tmp_path / ".sqe_history"
    assert "SELECT 41;" in file.read_text()
    assert not re.search("hush|password", file.read_text())
    assert stat.S_IMODE(file.stat().st_mode) == 0o600

    second = open_shell()
    second.type("\x1b[A")
    second.expect("SELECT 41;")
    second.type("\r")
    second.expect(r"\n41\n\(1 row\)")


def test_a_home_that_cannot_be_written_is_no_obstacle(open_shell: Callable[..., PtyShell], tmp_path: Path) -> None:
    shell = open_shell(HOME=str(tmp_path / "missing"))
    shell.run("SELECT 1;", r"\(1 row\)")


def test_read_runs_a_script_that_cannot_read_another(shell: PtyShell, tmp_path: Path) -> None:
    script = tmp_path / "s.sql"
    script.write_text("SELECT 11;\n.read other.sql\n\nNONSENSE;\n.exit\nSELECT 424242;\n")
    shown = shell.run(f".read {script}", "mismatched input NONSENSE")
    assert "\n11\n(1 row)" in shown
    assert "scripts cannot be read from scripts" in shown
    assert "s.sql, line 4:1" in shown
    assert "424242" not in shell.expect("sqe>"), ".exit ends the script, and only the script"
    shell.run("\\i nowhere.sql", "cannot read nowhere.sql: No such file or directory")


def test_the_editor_gives_its_text_back_to_the_prompt(open_shell: Callable[..., PtyShell], tmp_path: Path) -> None:
    editor = tmp_path / "editor"
    editor.write_text("#!/bin/sh\nsed -i 's/1/23/' \"$1\"\n")
    editor.chmod(0o755)
    shell = open_shell(EDITOR=str(editor))
    shell.run("SELECT 1;", r"\(1 row\)")
    shell.run("\\e", "SELECT 23;")
    shell.type("\r")
    shell.expect(r"\n23\n\(1 row\)")


def test_long_results_go_through_the_pager(open_shell: Callable[..., PtyShell], tmp_path: Path) -> None:
    pager = tmp_path / "pager"
    pager.write_text("#!/bin/sh\nhead -n 3\necho paged\n")
    pager.chmod(0o755)
    shell = open_shell(PAGER=str(pager))
    assert "paged" not in shell.run("COUNT 5;", r"\(5 rows\)")
    shell.run("COUNT 100000;", "paged")
    # The pager left early: the statement is cancelled and the shell goes on.
    shell.run("SELECT 8;", r"\n8\n\(1 row\)")


def test_help_lists_the_commands(shell: PtyShell) -> None:
    shown = shell.run(".help", "Ctrl-D leaves")
    for command in (".tables", ".schema", ".summarize", ".catalogs", ".read", ".timer", ".format", "\\q"):
        assert command in shown


def test_the_prompt_is_there_before_the_engine(begin_shell: Callable[..., PtyShell]) -> None:
    slow = "import sys, time; from sqe_core.cli.main import main; sys.exit(main(None, lambda o: time.sleep(60)))"
    shell = begin_shell(command=[FAKE_CLI[0], "-c", slow])
    began = time.monotonic()
    shell.expect("sqe>")
    assert time.monotonic() - began < 5, "seconds here, for slow machines; 0.4 on a quiet one"
    shell.expect("the engine is starting")
    shell.type("sel\x03")
    shell.expect("sqe>")


def test_a_warehouse_that_cannot_be_opened_ends_the_shell(begin_shell: Callable[..., PtyShell]) -> None:
    broken = (
        "import sys; from sqe_core.cli.main import main; from sqe_core.spi.errors import ConfigError\n"
        "def fail(options): raise ConfigError(('no such warehouse',))\n"
        "sys.exit(main(None, fail))"
    )
    shell = begin_shell(command=[FAKE_CLI[0], "-c", broken])
    assert shell.end() == 2
    assert "sqe-cli: no such warehouse\n" in shell.text


def test_a_statement_typed_before_the_warehouse_failed_ends_the_shell_too(begin_shell: Callable[..., PtyShell]) -> None:
    broken = (
        "import sys, time; from sqe_core.cli.main import main; from sqe_core.spi.errors import ConfigError\n"
        "def fail(options): time.sleep(1.5); raise ConfigError(('no such warehouse',))\n"
        "sys.exit(main(None, fail))"
    )
    shell = begin_shell(command=[FAKE_CLI[0], "-c", broken])
    shell.expect("sqe>")
    shell.type("SELECT 1;\r")
    assert shell.end() == 2
    assert "sqe-cli: no such warehouse\n" in shell.text
    assert "unexpected" not in shell.text


def test_the_prompt_stays_on_the_terminal_when_results_go_to_a_file(
    begin_shell: Callable[..., PtyShell], tmp_path: Path
) -> None:
    command = ["/bin/sh", "-c", f"exec {shlex.join(FAKE_CLI)} -f csv > '{tmp_path}/out.csv'"]
    shell = begin_shell(command=command)
    shell.expect("sqe>")
    shell.type("SELECT 1;\r")
    shell.expect("Time:")
    shell.type("\\q\r")
    assert shell.end() == 0
    assert (tmp_path / "out.csv").read_text() == "n\n1\n"


def test_execute_on_a_terminal_draws_progress_and_removes_it(begin_shell: Callable[..., PtyShell]) -> None:
    shell = begin_shell("-e", "SLEEP")
    shell.expect("Ctrl-C cancels")
    shell.type("\x03")
    assert shell.end() == 130
    assert shell.raw.rindex("\x1b[K") < shell.raw.rindex("QUERY_CANCELLED")
