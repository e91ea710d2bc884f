"""Files: read whole, bounded, reloaded; broken ones deny until they are repaired (TEST-9)."""

from __future__ import annotations

import logging
import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from sqe_core.spi import Effect, ExternalError, Identity, StartupError
from sqe_policy_cedar import files
from sqe_policy_cedar.bundle import built_in_schema

READ = '@id("read") permit(principal in Role::"nurse", action in Action::"read", resource);\n'
LOCKED = '@id("locked") forbid(principal, action, resource);\n'


def test_a_change_shows_within_a_second(cedar: Any, nurse: Identity) -> None:
    cedar.open(READ)
    first = cedar.select(nurse)
    assert first.effect is Effect.ALLOW

    cedar.write(LOCKED, "second.cedar")
    cedar.now += 0.5
    assert cedar.select(nurse).effect is Effect.ALLOW
    cedar.now += 0.6
    denied = cedar.select(nurse)
    assert denied.effect is Effect.DENY
    assert first.ttl_secs == denied.ttl_secs == 1
    assert first.policy_version != denied.policy_version

    (cedar.folder / "second.cedar").unlink()
    cedar.enforcer.flush()
    assert cedar.select(nurse).effect is Effect.ALLOW
    assert cedar.select(nurse).policy_version == first.policy_version


def test_a_change_of_the_same_size_and_time_shows(cedar: Any, nurse: Identity) -> None:
    file = cedar.write(READ)
    cedar.open()
    before = file.stat()
    time.sleep(0.01)
    file.write_text(READ.replace("nurse", "other"[:5]), "utf-8")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    cedar.now += 2

    assert file.stat().st_size == before.st_size
    assert cedar.select(nurse).effect is Effect.DENY


def test_files_that_only_look_new_are_not_new(cedar: Any, nurse: Identity, caplog: pytest.LogCaptureFixture) -> None:
    file = cedar.write(READ)
    cedar.open()
    caplog.set_level(logging.INFO)
    file.touch()
    cedar.now += 2

    assert cedar.select(nurse).effect is Effect.ALLOW
    assert not caplog.records


@pytest.mark.rule("TEST-9", "POL-2")
@pytest.mark.parametrize(
    "text", ["permit(principal", "", '@id("x") permit(principal, action, resource) when { principal.no };', "\udcff"]
)
def test_broken_policies_deny_until_they_are_repaired(
    cedar: Any, nurse: Identity, caplog: pytest.LogCaptureFixture, text: str
) -> None:
    """The last good version would be a hole if the change was a revocation."""
    cedar.open(READ)
    (cedar.folder / "main.cedar").write_bytes(text.encode("utf-8", "surrogateescape"))
    cedar.now += 2

    for _ in range(3):
        with pytest.raises(ExternalError) as raised:
            cedar.select(nurse)
        assert str(raised.value) == "The Cedar policies cannot be used"
        with pytest.raises(ExternalError):
            cedar.visible(nurse, [])
        cedar.now += 2
    with pytest.raises(ExternalError, match=r"cannot be used: .*(main\.cedar|policies|policy)"):
        cedar.enforcer.check()
    assert [record.levelname for record in caplog.records] == ["ERROR"]

    cedar.write(READ)
    cedar.now += 2
    assert cedar.select(nurse).effect is Effect.ALLOW
    cedar.enforcer.check()


@pytest.mark.rule("TEST-9")
def test_files_that_vanish_deny(cedar: Any, nurse: Identity) -> None:
    cedar.schema()
    entities = cedar.entities()
    file = cedar.write(READ)
    cedar.open()
    for gone in (file, entities, cedar.settings["schema_path"]):
        content = gone.read_bytes()
        gone.unlink()
        cedar.now += 2
        with pytest.raises(ExternalError):
            cedar.select(nurse)
        gone.write_bytes(content)
        cedar.now += 2
        assert cedar.select(nurse).effect is Effect.ALLOW


def test_a_mounted_folder_that_is_swapped(cedar: Any, nurse: Identity, tmp_path: Path) -> None:
    """As Kubernetes replaces the files of a ConfigMap: a link is turned."""
    for name, text in (("one", READ), ("two", LOCKED)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "main.cedar").write_text(text)
    link = cedar.folder / "..data"
    link.symlink_to(tmp_path / "one")
    (cedar.folder / "main.cedar").symlink_to(link / "main.cedar")
    cedar.open()
    assert cedar.select(nurse).effect is Effect.ALLOW

    turned = cedar.folder / "..new"
    turned.symlink_to(tmp_path / "two")
    turned.rename(link)
    cedar.now += 2
    assert cedar.select(nurse).effect is Effect.DENY


@pytest.mark.rule("TEST-9")
def test_huge_files_are_not_read(cedar: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_POLICY_BYTES", 1000)
    monkeypatch.setattr(files, "MAX_POLICY_FILES", 3)
    cedar.write(READ + "//" + "x" * 1000)
    with pytest.raises(StartupError, match="more than 1000 bytes"):
        cedar.open()
    cedar.write(READ + "//" + "x" * 500)
    cedar.write("//" + "x" * 500, "more.cedar")
    with pytest.raises(StartupError, match="more than 1000 bytes"):
        cedar.open()
    for name in "abc":
        cedar.write("", f"{name}.cedar")
    with pytest.raises(StartupError, match="more than 3 files"):
        cedar.open()


@pytest.mark.parametrize(
    "condition",
    [
        "!" * 5000 + "true",
        "(" * 5000 + "true" + ")" * 5000,
        "[" * 5000 + "]" * 5000 + ".isEmpty()",
        "{a: " * 5000 + "1" + "}" * 5000 + ".a == 1",
        "if true then " * 20000 + "true" + " else false" * 20000,
        " && ".join(["true"] * 20000),
        " + ".join(["1"] * 100) + " == 3",
    ],
)
def test_deep_policies_are_refused_and_do_not_end_the_process(cedar: Any, condition: str) -> None:
    with pytest.raises(StartupError):
        cedar.open(f'@id("a") permit(principal, action, resource) when {{ {condition} }};')


def test_deep_schemas_and_hierarchies_are_refused(cedar: Any) -> None:
    cedar.schema(("  email?: String,", "  email?: String,\n  deep?: " + "Set<" * 20000 + "Long" + ">" * 20000 + ","))
    with pytest.raises(StartupError, match="nested"):
        cedar.open(READ)
    cedar.schema()

    def role(number: int, parent: int) -> dict[str, Any]:
        return {
            "uid": {"type": "Role", "id": str(number)},
            "attrs": {},
            "parents": [{"type": "Role", "id": str(parent)}],
        }

    for size, last in ((20000, 20000), (3, 0)):
        cedar.entities(*(role(number, number + 1) for number in range(size)), role(size, last))
        with pytest.raises(StartupError, match="parents of an entity"):
            cedar.open(READ)
    cedar.entities(*(role(number, number + 1) for number in range(90)))
    cedar.open(READ)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "no JSON"),
        ("{}", "not a list"),
        ("[1]", "not a list"),
        ('[{"uid": 5}]', "no entity"),
        ('[{"uid": {"id": "x"}}]', "no type"),
        ('[{"uid": {"type": "User", "type": "Role", "id": "x"}, "attrs": {}, "parents": []}]', "twice"),
        ('[{"uid": {"type": "Usr", "id": "x"}, "attrs": {}, "parents": []}]', "entities"),
        ('[{"uid": {"type": "User", "id": "x"}, "attrs": {"nmae": 1}, "parents": []}]', "entities"),
        ('[{"uid": {"type": "User", "id": "x"}, "attrs": {"username": "y"}, "parents": []}]', "SQE sets itself"),
        ('[{"uid": {"type": "Table", "id": "h.t"}, "attrs": {}, "parents": []}]', "names nothing"),
    ],
)
def test_entities_that_are_wrong_stop_the_start(cedar: Any, text: str, said: str) -> None:
    cedar.entities(text)
    with pytest.raises(StartupError, match=said):
        cedar.open(READ)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("action select, describe", "action describe"),
        ("  username: String,", ""),
        ("  username: String,", "  username: Long,"),
        ("  client_addr?: ipaddr,", ""),
        ("  claims: {},", "  claims: {},\n  mfa: Bool,"),
        ("entity Row in [Table];", "entity Rows in [Table];"),
        ("entity", "entitty"),
    ],
)
def test_a_schema_that_does_not_know_what_sqe_asks_stops_the_start(cedar: Any, old: str, new: str) -> None:
    cedar.schema((old, new))
    with pytest.raises(StartupError, match="schema"):
        cedar.open(READ)


def test_the_schema_of_sqe_is_in_the_package() -> None:
    assert "entity User in [Role, Group]" in built_in_schema()


@pytest.mark.rule("TEST-8")
def test_reloading_under_load_never_mixes_versions(cedar: Any, nurse: Identity) -> None:
    """Readers get the old answer or the new one, and no error, while a file is replaced again and again."""
    cedar.open(READ)
    stop = threading.Event()
    failures: list[Exception] = []
    versions: set[tuple[Effect, str | None]] = set()

    def ask() -> None:
        while not stop.is_set():
            try:
                decision = cedar.select(nurse)
                versions.add((decision.effect, decision.policy_version))
            except Exception as error:
                failures.append(error)
                return

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for turn in range(30):
        fresh = cedar.folder / "fresh"
        fresh.write_text(READ if turn % 2 else READ + LOCKED)
        fresh.rename(cedar.folder / "main.cedar")
        cedar.now += 2
        time.sleep(0.01)
    stop.set()
    for thread in threads:
        thread.join()

    assert not failures
    assert len(versions) == 2
    cedar.now += 2
    assert cedar.select(nurse).effect is Effect.ALLOW
