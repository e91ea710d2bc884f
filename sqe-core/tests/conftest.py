"""What tests of several rooms share: a certificate of their own, and a log that ends with the test."""

from __future__ import annotations

import logging
import signal
from collections.abc import Iterator

import pytest

from sqe_http.testing import make_certificate

# A run in the background ignores Ctrl-C, and so would every process that a test starts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def tls_files(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """Certificate and key for `localhost`; the certificate is its own authority."""
    return make_certificate(tmp_path_factory.mktemp("tls"), "DNS:localhost", "IP:127.0.0.1")


@pytest.fixture(autouse=True)
def _log_as_it_was() -> Iterator[None]:
    """What a command of this process does to the log must not meet the next test."""
    root, own = logging.getLogger(), logging.getLogger("sqe_core")
    handlers, levels = list(root.handlers), (root.level, own.level)
    yield
    root.handlers[:] = handlers
    root.setLevel(levels[0])
    own.setLevel(levels[1])
