"""Places on the server's machine: an attached catalog is read and written with the rights of the process.

So ATTACH must not reach what policies, logins and the audit stand on, nor another catalog's files around its policies.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import unquote

from sqe_core.spi.catalog import CatalogBackend
from sqe_core.spi.errors import ErrorCode, UserError
from sqe_core.spi.identity import Identity

_NOBODY = Identity(issuer="sqe", subject="", username="", provider="")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


class LocalPlaces:
    """What may not be attached: what is `protected`, what is below it, and what holds it."""

    def __init__(self, protected: Iterable[Path] = ()) -> None:
        self._protected = tuple({place for path in protected for place in _resolved(path)})

    def check(self, text: str, others: Iterable[CatalogBackend] = ()) -> None:
        """Raise when a location is a place on this machine that must not be reached; other locations are fine."""
        paths = local_paths(text)
        if any(not path.is_absolute() for path in paths):
            raise UserError("A path on the server is absolute", code=ErrorCode.INVALID_ARGUMENTS)
        self._check(paths, others)

    def check_made(self, backend: CatalogBackend, others: Iterable[CatalogBackend] = ()) -> None:
        """Raise when a catalog lies at a place that must not be reached, whichever option said so."""
        self._check(tuple(places_of(backend)), others)

    def _check(self, paths: Iterable[Path], others: Iterable[CatalogBackend]) -> None:
        taken = (
            *self._protected,
            *(place for backend in others for path in places_of(backend) for place in _resolved(path)),
        )
        if any(_overlap(found, place) for path in paths for found in _resolved(path) for place in taken):
            # Which of them it is says something about the machine.
            raise UserError(
                "This place belongs to the server or to another catalog, or holds such a place",
                code=ErrorCode.ACCESS_DENIED,
                hint="choose a folder of its own",
            )


def local_paths(text: str) -> tuple[Path, ...]:
    """Return the places on this machine that a location may mean, none when it is elsewhere."""
    plain = text.removeprefix("jdbc:")
    scheme, colon, rest = plain.partition(":")
    if not plain:
        return ()
    if not colon or not _SCHEME.match(plain):
        return (Path(plain).expanduser(),)
    match scheme.partition("+")[0].lower():
        case "sqlite":
            # As catalog/jdbc_url.py reads it.
            return (Path(rest.removeprefix("///").partition("?")[0]).expanduser(),)
        case "file":
            # Not everybody decodes an address, and only some take what follows // for the name of a host.
            path = rest.removeprefix("//")
            below_host = path.partition("/")[2]
            readings = (path, unquote(path), below_host, unquote(below_host))
            return tuple({Path("/" + each.lstrip("/")) for each in readings})
    return ()


def places_of(backend: CatalogBackend) -> Iterator[Path]:
    """Where a catalog lies, as far as it says so without a user."""
    if (backend.uri or "").startswith(("https://", "http://")):
        return  # it might have to log in for an answer
    try:
        properties = backend.spark_properties(_NOBODY)
    except Exception:  # noqa: BLE001 - a catalog that needs a login is none on this machine
        return
    for key in ("uri", "warehouse"):
        value = properties.get(key, "")
        if value.startswith(("jdbc:sqlite:", "file:", "/")):
            yield from local_paths(value)


def _resolved(path: Path) -> tuple[Path, ...]:
    """A path as it is written, and where it really leads, through links and `..`."""
    absolute = Path(os.path.abspath(path.expanduser()))
    return absolute, Path(os.path.realpath(absolute))


def _overlap(one: Path, other: Path) -> bool:
    return one == other or one in other.parents or other in one.parents
