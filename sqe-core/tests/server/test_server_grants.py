"""A server that says nothing about policies has the grant store, and closes it."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqe_core import bootstrap
from sqe_core.config.loading import load
from sqe_core.plugins.manager import PluginManager
from sqe_core.policy.grants.enforcer import GrantsEnforcer
from sqe_core.spi import ConfigError, ExternalError
from sqe_core.testing.engine import FakeEngine


def compose(tmp_path: Path, text: str = "", **environ: str) -> bootstrap.Sqe:
    file = tmp_path / "sqe.toml"
    file.write_text(f'[catalogs.lake]\ntype = "sqlite"\ndirectory = "{tmp_path}/lake"\n{text}')
    return bootstrap.compose(load(file, environ=environ), PluginManager(), engine=FakeEngine())


@pytest.mark.rule("POL-1")
def test_the_default_is_the_grant_store_in_the_state_folder(tmp_path: Path) -> None:
    sqe = compose(tmp_path, XDG_STATE_HOME=str(tmp_path / "state"))
    (enforcer,) = sqe.enforcers
    assert isinstance(enforcer, GrantsEnforcer)
    assert enforcer.enforces
    assert (tmp_path / "state" / "sqe" / "grants.db").exists()
    sqe.close()
    with pytest.raises(ExternalError):
        enforcer.check()


@pytest.mark.parametrize(
    ("text", "environ"),
    [("[policy.grants]\npath = '{}'", {}), ("", {"SQE_POLICY__GRANTS__PATH": "{}"})],
)
def test_the_path_of_the_file_or_the_environment(tmp_path: Path, text: str, environ: dict[str, str]) -> None:
    place = tmp_path / "elsewhere" / "g.db"
    sqe = compose(tmp_path, text.format(place), **{name: value.format(place) for name, value in environ.items()})
    assert place.exists()
    sqe.close()


def test_unknown_keys_of_the_store_are_a_fault(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"policy\.grants\.pth.*path"):
        compose(tmp_path, "[policy.grants]\npth = '/x'")
    assert not list(tmp_path.glob("**/grants.db"))


def test_the_precedence_of_masks_reaches_the_engine(tmp_path: Path) -> None:
    sqe = compose(tmp_path, '[policy]\nengine = "in-memory"\nmask_precedence = "resource"')
    (enforcer,) = sqe.enforcers
    assert isinstance(enforcer, GrantsEnforcer)
    assert enforcer.mask_precedence == "resource"
    sqe.close()


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"XDG_STATE_HOME": "/var/state"}, "/var/state/sqe"),
        ({"XDG_STATE_HOME": "relative"}, "~/.local/state/sqe"),
        ({}, "~/.local/state/sqe"),
    ],
)
def test_the_state_folder(environ: dict[str, str], expected: str) -> None:
    assert bootstrap.state_dir(environ) == Path(expected).expanduser()
