"""The configurations of the page can be used as they stand there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sqe_core.bootstrap import compose
from sqe_core.config.loading import load
from sqe_core.config.status import unbuilt
from sqe_core.spi import ConfigError

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "rest-catalogs.md"
README = ROOT / "sqe-plugins" / "catalog-polaris" / "README.md"
BLOCKS = re.compile(r"```toml\n(.*?)```", re.DOTALL)
# The first sample of the feature list, without its login.
POLARIS = """
[catalog]
polaris_url = "http://localhost:18181/api/catalog"
warehouse = "test_warehouse"
[storage]
s3_endpoint = "http://localhost:19000"
s3_region = "us-east-1"
s3_path_style = true
"""
SAMPLES = [POLARIS, *(block for page in (PAGE, README) for block in BLOCKS.findall(page.read_text("utf-8")))]


@pytest.mark.parametrize("text", SAMPLES)
def test_the_configuration_is_composed(tmp_path: Path, text: str) -> None:
    secret = tmp_path / "secret"
    secret.write_text("s")
    secret.chmod(0o600)
    file = tmp_path / "sqe.toml"
    file.write_text(re.sub(r'"/run/secrets/\w+"', f'"{secret}"', text))
    loaded = load(file, environ={})

    assert list(unbuilt(loaded.config)) == []
    composed = compose(loaded)
    mount = composed.catalogs.mounts()[0]
    assert mount.backend.uri
    composed.release()


def test_a_login_belongs_to_catalogs_that_have_one(tmp_path: Path) -> None:
    file = tmp_path / "sqe.toml"
    file.write_text(f'[catalogs.x]\ntype = "sqlite"\ndirectory = "{tmp_path}"\nauth.type = "anonymous"\n')
    with pytest.raises(ConfigError, match="auth"):
        compose(load(file, environ={}))


def test_keys_of_the_store_reach_the_mount(tmp_path: Path) -> None:
    file = tmp_path / "sqe.toml"
    file.write_text(POLARIS + 's3_access_key = "id"\ns3_secret_key = "hunter2"\n')
    composed = compose(load(file, environ={}))
    backend = composed.catalogs.mounts()[0].backend

    context = backend._context  # type: ignore[attr-defined]
    assert context.storage["s3.secret-access-key"] == "hunter2"
    assert "hunter2" not in repr(context)
    composed.release()
