"""Addresses of SQL catalogs as people write them, turned into what JDBC wants."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from sqe_core.spi.errors import ConfigError, ErrorCode, UserError
from sqe_core.spi.identity import Secret

# The key is what stands in the address, the value JDBC's word and the jar lock's group of the driver.
_SERVERS = {"postgresql": "postgresql", "postgres": "postgresql", "mysql": "mysql"}
# The SQLite driver is always on the class path. The pragmas let readers and a writer live side by side.
_SQLITE_PRAGMAS = "busy_timeout=30000&journal_mode=WAL"
# Drivers take much more, such as names of classes to load and of files to read and write.
_ATTACHED_PARAMETERS = frozenset(
    (
        *("applicationname", "connecttimeout", "currentschema", "logintimeout", "servertimezone", "sockettimeout"),
        *("ssl", "sslmode", "targetservertype", "tcpkeepalive", "usessl"),
    )
)
_HOST = r"([A-Za-z0-9_.-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?"
_ATTACHED_PLACE = re.compile(rf"//{_HOST}(,{_HOST})*/[A-Za-z0-9_$.-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class JdbcAddress:
    """A JDBC address without the login, which stands beside it; `public` is for logs and lineage."""

    url: str
    public: str
    user: str | None = None
    password: Secret | None = None
    jars: tuple[str, ...] = ()


def sqlite_url(path: str) -> str:
    if "?" in path:
        raise ConfigError((f"the SQLite driver cannot open a path with a question mark: {path}",))
    return f"jdbc:sqlite:{path}?{_SQLITE_PRAGMAS}"


def parse_jdbc_url(text: str) -> JdbcAddress:
    """Read `sqlite:…`, `postgres(ql)://…` or `mysql://…`, with or without `jdbc:` and SQLAlchemy's `+driver`.

    Example:
        >>> parse_jdbc_url("postgres://ann:secret@db:5432/lake").url
        'jdbc:postgresql://db:5432/lake'
    """
    plain = text.removeprefix("jdbc:")
    scheme, _, rest = plain.partition(":")
    scheme = scheme.partition("+")[0].lower()
    if scheme == "sqlite":
        # SQLAlchemy: three slashes before a relative path, four before an absolute one. JDBC: none.
        path = rest.removeprefix("///").partition("?")[0]
        if not path:
            raise ConfigError(("the address of a SQLite catalog names its file: sqlite:/path/to/catalog.db",))
        return JdbcAddress(url=sqlite_url(path), public=f"sqlite:{path}")
    if scheme not in _SERVERS:
        # The address itself may hold a password: it is not repeated.
        raise ConfigError(("the address of a SQL catalog begins with sqlite:, postgresql:// or mysql://",))
    return _server(_SERVERS[scheme], urlsplit(f"{scheme}:{rest}"))


def check_attached_url(text: str) -> None:
    """Raise unless an address of ATTACH is one that means a host and a database, or a file, and nothing else.

    Raises:
        UserError: it does not. The address itself may hold a password: no message repeats it.
    """
    try:
        address = parse_jdbc_url(text)
        place, _, query = address.url.removeprefix("jdbc:").partition(":")[2].partition("?")
        names = {name.lower() for name, _ in parse_qsl(query, keep_blank_values=True, separator="&")}
    except (ConfigError, ValueError) as error:
        faults = error.faults if isinstance(error, ConfigError) else ("this is no address of a SQL catalog",)
        raise UserError("; ".join(faults), code=ErrorCode.INVALID_ARGUMENTS) from None
    if address.public.startswith("sqlite:"):
        # The driver takes :memory:, :resource:http://… and file:… for something else than the name of a file.
        if not re.match(r"[\w.~/]", place) or place.lower().startswith("file:"):
            raise UserError("A SQLite catalog is a file: sqlite:/path/to/catalog.db", code=ErrorCode.INVALID_ARGUMENTS)
        return
    if not _ATTACHED_PLACE.fullmatch(place):
        raise UserError(
            "The address names hosts and a database: postgresql://host:5432/database", code=ErrorCode.INVALID_ARGUMENTS
        )
    if not names <= _ATTACHED_PARAMETERS:
        raise UserError(
            "The address has a parameter that ATTACH does not take",
            code=ErrorCode.INVALID_ARGUMENTS,
            hint="it takes " + ", ".join(sorted(_ATTACHED_PARAMETERS)) + "; the login belongs into a secret",
        )


def _server(driver: str, parts: SplitResult) -> JdbcAddress:
    if not parts.hostname or not parts.path.strip("/"):
        raise ConfigError((f"the address of a {driver} catalog names host and database: {driver}://host/database",))
    place = f"//{parts.netloc.rpartition('@')[2]}{parts.path}"
    query = f"?{parts.query}" if parts.query else ""
    return JdbcAddress(
        url=f"jdbc:{driver}:{place}{query}",
        public=f"{driver}:{place}",
        user=unquote(parts.username) if parts.username else None,
        password=Secret(unquote(parts.password)) if parts.password else None,
        jars=(driver,),
    )
