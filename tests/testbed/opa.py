"""A real Open Policy Agent for the tests: built once from its source, kept in the cache, run on loopback.

No package index carries the binary. The module comes through the Go proxy and must have the hash below; its own
`go.sum` pins what it needs in turn. The binary lies in `$XDG_CACHE_HOME/sqe/testbed` (else `~/.cache/sqe/testbed`)
beside its hash.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

import psutil

VERSION = "1.21.1"
MODULE = f"github.com/open-policy-agent/opa@v{VERSION}"
MODULE_SUM = "h1:j6NIMLmdOPUTp9+1fgtWLqbOPqwkTaxNm4T3ngtUB48="
# Without the OCI client and without optimisation: half of the build, and as fast as tests need it.
BUILD = ("-mod=readonly", "-trimpath", "-tags=opa_no_oci", "-ldflags=-s -w", "-gcflags=all=-N -l")
_BUILD_SECS = 1500
_START_SECS = 30
_NOTHING: Mapping[str, str] = MappingProxyType({})


def opa_binary() -> Path:
    """Return the binary, which the first call of a machine builds; several processes may ask at once."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    cache = Path(base if Path(base).is_absolute() else Path.home() / ".cache") / "sqe" / "testbed"
    recipe = hashlib.sha256("\n".join((MODULE, MODULE_SUM, *BUILD)).encode()).hexdigest()[:12]
    folder = cache / f"opa-{VERSION}-{recipe}"
    folder.mkdir(parents=True, exist_ok=True)
    binary, stamp = folder / "opa", folder / "opa.sha256"
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (binary.exists() and stamp.exists() and stamp.read_text() == _sha256(binary)):
            stamp.unlink(missing_ok=True)
            _build(binary)
            stamp.write_text(_sha256(binary))
    return binary


def _build(binary: Path) -> None:
    go = shutil.which("go") or shutil.which("/usr/local/go/bin/go")
    if go is None:
        raise RuntimeError("The tests with OPA need Go 1.26 or later in the PATH, which builds it")
    began = time.monotonic()
    print(f"building OPA {VERSION}, which takes some minutes once", file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory(prefix="opa-build-", dir=binary.parent) as work:
        environ = {
            **os.environ,
            "GOMODCACHE": f"{work}/modules",
            "GOCACHE": f"{work}/objects",
            "GOPATH": f"{work}/path",
            "GOFLAGS": "-modcacherw",
            "CGO_ENABLED": "0",
        }
        module = json.loads(_run([go, "mod", "download", "-json", MODULE], work, environ))
        if module["Sum"] != MODULE_SUM:
            raise RuntimeError(f"{MODULE} has the hash {module['Sum']}, and {MODULE_SUM} was expected")
        _run([go, "build", *BUILD, "-o", f"{work}/opa", "."], module["Dir"], environ)
        os.replace(f"{work}/opa", binary)
    print(f"built OPA {VERSION} in {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)


def _run(command: Sequence[str], folder: str, environ: Mapping[str, str]) -> str:
    done = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, timeout=_BUILD_SECS)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command[:3])} failed: {done.stderr[-2000:]}")
    return done.stdout


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class Opa:
    """A running OPA with the policies of some files."""

    def __init__(self, *policies: Path, options: Sequence[str] = ()) -> None:
        command = ["run", "--server", "--addr", "127.0.0.1:0", "--log-level", "error", "--skip-version-check"]
        # A file, because nobody empties a pipe while OPA writes its log.
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115 - stop() closes it
        self._process = subprocess.Popen(
            [opa_binary(), *command, *options, *policies], stdout=subprocess.DEVNULL, stderr=self._log
        )
        try:
            self.url = f"http://127.0.0.1:{self._port()}"
        except BaseException:
            self.stop()
            raise

    def _port(self) -> int:
        """The port that the process listens on, which the system chose."""
        deadline = time.monotonic() + _START_SECS
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                self._log.seek(0)
                raise RuntimeError(f"OPA ended: {self._log.read()[-2000:]}")
            for connection in psutil.Process(self._process.pid).net_connections("tcp4"):
                if connection.status == psutil.CONN_LISTEN and self._is_healthy(connection.laddr.port):
                    return int(connection.laddr.port)
            time.sleep(0.05)
        raise RuntimeError("OPA did not start to listen")

    @staticmethod
    def _is_healthy(port: int) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5):
                return True
        except (urllib.error.URLError, OSError):
            return False

    def put(self, path: str, document: Any, headers: Mapping[str, str] = _NOTHING) -> None:
        """Write a document of data."""
        self._request("PUT", f"/v1/data/{path}", json.dumps(document).encode(), headers)

    def put_policy(self, name: str, rego: str) -> None:
        """Write or replace a policy."""
        self._request("PUT", f"/v1/policies/{name}", rego.encode(), {"Content-Type": "text/plain"})

    def get(self, path: str) -> Any:
        """Read a document of data; None when it does not exist."""
        return json.loads(self._request("GET", f"/v1/data/{path}", None, _NOTHING)).get("result")

    def _request(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]) -> bytes:
        request = urllib.request.Request(self.url + path, data=body, method=method, headers=dict(headers))
        with urllib.request.urlopen(request, timeout=10) as answer:
            return bytes(answer.read())

    def stop(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        self._log.close()


@contextmanager
def running_opa(*policies: Path, options: Sequence[str] = ()) -> Iterator[Opa]:
    """Run OPA for the length of a block."""
    opa = Opa(*policies, options=options)
    try:
        yield opa
    finally:
        opa.stop()


if __name__ == "__main__":
    print(opa_binary())
