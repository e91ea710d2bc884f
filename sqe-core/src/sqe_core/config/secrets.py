"""`{ env = "X" }` and `{ file = "/run/secrets/x" }`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from sqe_core.config.origin import Node
from sqe_core.spi.identity import Secret

EXPECTED = 'expected text, { env = "NAME" } or { file = "/path" }'


def file_of(node: Node) -> Path | None:
    """The file that holds a secret, when it is in one."""
    place = node.value.get("file") if isinstance(node.value, dict) and len(node.value) == 1 else None
    return Path(place.value) if place is not None and isinstance(place.value, str) else None


def read_secret(node: Node, environ: Mapping[str, str]) -> Secret:
    """Return the secret that a key names. ValueError says what is wrong, and never holds the value."""
    if isinstance(node.value, Secret):
        return node.value
    if isinstance(node.value, str):
        return Secret(node.value)
    if not isinstance(node.value, dict) or len(node.value) != 1:
        raise ValueError(EXPECTED)
    ((source, place),) = node.value.items()
    if source not in ("env", "file") or not isinstance(place.value, str):
        raise ValueError(EXPECTED)
    file = file_of(node)
    return _from_environment(place.value, environ) if file is None else _from_file(file)


def _from_environment(name: str, environ: Mapping[str, str]) -> Secret:
    if name not in environ:
        raise ValueError(f"the environment variable {name} is not set")
    if not environ[name]:
        raise ValueError(f"the environment variable {name} is empty")
    return Secret(environ[name])


def _from_file(path: Path) -> Secret:
    if "\0" in str(path):
        raise ValueError(EXPECTED)
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ValueError(f"cannot read {path}: {error.strerror or type(error).__name__}") from None
    except UnicodeDecodeError:
        raise ValueError(f"cannot read {path}: it is not UTF-8 text") from None
    # Editors and `echo` end files with a newline, which is never part of a secret.
    text = text.rstrip("\r\n")
    if not text:
        raise ValueError(f"{path} is empty")
    return Secret(text)
