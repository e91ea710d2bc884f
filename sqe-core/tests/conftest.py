"""What tests of several rooms share: a certificate of their own."""

from __future__ import annotations

import shutil
import subprocess

import pytest


@pytest.fixture(scope="session")
def tls_files(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """Certificate and key for `localhost`; the certificate is its own authority."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl is not there to make a certificate")
    folder = tmp_path_factory.mktemp("tls")
    cert, key = str(folder / "cert.pem"), str(folder / "key.pem")
    made = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost"
    extensions = ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    subprocess.run([openssl, *made.split(), *extensions, "-keyout", key, "-out", cert], check=True, capture_output=True)
    return cert, key
