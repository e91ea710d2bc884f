"""What ATTACH goes by on a server that a configuration file describes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sqe_core import bootstrap
from sqe_core.bootstrap import Sqe, compose, protected_places
from sqe_core.config.loading import LoadedConfig, load
from sqe_core.engine.port import EngineState
from sqe_core.spi.errors import AccessDeniedError, SqeError, StartupError
from sqe_core.spi.identity import Identity
from sqe_core.testing.engine import FakeEngine
from sqe_core.testing.fakes import make_identity

ROOT = make_identity("root", roles=["service_admin"])
KEY = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="


def configured(tmp_path: Path, text: str = "") -> LoadedConfig:
    file = tmp_path / "etc" / "sqe.toml"
    file.parent.mkdir(exist_ok=True)
    lake = f'[catalogs.lake]\ntype = "sqlite"\ndirectory = "{tmp_path}/lake"\n'
    file.write_text(f'[[auth.providers]]\ntype = "anonymous"\n{lake}{text}')
    return load(file, environ={"XDG_STATE_HOME": str(tmp_path / "state"), "XDG_CACHE_HOME": str(tmp_path / "cache")})


def composed(tmp_path: Path, text: str = "") -> Sqe:
    engine = FakeEngine()
    engine.state = EngineState.STARTING  # listings come from the files
    return compose(configured(tmp_path, text), engine=engine)


def run(sqe: Sqe, sql: str, who: Identity = ROOT) -> list[tuple[Any, ...]]:
    session = sqe.open_session(who, catalog="lake", protocol="test")
    result = sqe.service.execute(session, sql)
    return [tuple(row.values()) for batch in result for row in batch.to_pylist()]


def refusal(sqe: Sqe, sql: str, who: Identity = ROOT) -> SqeError:
    with pytest.raises(SqeError) as caught:
        run(sqe, sql, who)
    return caught.value


def test_nothing_that_the_server_stands_on_is_attached(tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    sqe = composed(
        tmp_path,
        f"""
        [policy.grants]
        path = "{tmp_path}/grants/grants.db"
        [metrics]
        audit_log_path = "{tmp_path}/log/audit.log"
        """,
    )
    places = (
        "etc",
        "grants",
        "log",
        "log/audit.log",
        "lake",
        "lake/warehouse",
        "state/sqe",
        "cache/sqe",
        "cache/sqe/jars",
    )
    for place in (*(str(tmp_path / each) for each in places), str(tmp_path), "/", str(Path(bootstrap.__file__).parent)):
        for kind in ("sqlite", "hadoop"):
            error = refusal(sqe, f"ATTACH '{place}' AS x (TYPE {kind})")
            assert error.message == "This place belongs to the server or to another catalog, or holds such a place"
    run(sqe, f"ATTACH '{tmp_path}/guest' AS guest (TYPE sqlite)")
    assert run(sqe, "SHOW CATALOGS") == [("guest",), ("lake",)]
    sqe.release()


def test_paths_that_are_written_without_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    loaded = configured(
        tmp_path, '[policy.grants]\nurl = "sqlite:///here/grants.db"\n[metrics]\naudit_log_path = "log/audit.log"'
    )
    assert {Path("here/grants.db"), Path("log/audit.log")} <= protected_places(loaded)


def test_a_mount_is_gone_after_a_restart_and_a_secret_only_without_a_file(tmp_path: Path) -> None:
    text = f'[session]\nsecrets_path = "{tmp_path}/private/secrets.json"\n'
    (tmp_path / "private").mkdir(mode=0o700)
    for settings, left in (("", []), (text, [("s", "bearer")])):
        first = composed(tmp_path, settings)
        run(first, f"ATTACH '{tmp_path}/guest' AS guest (TYPE sqlite)")
        run(first, "CREATE SECRET s (TYPE bearer, TOKEN 'kanarienvogel')")
        first.release()
        second = composed(tmp_path, settings)
        assert run(second, "SHOW CATALOGS") == [("lake",)]
        assert run(second, "SHOW SECRETS") == left
        second.release()
    assert (tmp_path / "state" / "sqe" / "secrets.key").stat().st_mode & 0o777 == 0o600
    assert b"kanarienvogel" not in (tmp_path / "private" / "secrets.json").read_bytes()
    with pytest.raises(StartupError, match="another key"):
        composed(tmp_path, f'{text}secrets_key = "{KEY}"\n')


def test_nobody_is_an_administrator_without_logins(tmp_path: Path) -> None:
    file = tmp_path / "sqe.toml"
    file.write_text(f'[catalogs.lake]\ntype = "sqlite"\ndirectory = "{tmp_path}/lake"\n')
    sqe = compose(load(file, environ={}), engine=FakeEngine())
    for who in (ROOT, make_identity("anonymous")):
        assert isinstance(refusal(sqe, "SHOW SECRETS", who), AccessDeniedError)
    sqe.release()


@pytest.mark.rule("ISO-7")
@pytest.mark.parametrize("production", [False, True])
def test_in_production_files_of_attached_catalogs_open_with_vended_keys_only(tmp_path: Path, production: bool) -> None:
    """As those of configured ones: a catalog that gives none must not have the rights of the machine."""
    loaded = configured(tmp_path)
    # Production refuses other things of this file, which belong to other tests.
    config = replace(
        loaded.config,
        coordinator=replace(loaded.config.coordinator, production_mode=production),
        security=replace(loaded.config.security, allow_shared_service_identity=True),
    )
    sqe = compose(replace(loaded, config=config), engine=FakeEngine())
    assert sqe.service._parts.attachments._rules.context.require_vended_credentials is production
    sqe.release()


def test_a_type_that_has_to_be_installed(tmp_path: Path) -> None:
    sqe = composed(tmp_path)
    error = refusal(sqe, "ATTACH '' AS x (TYPE ducklake)")
    assert error.message == "The catalog type 'ducklake' is not known, and no installed plugin provides it"
    error = refusal(sqe, f"ATTACH 'postgresql://h/d' AS x (TYPE jdbc, WAREHOUSE '{tmp_path}/w')")
    assert error.message == "The engine runs without the jars of postgresql, which this catalog needs"
    sqe.release()
    sqe = composed(tmp_path, '[engine]\njar_groups = ["postgresql"]\n')
    assert sqe.service._parts.attachments._rules.engine_jars == {"postgresql"}
    sqe.release()
