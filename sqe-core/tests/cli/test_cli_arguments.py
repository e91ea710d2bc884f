"""The command line, read."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqe_core.catalog.information_schema import SCHEMAS
from sqe_core.cli.arguments import FORMATS, Source, build_parser, parse
from sqe_core.cli.commands import COMMANDS
from sqe_core.cli.completion import INFORMATION_SCHEMA_TABLES
from sqe_core.cli.exit_codes import ExitCode, UsageError

PAGE = (Path(__file__).parents[3] / "docs" / "cli.md").read_text(encoding="utf-8")


def test_without_arguments_the_warehouse_of_the_home_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/somebody")
    options = parse([])
    assert options.warehouse == Path("/home/somebody/.sqe/warehouse")
    assert (options.sources, options.format, options.catalogs) == ((), "table", {})
    assert (options.in_memory, options.memory_limit) == (False, None)
    assert not options.stop_on_error
    assert not options.raw_errors


def test_every_option_of_the_embedded_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    line = (
        "--embedded --warehouse ~/w --catalog Lake=~/lake --catalog raw=/r=1 --memory-limit 1.5GB -f JSON"
        " --stop-on-error --raw-errors -e A --file b.sql --execute C"
    )
    options = parse(line.split())
    assert options.warehouse == tmp_path / "w"
    assert options.catalogs == {"lake": tmp_path / "lake", "raw": Path("/r=1")}
    assert options.memory_limit == "1.5GB"
    assert options.format == "json"
    assert options.stop_on_error
    assert options.raw_errors
    assert options.sources == (
        Source(kind="execute", value="A"),
        Source(kind="file", value="b.sql"),
        Source(kind="execute", value="C"),
    )


def test_memory() -> None:
    assert parse(["--memory"]).in_memory


def test_options_are_not_abbreviated() -> None:
    with pytest.raises(UsageError, match="unknown argument '--stop'"):
        parse(["--stop"])


def test_a_warehouse_that_is_a_file(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(UsageError, match="this is a file, not a folder"):
        parse(["--warehouse", str(file)])


def test_the_page_names_every_option_command_format_and_exit_code() -> None:
    options = {text for action in build_parser()._actions for text in action.option_strings} - {"-h"}
    missing = {text for text in options if text not in PAGE}
    missing |= {name for command in COMMANDS for name in command.names if f"`{name}" not in PAGE}
    missing |= {name for name in FORMATS if f"`{name}`" not in PAGE}
    missing |= {str(code.value) for code in ExitCode if f"| {code.value} |" not in PAGE}
    assert not missing


def test_a_statement_as_psql_takes_it() -> None:
    assert parse(["-c", "SELECT 1", "-e", "SELECT 2"]).sources == (
        Source(kind="execute", value="SELECT 1"),
        Source(kind="execute", value="SELECT 2"),
    )


def test_completion_knows_the_tables_that_every_catalog_has() -> None:
    assert set(INFORMATION_SCHEMA_TABLES) == set(SCHEMAS)
