"""The command line, read."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sqe_core.catalog.information_schema import SCHEMAS
from sqe_core.cli.arguments import FORMATS, ServerOptions, Source, build_parser, parse
from sqe_core.cli.exit_codes import ExitCode, UsageError
from sqe_core.cli.remote.login import Login, login_of
from sqe_core.cli.shell.commands import COMMANDS
from sqe_core.cli.shell.completion import INFORMATION_SCHEMA_TABLES

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


def test_every_option_of_a_server() -> None:
    line = "-H db.example -p 4 --protocol flight -u ann --tls --tls-ca /ca --tls-cert /c --tls-key /k --schema s"
    server = parse([*line.split(), "--catalog", "Lake"]).server
    assert server == ServerOptions(
        host="db.example",
        port=4,
        user="ann",
        tls=True,
        ca_file=Path("/ca"),
        cert_file=Path("/c"),
        key_file=Path("/k"),
        catalog="Lake",
        schema="s",
    )
    assert server.address == "db.example:4"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("-H ::1", ServerOptions(host="::1")),
        ("-H [::1]", ServerOptions(host="::1")),
        ("--token t", ServerOptions(token="t")),
        ("--tls", ServerOptions(tls=True)),
        ("--insecure", ServerOptions(tls=True, check_certificate=False)),
        ("--tls-ca c", ServerOptions(tls=True, ca_file=Path("c"))),
        ("--protocol flight", ServerOptions()),
        ("--username u", ServerOptions(user="u")),
        ("--schema s", ServerOptions(schema="s")),
        ("-e x", None),
    ],
)
def test_any_option_of_a_server_connects_to_one(line: str, expected: ServerOptions | None) -> None:
    assert parse(line.split()).server == expected


def test_the_environment_alone_does_not_connect(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SQE_USER", "SQE_PASSWORD", "SQE_TOKEN"):
        monkeypatch.setenv(name, "x")
    assert parse([]).server is None


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("--protocol http", "http is not built yet"),
        ("--host h:5", "is no host name or address; the port is given with --port"),
        ("--host grpc://h", "is no host name"),
        ("--port 70000", "is no port number"),
        ("--port 1 --warehouse w", "--warehouse and --port exclude each other"),
        ("--host h --memory-limit 2GB", "--memory-limit and --host exclude each other"),
        ("--token t --user u", "--token and --user exclude each other"),
        ("--insecure --tls-ca c", "--insecure and --tls-ca exclude each other"),
        ("--tls-key k", "--tls-key is the key of --tls-cert"),
        ("--host h --catalog a=b", "NAME alone is the one to begin in"),
        ("--host h --catalog a --catalog b", "is given twice"),
        ("--token=", "--token is empty"),
    ],
)
def test_what_a_server_cannot_be_given(line: str, message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        parse(line.split())


def test_secrets_do_not_show_in_what_is_printed() -> None:
    assert "hunter2" not in repr(parse(["--token", "hunter2"]))
    login = login_of(ServerOptions(user="ann"), {"SQE_PASSWORD": "hunter2"}, lambda prompt: "")
    assert "hunter2" not in repr(login)
    assert "aHVudGVyMg" not in repr(login)


@pytest.mark.parametrize(
    ("server", "environ", "who", "header"),
    [
        (ServerOptions(), {"SQE_PASSWORD": "p"}, "anonymously", None),
        (ServerOptions(), {"SQE_USER": "u", "SQE_PASSWORD": ""}, "as u", "Basic dTo="),
        (ServerOptions(), {"SQE_USER": "u", "SQE_TOKEN": "t"}, "with a token", "Bearer t"),
        (ServerOptions(), {"SQE_TOKEN": "", "SQE_USER": ""}, "anonymously", None),
        (ServerOptions(user="u"), {"SQE_TOKEN": "t", "SQE_PASSWORD": "ä"}, "as u", "Basic dTrDpA=="),
        (ServerOptions(token=" t "), {"SQE_USER": "u"}, "with a token", "Bearer t"),
        (ServerOptions(user="u"), {}, "as u", "Basic dTphc2tlZA=="),
    ],
)
def test_who_signs_in(server: ServerOptions, environ: dict[str, str], who: str, header: str | None) -> None:
    assert login_of(server, environ, lambda prompt: "asked") == Login(who=who, header=header)


@pytest.mark.parametrize("server", [ServerOptions(token="a\nb"), ServerOptions(token="ä"), ServerOptions(user="a:b")])
def test_what_cannot_be_sent_as_a_login(server: ServerOptions) -> None:
    with pytest.raises(UsageError):
        login_of(server, {"SQE_PASSWORD": ""}, lambda prompt: "")


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
