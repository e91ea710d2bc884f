"""Addresses of SQL catalogs as people write them, turned into what JDBC wants."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import SplitResult, unquote, urlsplit

from sqe_core.spi.errors import ConfigError
from sqe_core.spi.identity import Secret

# The key is what stands in the address, the value JDBC's word and the jar lock's group of the driver.
_SERVERS = {"postgresql": "postgresql", "postgres": "postgresql", "mysql": "mysql"}
# The SQLite driver is always on the class path. The pragmas let readers and a writer live side by side.
_SQLITE_PRAGMAS = "busy_timeout=30000&journal_mode=WAL"


@dataclass(frozen=True, slots=True, kw_only=True)
class JdbcAddress:
    """A JDBC address without the login, which stands beside it.

    Args:
        url: what the driver is given.
        public: the same, for logs and lineage.
        user: the login, when the address held one.
        password: its password.
        jars: the jar group of the driver.
    """

    url: str
    public: str
    user: str | None = None
    password: Secret | None = None
    jars: tuple[str, ...] = ()


def sqlite_url(path: str) -> str:
    """Return the JDBC address of a SQLite file."""
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
