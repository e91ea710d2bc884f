"""What tests of several rooms share: a certificate of their own, and a log that ends with the test."""

from __future__ import annotations

import logging
import shutil
import signal
import subprocess
from collections.abc import Iterator

import pytest

# A run in the background ignores Ctrl-C, and so would every process that a test starts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def tls_files(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """Certificate and key for `localhost`; the certificate is its own authority."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.fail("openssl is needed to make a certificate")
    folder = tmp_path_factory.mktemp("tls")
    cert, key = str(folder / "cert.pem"), str(folder / "key.pem")
    made = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost"
    extensions = ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    subprocess.run([openssl, *made.split(), *extensions, "-keyout", key, "-out", cert], check=True, capture_output=True)
    return cert, key


@pytest.fixture(autouse=True)
def _log_as_it_was() -> Iterator[None]:
    """What a command of this process does to the log must not meet the next test."""
    root, own = logging.getLogger(), logging.getLogger("sqe_core")
    handlers, levels = list(root.handlers), (root.level, own.level)
    yield
    root.handlers[:] = handlers
    root.setLevel(levels[0])
    own.setLevel(levels[1])
