"""A Go that can compile: the machine's, or the one of the lock file."""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import tomllib
import urllib.request
import zipfile
from pathlib import Path

HERE = Path(__file__).parent
_FIRST_GO = (1, 25)
_CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "sqe" / "tests"


def installed_go() -> str | None:
    """The Go of this machine, where it is new enough."""
    for candidate in filter(None, [shutil.which("go"), "/usr/local/go/bin/go"]):
        if Path(candidate).exists():
            said = subprocess.run([candidate, "version"], capture_output=True, text=True, check=False).stdout
            found = re.search(r"go(\d+)\.(\d+)", said)
            if found and (int(found[1]), int(found[2])) >= _FIRST_GO:
                return candidate
    return None


def fetched_go() -> str:
    """The Go of the lock file, fetched once from Go's own proxy and verified."""
    machine = {"x86_64": "amd64", "aarch64": "arm64", "arm64": "arm64"}[platform.machine()]
    (toolchain,) = [
        each
        for each in tomllib.loads((HERE / "clients.lock.toml").read_text())["go"]
        if each["platform"] == f"{sys.platform}-{machine}"
    ]
    name = f"v0.0.1-go{toolchain['version']}.{toolchain['platform']}"
    folder = _CACHE / f"golang.org/toolchain@{name}"
    _CACHE.mkdir(parents=True, exist_ok=True)
    with (_CACHE / "go.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "fetched").exists():
            archive = _CACHE / f"{name}.zip"
            proxies = [each for each in re.split("[,|]", os.environ.get("GOPROXY", "")) if each.startswith("http")]
            proxy = (proxies or ["https://proxy.golang.org"])[0]
            address = f"{proxy}/golang.org/toolchain/@v/{name}.zip"
            with urllib.request.urlopen(address, timeout=60) as answer, archive.open("wb") as file:
                shutil.copyfileobj(answer, file)
            with archive.open("rb") as file:
                assert hashlib.file_digest(file, "sha256").hexdigest() == toolchain["sha256"]
            with zipfile.ZipFile(archive) as opened:
                opened.extractall(_CACHE)
            for program in [*folder.glob("bin/*"), *folder.glob("pkg/tool/*/*")]:
                program.chmod(0o755)
            archive.unlink()
            (folder / "fetched").touch()
    return str(folder / "bin" / "go")
