"""What CREATE SECRET keeps: complete, by name, and on disk only encrypted and for its owner."""

from __future__ import annotations

import base64
import json
import os
import threading
from pathlib import Path

import pytest

from sqe_core.catalog.secret_file import SecretFile, parse_key, read_or_make_key
from sqe_core.catalog.secret_store import Secrets, SecretStore, checked
from sqe_core.spi.catalog import AttachSecret
from sqe_core.spi.errors import ExternalError, NotSupportedError, SqeError, StartupError, UserError
from sqe_core.spi.identity import Secret

CANARY = "kanarienvogel"
KEY = Secret(base64.b64encode(bytes(range(32))).decode())
OTHER_KEY = Secret(base64.b64encode(bytes(32)).decode())


def bearer(name: str = "s", token: str = CANARY) -> AttachSecret:
    return checked(name, "bearer", {"token": Secret(token)})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "secrets.json"


@pytest.mark.parametrize(
    ("type_", "values", "message"),
    [
        ("bearer", {"token": "a"}, None),
        ("basic", {"username": "a", "password": "b c"}, None),
        ("aws", {"access_key_id": "a", "secret_access_key": "b", "session_token": "c", "region": "eu"}, None),
        ("aws", {"profile": "dev"}, None),
        ("s3", {"key_id": "a"}, "does not know this TYPE"),
        ("bearer", {}, "needs TOKEN"),
        ("bearer", {"token": ""}, "needs TOKEN"),
        ("bearer", {"token": f"{CANARY}\n"}, "control character"),
        ("bearer", {"token": f"{CANARY} b"}, "no token has"),
        ("bearer", {"token": "a" * 70_000}, "too long"),
        ("basic", {"username": "a"}, "needs PASSWORD"),
        ("basic", {"username": "a", "password": "b", CANARY: "c"}, "one of these keys"),
        ("aws", {"access_key_id": "a"}, "together"),
        ("aws", {"region": "eu"}, "either"),
        ("aws", {"profile": "a", "access_key_id": "a", "secret_access_key": "b"}, "either"),
    ],
)
def test_a_secret_is_complete(type_: str, values: dict[str, str], message: str | None) -> None:
    given = {key: Secret(value) for key, value in values.items()}
    if message is None:
        assert {key: value.reveal() for key, value in checked("s", type_, given).values.items()} == values
        return
    with pytest.raises(UserError, match=message) as caught:
        checked("s", type_, given)
    assert CANARY not in f"{caught.value.message} {caught.value.hint}"


def test_names(path: Path) -> None:
    for secrets in (Secrets(), Secrets(SecretFile(path, KEY))):
        secrets.create(bearer())
        with pytest.raises(UserError, match="secret 's' already exists"):
            secrets.create(bearer())
        with pytest.raises(UserError, match="already exists"):
            secrets.create(bearer(), lasting=False)
        secrets.create(bearer(token="new"), replace=True)
        assert secrets.find("s").values["token"] == Secret("new")
        secrets.create(bearer(token="newer"), lasting=False, replace=True)
        assert {name: found.values["token"] for name, found in secrets.read().items()} == {"s": Secret("newer")}
        secrets.drop("s")
        for use in (secrets.drop, secrets.find):
            with pytest.raises(UserError, match="secret 's' does not exist"):
                use("s")


def test_without_a_file_nothing_outlives_the_process() -> None:
    with pytest.raises(NotSupportedError, match="in memory here") as caught:
        Secrets().create(bearer(), lasting=True)
    assert "session.secrets_path" in (caught.value.hint or "")


@pytest.mark.rule("SESS-7")
def test_they_outlive_a_restart_and_nobody_reads_them(path: Path) -> None:
    Secrets(SecretFile(path, KEY)).create(bearer("partner"), lasting=True)
    assert path.stat().st_mode & 0o777 == 0o600
    for file in path.parent.iterdir():
        found = file.read_bytes()
        assert all(text.encode() not in found for text in (CANARY, "partner", "bearer", "token"))
    again = Secrets(SecretFile(path, KEY))
    assert again.find("partner").values["token"].reveal() == CANARY
    again.create(bearer("fleeting"), lasting=False)
    assert set(Secrets(SecretFile(path, KEY)).read()) == {"partner"}


def test_the_file_is_another_one_after_each_write(path: Path) -> None:
    store = SecretFile(path, KEY)
    store.put(bearer(), replace=True)
    first = json.loads(path.read_text())
    store.put(bearer(), replace=True)
    second = json.loads(path.read_text())
    assert first["nonce"] != second["nonce"]
    assert first["sealed"] != second["sealed"]


@pytest.mark.rule("SESS-7")
@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda path: path.chmod(0o640), "can be read or written by others"),
        (lambda path: path.write_text("{}"), "is damaged"),
        (lambda path: path.write_text(path.read_text()[:-20]), "is damaged"),
        (lambda path: path.write_text(path.read_text().replace('"version": 1', '"version": 2')), "is damaged"),
        (lambda path: _flip(path), "was changed, or was written with another key"),
        (lambda path: _link(path), "cannot be read|cannot be used"),
    ],
)
def test_a_file_that_somebody_meddled_with(path: Path, damage: object, message: str) -> None:
    store = SecretFile(path, KEY)
    store.put(bearer(), replace=False)
    assert callable(damage)
    damage(path)
    for use in (store.read, lambda: SecretFile(path, KEY), lambda: store.put(bearer("b"), replace=False)):
        with pytest.raises(SqeError, match=message) as caught:
            use()
        assert CANARY not in f"{caught.value.message} {caught.value.hint}"


def _flip(path: Path) -> None:
    written = json.loads(path.read_text())
    sealed = bytearray(base64.b64decode(written["sealed"]))
    sealed[5] ^= 1
    path.write_text(json.dumps({**written, "sealed": base64.b64encode(bytes(sealed)).decode()}))


def _link(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to(path.with_name("elsewhere"))


def test_another_key_does_not_start(path: Path) -> None:
    SecretFile(path, KEY).put(bearer(), replace=False)
    with pytest.raises(StartupError, match="written with another key") as caught:
        SecretFile(path, OTHER_KEY)
    assert "remove the file" in (caught.value.hint or "")


@pytest.mark.parametrize("text", ["", "abc", base64.b64encode(bytes(16)).decode(), "ä" * 44])
def test_a_key_that_is_none(text: str) -> None:
    with pytest.raises(StartupError, match="32 random bytes") as caught:
        parse_key(Secret(text))
    assert "openssl" in (caught.value.hint or "")


def test_the_key_is_made_once_and_is_private(tmp_path: Path) -> None:
    file = tmp_path / "state" / "secrets.key"
    key = read_or_make_key(file)
    assert read_or_make_key(file) == key
    assert file.stat().st_mode & 0o777 == 0o600
    assert [found.name for found in file.parent.iterdir()] == ["secrets.key"]
    file.chmod(0o644)
    with pytest.raises(StartupError, match="read or written by others"):
        read_or_make_key(file)


def test_what_fails_changes_nothing(path: Path) -> None:
    def fail(secrets: dict[str, AttachSecret]) -> None:
        secrets.clear()
        raise UserError("no")

    stores: tuple[SecretStore, ...] = (SecretFile(path, KEY),)
    for store in stores:
        store.put(bearer(), replace=False)
        with pytest.raises(UserError):
            store.change(fail)
        assert set(store.read()) == {"s"}


def test_a_full_folder_is_told(path: Path) -> None:
    store = SecretFile(path, KEY)
    store.put(bearer(), replace=False)
    if os.geteuid() == 0:
        path.parent.joinpath(f"{path.name}.lock").unlink()
        path.parent.joinpath(f"{path.name}.lock").mkdir()
    else:
        path.parent.chmod(0o500)
    with pytest.raises(ExternalError, match="cannot be"):
        store.put(bearer("b"), replace=False)
    path.parent.chmod(0o700)
    assert set(store.read()) == {"s"}


def test_two_servers_with_one_file_lose_nothing(path: Path) -> None:
    stores = [SecretFile(path, KEY) for _ in range(4)]
    threads = [
        threading.Thread(
            target=lambda store=store, first=first: [store.put(bearer(f"{first}-{n}"), replace=False) for n in range(5)]
        )
        for first, store in enumerate(stores)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(stores[0].read()) == 20
