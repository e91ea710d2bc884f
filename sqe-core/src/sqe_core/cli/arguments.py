"""The command line of `sqe-cli` (docs/cli.md). Imports only the standard library, so that --help is quick."""

from __future__ import annotations

import argparse
import ipaddress
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NoReturn

from sqe_core import __version__
from sqe_core.cli.exit_codes import UsageError

FORMATS = ("table", "csv", "tsv", "json", "vertical", "markdown", "parquet")
DEFAULT_WAREHOUSE = "~/.sqe/warehouse"
RESERVED_CATALOGS = ("iceberg", "system")
DEFAULT_HOST = "localhost"
DEFAULT_PORT = 50051

# What connects to a server.
_OF_SERVER = (
    *("host", "port", "protocol", "user", "token", "tls", "tls_ca", "tls_cert", "tls_key", "insecure", "schema"),
    *("login", "logout", "issuer", "client_id", "scope", "audience"),
)
_SERVER = """\
The password comes from SQE_PASSWORD, else it is asked for.
Without a user and a token the login that --login has kept is used, else you sign in anonymously."""
_EPILOG = """\
Without -e, --file or a script on standard input an interactive shell opens; .help lists its commands.
Exit codes: 0 all right, 1 a statement failed, 2 the command line or a script file cannot be used,
130 interrupted with Ctrl-C, 141 the reader of the output went away, 143 terminated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One text to run: the argument of an -e, or a --file ("-" is standard input)."""

    kind: Literal["execute", "file"]
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerOptions:
    """Which server, how to reach it, and who is to sign in. What the environment says is read at sign-in."""

    host: str = DEFAULT_HOST
    port: int = DEFAULT_PORT
    user: str | None = None
    token: str | None = field(default=None, repr=False)
    tls: bool = False
    check_certificate: bool = True
    ca_file: Path | None = None
    cert_file: Path | None = None
    key_file: Path | None = None
    catalog: str | None = None
    schema: str | None = None
    login: Literal["auto", "browser", "device"] | None = None
    logout: bool = False
    issuer: str | None = None
    client_id: str | None = None
    scope: str | None = None
    audience: str | None = None

    @property
    def address(self) -> str:
        """Host and port as people and gRPC write them."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_local(self) -> bool:
        """Whether nothing leaves this machine."""
        try:
            # As an address, and not by its beginning: 127.0.0.1.example.com is somebody else's machine.
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the command line asks for, checked."""

    sources: tuple[Source, ...]
    format: str
    stop_on_error: bool
    raw_errors: bool
    warehouse: Path
    catalogs: Mapping[str, Path]
    in_memory: bool
    memory_limit: str | None
    server: ServerOptions | None = None
    """None runs the engine in this process."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(message)


class _AppendSource(argparse.Action):
    """Keeps the order in which -e and --file were given."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        if self.dest == "file":
            source = Source(kind="file", value=str(values))
        else:
            source = Source(kind="execute", value=_statement_text(str(values)))
        namespace.sources = [*(namespace.sources or ()), source]


def build_parser() -> argparse.ArgumentParser:
    """Describe every option; those that are not built yet are refused by `parse`."""
    parser = _Parser(
        prog="sqe-cli",
        description="SQL on Iceberg lakehouses, in this process or on an SQE server.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.set_defaults(sources=None)
    parser.add_argument("--version", action="version", version=f"sqe-cli {__version__}")

    run = parser.add_argument_group("what to run")
    run.add_argument(
        "-e",
        "--execute",
        metavar="SQL",
        action=_AppendSource,
        help="run these statements, separated by semicolons, and leave; repeatable",
    )
    run.add_argument("-c", dest="execute", metavar="SQL", action=_AppendSource, help="the same as -e")
    run.add_argument(
        "--file",
        metavar="SCRIPT",
        action=_AppendSource,
        help="run a script file and leave; - is standard input; repeatable",
    )
    run.add_argument(
        "-f",
        "--format",
        type=_format,
        choices=FORMATS,
        default="table",
        help="how results are written (default: table)",
    )
    run.add_argument("--stop-on-error", action="store_true", help="end a script at its first failing statement")
    run.add_argument("--raw-errors", action="store_true", help="errors as one line `CODE: message`")

    embedded = parser.add_argument_group("embedded engine (the default)")
    embedded.add_argument("--embedded", action="store_true", help="run the engine in this process")
    embedded.add_argument(
        "--warehouse",
        metavar="DIR",
        help=f"folder of the catalog `iceberg`, made when it is missing (default: {DEFAULT_WAREHOUSE})",
    )
    embedded.add_argument(
        "--catalog",
        metavar="NAME=PATH",
        action="append",
        default=[],
        help="mount another warehouse folder under that name; repeatable. With a server: NAME, the catalog to begin in",
    )
    embedded.add_argument("--memory", action="store_true", help="keep nothing after the end")
    embedded.add_argument("--memory-limit", metavar="SIZE", help="memory of the engine, such as 2GB (default: 1GB)")
    embedded.add_argument("--catalog-backend", choices=("glue", "s3tables"), help="mount an AWS catalog, read only")
    embedded.add_argument("--catalog-warehouse", metavar="ARN_OR_URL", help="its warehouse or table bucket")
    embedded.add_argument("--region", metavar="REGION", help="its AWS region")
    embedded.add_argument("--catalog-name", metavar="NAME", help="its name in SQL")

    remote = parser.add_argument_group("server; any of these connects to one", _SERVER)
    remote.add_argument("-H", "--host", metavar="HOST", help="host of the server (default: localhost)")
    remote.add_argument("-p", "--port", metavar="PORT", type=_port, help="port of the server (default: 50051)")
    remote.add_argument("--protocol", choices=("flight", "http"), help="Arrow Flight SQL, or Trino's HTTP protocol")
    remote.add_argument("-u", "--user", "--username", metavar="USER", dest="user", help="user name, also from SQE_USER")
    remote.add_argument("--token", metavar="TOKEN", help="bearer token, also from SQE_TOKEN")
    remote.add_argument("--tls", action="store_true", help="encrypt the connection, and check who the server is")
    remote.add_argument("--tls-ca", metavar="FILE", help="encrypt; the certificate authorities to trust, as PEM")
    remote.add_argument("--tls-cert", metavar="FILE", help="encrypt; the certificate to show to the server, as PEM")
    remote.add_argument("--tls-key", metavar="FILE", help="its private key (default: in the same file)")
    remote.add_argument("--insecure", action="store_true", help="encrypt, but do not check the server's certificate")
    remote.add_argument("--schema", metavar="SCHEMA", help="the schema to begin in")
    login = parser.add_argument_group("login with an identity provider")
    login.add_argument(
        "--login",
        nargs="?",
        const="auto",
        choices=("auto", "browser", "device"),
        help="log in with your browser, or with a code on another device, and keep the login for this server",
    )
    login.add_argument(
        "--logout", action="store_true", help="revoke and delete the kept login of this server, and leave"
    )
    login.add_argument("--issuer", metavar="URL", help="the identity provider, also from SQE_OIDC_ISSUER")
    login.add_argument("--client-id", metavar="ID", help="what sqe-cli is called there, also from SQE_OIDC_CLIENT_ID")
    login.add_argument("--scope", metavar="SCOPES", help="what is asked for, also from SQE_OIDC_SCOPE")
    login.add_argument("--audience", metavar="NAME", help="whom the token is for, also from SQE_OIDC_AUDIENCE")
    return parser


def parse(arguments: Sequence[str]) -> Options:
    """Read the command line; raise UsageError with one clear sentence when it cannot be done."""
    known, rest = build_parser().parse_known_args(arguments)
    if rest:
        hint = "" if rest[0].startswith("-") else "; a statement is given with -e, a script with --file"
        raise UsageError(f"unknown argument {rest[0]!r}{hint}")
    _refuse_what_is_not_built(known)
    server = _server(known)
    if known.memory and known.warehouse is not None:
        raise UsageError("--memory keeps nothing, so it cannot be used with --warehouse")
    warehouse = _folder("--warehouse", known.warehouse if known.warehouse is not None else DEFAULT_WAREHOUSE)
    return Options(
        sources=tuple(known.sources or ()),
        format=known.format,
        stop_on_error=known.stop_on_error,
        raw_errors=known.raw_errors,
        warehouse=warehouse,
        catalogs=_catalogs(known.catalog) if server is None else {},
        in_memory=known.memory,
        memory_limit=_size(known.memory_limit),
        server=server,
    )


def _server(known: argparse.Namespace) -> ServerOptions | None:
    """Read the options of a server; None when there is none of them."""
    given = _given(known, _OF_SERVER)
    if not given:
        return None
    for option in _given(known, ("embedded", "warehouse", "memory", "memory_limit")):
        raise UsageError(f"{option} and {given[0]} exclude each other: {given[0]} connects to a server")
    if known.protocol == "http":
        raise UsageError("--protocol http is not built yet: this version of SQE speaks flight to a server")
    exclusive = [("--token", "--user"), ("--insecure", "--tls-ca"), ("--login", "--logout")]
    exclusive += [(one, other) for one in ("--login", "--logout") for other in ("--token", "--user")]
    for one, other in exclusive:
        if one in given and other in given:
            raise UsageError(f"{one} and {other} exclude each other")
    if known.logout and known.sources:
        raise UsageError("--logout leaves at once; it runs no statements")
    if known.tls_key is not None and known.tls_cert is None:
        raise UsageError("--tls-key is the key of --tls-cert")
    return ServerOptions(
        host=_host(known.host),
        port=known.port or DEFAULT_PORT,
        user=_not_empty("--user", known.user),
        token=_not_empty("--token", known.token),
        tls=known.tls or known.insecure or known.tls_ca is not None or known.tls_cert is not None,
        check_certificate=not known.insecure,
        ca_file=_file("--tls-ca", known.tls_ca),
        cert_file=_file("--tls-cert", known.tls_cert),
        key_file=_file("--tls-key", known.tls_key),
        catalog=_start_catalog(known.catalog),
        schema=_not_empty("--schema", known.schema),
        login=known.login,
        logout=known.logout,
        issuer=_not_empty("--issuer", known.issuer),
        client_id=_not_empty("--client-id", known.client_id),
        scope=_not_empty("--scope", known.scope),
        audience=_not_empty("--audience", known.audience),
    )


def _refuse_what_is_not_built(known: argparse.Namespace) -> None:
    for option in _given(known, ("catalog_backend", "catalog_warehouse", "region", "catalog_name")):
        raise UsageError(
            f"{option} mounts an AWS catalog, which this version of SQE cannot do yet;"
            " --catalog NAME=PATH mounts a local warehouse"
        )


def _given(known: argparse.Namespace, names: Sequence[str]) -> list[str]:
    """Return the options that stand on the command line."""
    return [f"--{name.replace('_', '-')}" for name in names if getattr(known, name) not in (None, False)]


def _statement_text(argument: str) -> str:
    """Statements are UTF-8 whatever the locale says, in which Python decodes arguments."""
    try:
        return os.fsencode(argument).decode("utf-8")
    except UnicodeError:
        raise UsageError("the statement of -e is no UTF-8 text") from None


def _host(text: str | None) -> str:
    host = text if text is not None else DEFAULT_HOST
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    if not re.fullmatch(r"[A-Za-z0-9._-]+|[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*(%\w+)?", host, re.ASCII) or (
        re.fullmatch(r"[^:]*:\d+", host)
    ):
        raise UsageError(f"--host {text!r} is no host name or address; the port is given with --port")
    return host


def _not_empty(option: str, text: str | None) -> str | None:
    if text is not None and not text.strip():
        raise UsageError(f"{option} is empty")
    return text


def _file(option: str, text: str | None) -> Path | None:
    known = _not_empty(option, text)
    return Path(known).expanduser() if known is not None else None


def _start_catalog(entries: Sequence[str]) -> str | None:
    if len(entries) > 1:
        raise UsageError("--catalog is given twice; with a server it is the catalog to begin in")
    for entry in entries:
        if "=" in entry:
            raise UsageError(f"--catalog {entry!r}: a server has its own catalogs; NAME alone is the one to begin in")
        return _not_empty("--catalog", entry)
    return None


def _port(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 0 < int(text) < 65536:
        raise argparse.ArgumentTypeError(f"{text!r} is no port number")
    return int(text)


def _format(text: str) -> str:
    if text.lower() not in FORMATS and ("." in text or "/" in text):
        raise argparse.ArgumentTypeError(f"{text!r} is no format ({', '.join(FORMATS)}); a script is run with --file")
    return text.lower()


def _size(text: str | None) -> str | None:
    if text is not None and not re.fullmatch(r"\d+(\.\d+)?\s*([KMGT]?B?)", text, re.IGNORECASE | re.ASCII):
        raise UsageError(f"--memory-limit {text!r} is no size; write it like 512MB or 2GB")
    return text


def _folder(option: str, text: str) -> Path:
    if not text:
        raise UsageError(f"{option} needs a folder")
    try:
        folder = Path(text).expanduser().absolute()
        if folder.exists() and not folder.is_dir():
            raise UsageError(f"{option} {text}: this is a file, not a folder")
    except (OSError, RuntimeError, ValueError) as error:
        raise UsageError(f"{option} {text!r}: {error}") from error
    return folder


def _catalogs(entries: Sequence[str]) -> dict[str, Path]:
    catalogs: dict[str, Path] = {}
    for entry in entries:
        name, equals, path = entry.partition("=")
        if not equals or not path:
            raise UsageError(f"--catalog {entry!r}: write it as NAME=PATH")
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name, re.ASCII):
            raise UsageError(f"--catalog {entry!r}: a name consists of letters, digits and underscores")
        name = name.lower()
        if name in RESERVED_CATALOGS:
            raise UsageError(f"--catalog {entry!r}: {name!r} is a catalog that SQE has already")
        if name in catalogs:
            raise UsageError(f"--catalog {entry!r}: {name!r} is given twice")
        catalogs[name] = _folder(f"--catalog {name}", path)
    return catalogs
