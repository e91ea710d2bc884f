"""Files of Maven Central for the tests: fetched once, verified by their hash, kept in the cache of the test bed."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import tempfile
import urllib.request
from pathlib import Path

CENTRAL = "https://repo1.maven.org/maven2"


def cache_folder() -> Path:
    """Return `$XDG_CACHE_HOME/sqe/testbed`, else `~/.cache/sqe/testbed`."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    folder = Path(base if Path(base).is_absolute() else Path.home() / ".cache") / "sqe" / "testbed"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def central_file(path: str, sha256: str) -> Path:
    """Return a file of Maven Central, which the first call of a machine fetches; several processes may ask at once."""
    target = cache_folder() / "central" / f"{sha256[:12]}-{path.rpartition('/')[2]}"
    target.parent.mkdir(exist_ok=True)
    # A file appears under its name only when its hash was right, so that it is not read at each start.
    if target.exists():
        return target
    with target.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not target.exists():
            with tempfile.NamedTemporaryFile(dir=target.parent, delete=False) as draft:
                try:
                    with urllib.request.urlopen(f"{CENTRAL}/{path}", timeout=300) as answer:
                        shutil.copyfileobj(answer, draft, 1 << 20)
                    draft.flush()
                    _check(Path(draft.name), path, sha256)
                    os.replace(draft.name, target)
                except BaseException:
                    os.unlink(draft.name)
                    raise
    return target


def _check(file: Path, path: str, expected: str) -> None:
    with file.open("rb") as opened:
        found = hashlib.file_digest(opened, "sha256").hexdigest()
    if found != expected:
        raise RuntimeError(f"{path} has the hash {found}, and {expected} was expected")
