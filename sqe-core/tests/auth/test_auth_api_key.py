"""API keys: the file, its faults and changes, and what the provider makes of a key."""

from __future__ import annotations

import hashlib
import hmac
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from sqe_core.auth.api_key import ApiKeyConfig, ApiKeyFactory, ApiKeyProvider
from sqe_core.auth.key_file import (
    ApiKey,
    KeyEntry,
    KeyFileReader,
    append_entry,
    entry_id,
    hash_key,
    make_key,
    parse,
    remove_entry,
)
from sqe_core.spi.auth import BasicCredential, BearerCredential, ClientInfo, LoginRequest
from sqe_core.spi.errors import ConfigError, InvalidCredentialsError, StartupError
from sqe_core.spi.factory import PluginContext
from sqe_core.spi.identity import Identity, Secret

FIRST, SECOND = "sqe_first-key-0123456789", "sqe_second-key-0123456789"
HASH = "hmac-sha256:" + "a" * 32 + ":" + "0" * 64


def entry(key: str = FIRST, user: str = "etl", **more: str) -> str:
    lines = [f'key = "{key}"', f'user = "{user}"', *(f"{name} = {value}" for name, value in more.items())]
    return "[[keys]]\n" + "\n".join(lines) + "\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "keys.toml"


@pytest.fixture
def make_provider(file: Path) -> Callable[..., ApiKeyProvider]:
    def make(text: str | None = None, *, production: bool = False, prefix: str = "sqe_") -> ApiKeyProvider:
        if text is not None:
            file.write_text(text)
            file.chmod(0o600)
        config = ApiKeyConfig(keys_file=file, key_prefix=prefix)
        return ApiKeyFactory().create("api_key", config, PluginContext(production_mode=production))

    return make


def log_in(provider: ApiKeyProvider, key: str) -> Identity | None:
    request = LoginRequest(credential=BearerCredential(token=Secret(key)), client=ClientInfo(protocol="test"))
    return provider.authenticate(request)


def is_refused(provider: ApiKeyProvider, key: str) -> bool:
    with pytest.raises(InvalidCredentialsError) as caught:
        log_in(provider, key)
    return str(caught.value) == str(InvalidCredentialsError())


def test_a_key_is_its_users_login(make_provider) -> None:
    provider = make_provider(entry(groups='["loaders"]', roles='["writer"]', description='"nightly"'))
    identity = log_in(provider, FIRST)

    assert identity is not None
    assert (identity.issuer, identity.subject, identity.username) == ("sqe:api_key", "etl", "etl")
    assert (identity.groups, identity.roles) == ({"loaders"}, {"writer"})
    assert identity.personal
    assert identity.access_token is None


@pytest.mark.parametrize("name", ["etl", "", "token", "somebody"])
def test_a_key_is_a_password_too_whatever_the_user_name(make_provider, name: str) -> None:
    provider = make_provider(entry())
    credential = BasicCredential(username=name, password=Secret(FIRST))
    identity = provider.authenticate(LoginRequest(credential=credential, client=ClientInfo(protocol="test")))

    assert identity is not None
    assert identity.username == "etl"


def test_a_user_can_have_two_live_keys(make_provider) -> None:
    provider = make_provider(entry() + entry(hash_key(Secret(SECOND))))
    first, second = log_in(provider, FIRST), log_in(provider, SECOND)

    assert first is not None
    assert second is not None
    assert first.key == second.key
    assert first.claims != second.claims


@pytest.mark.rule("AUTHN-4")
def test_the_prefix_says_whose_a_credential_is(make_provider) -> None:
    provider = make_provider(entry("acme-1234", "etl"), prefix="acme-")
    assert log_in(provider, "acme-1234") is not None
    assert log_in(provider, FIRST) is None
    assert is_refused(provider, "acme-12345")
    assert is_refused(make_provider(entry("anything"), prefix=""), "sqe_x")


@pytest.mark.rule("AUTHN-8")
def test_keys_are_kept_as_salted_hashes(make_provider, file: Path) -> None:
    one, two = hash_key(Secret(FIRST)), hash_key(Secret(FIRST))
    assert one != two
    kind, salt, digest = one.split(":")
    assert (kind, digest) == ("hmac-sha256", hmac.new(salt.encode(), FIRST.encode(), hashlib.sha256).hexdigest())

    provider = make_provider(entry())
    for shown in (repr(provider._file), repr(vars(provider)), repr(parse(file.read_bytes(), file))):
        assert FIRST not in shown


@pytest.mark.rule("AUTHN-8")
@pytest.mark.parametrize("wanted", [FIRST, SECOND, "sqe_unknown"])
def test_every_entry_is_tried(make_provider, monkeypatch, wanted: str) -> None:
    """The time does not tell where a key stands, or whether it does."""
    provider = make_provider(entry() + entry(SECOND) + entry("sqe_third-key-0123456789"))
    tried: list[str] = []
    fits = ApiKey.fits
    monkeypatch.setattr(ApiKey, "fits", lambda self, key: tried.append(self.entry_id) or fits(self, key))
    try:
        log_in(provider, wanted)
    except InvalidCredentialsError:
        pass
    assert len(tried) == 3


def test_made_keys_are_random(make_provider) -> None:
    keys = {make_key("sqe_").reveal() for _ in range(100)}
    assert len(keys) == 100
    assert all(key.startswith("sqe_") and len(key) >= 4 + 43 for key in keys)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("keys = 3", "keys: expected an array"),
        ("[[keys]]\nuser = 'x'", "keys[0].key: is missing"),
        (entry().replace("user", "username"), "username: unknown key"),
        ("[[keyz]]\n", "keyz: unknown key"),
        (entry(user=""), "keys[0].user: is empty"),
        (entry(user="a\\u202e"), "keys[0].user: is empty, too long, or holds control characters"),
        (entry(groups='[""]'), "keys[0]: a group or role is empty"),
        (entry("other_1234"), "keys[0].key: does not begin with 'sqe_' (key_prefix)"),
        (entry("sqe_"), "keys[0].key: does not begin with"),
        (entry("$argon2id$v=19$abc"), "keys[0].key: no hash that is known; expected hmac-sha256:<salt>:"),
        (entry("sha256:" + "0" * 64), "keys[0].key: no hash that is known"),
        (entry(HASH[:-1]), "keys[0].key: no hash that is known"),
        (entry("hmac-sha256:short:" + "0" * 64), "keys[0].key: no hash that is known"),
        (entry() + entry(user="other"), "keys[1].key: stands there twice"),
        (entry(hash_key(Secret(FIRST))) + entry(user="other"), "keys[1].key: stands there twice"),
        (entry(HASH) + entry(HASH), "keys[1].key: stands there twice"),
        ("[[keys]]\nkey = 'sqe_secret-7731\nuser", "is no TOML, "),
        ("[[keys]]\nkey = sqe_secret-7731\n", "is no TOML, line 2, column 7"),
        ("keys = " + "[" * 100_000, "is no TOML"),
    ],
)
def test_faults_stop_the_start_and_show_no_key(make_provider, text: str, fault: str) -> None:
    with pytest.raises(StartupError) as caught:
        make_provider(text)
    assert fault in str(caught.value)
    for secret in ("secret-7731", FIRST, "other_1234", "argon2id", "0" * 64):
        assert secret not in str(caught.value)


def test_a_missing_file_stops_the_start(make_provider, tmp_path: Path) -> None:
    with pytest.raises(StartupError, match=r"cannot read .*keys\.toml: No such file"):
        make_provider()


def test_a_file_of_keys_can_be_empty(make_provider) -> None:
    assert is_refused(make_provider(""), FIRST)


@pytest.mark.rule("AUTHN-8")
def test_production_wants_hashes_and_a_private_file(make_provider, file: Path) -> None:
    with pytest.raises(StartupError, match="a plain key; production_mode wants its hash"):
        make_provider(entry(), production=True)

    provider = make_provider(entry(hash_key(Secret(FIRST))), production=True)
    assert log_in(provider, FIRST) is not None
    file.chmod(0o604)
    with pytest.raises(StartupError, match="everybody on this machine can read"):
        make_provider(production=True)
    assert make_provider() is not None


def rewrite(file: Path, text: str) -> None:
    """Write at once, as an editor does."""
    other = file.with_suffix(".new")
    other.write_text(text)
    other.chmod(0o600)
    os.replace(other, file)


def test_changes_are_seen(make_provider, file: Path) -> None:
    provider = make_provider(entry())
    rewrite(file, entry(SECOND, "other"))

    assert is_refused(provider, FIRST)
    identity = log_in(provider, SECOND)
    assert identity is not None
    assert identity.username == "other"


@pytest.mark.parametrize("broken", ["[[keys]\n", entry("other_1234"), "keys = 1"])
def test_a_broken_file_keeps_the_last_good_keys_and_says_so_once(make_provider, file, caplog, broken: str) -> None:
    provider = make_provider(entry())
    rewrite(file, broken)
    for _ in range(3):
        assert log_in(provider, FIRST) is not None
    assert caplog.text.count("the keys stay as they were") == 1
    assert FIRST not in caplog.text
    with pytest.raises(StartupError):
        provider.check()

    rewrite(file, entry(SECOND))
    assert is_refused(provider, FIRST)
    provider.check()


def test_a_file_that_is_gone_keeps_the_last_good_keys(make_provider, file: Path, caplog) -> None:
    provider = make_provider(entry())
    file.unlink()
    assert log_in(provider, FIRST) is not None
    assert "the keys stay as they were" in caplog.text
    file.write_text(entry(SECOND))
    assert is_refused(provider, FIRST)


@pytest.mark.rule("JWT-9")
def test_a_key_that_is_taken_away_is_revoked(make_provider, file: Path) -> None:
    provider = make_provider(entry() + entry(SECOND))
    identity = log_in(provider, FIRST)
    assert identity is not None
    assert not provider.is_revoked(identity)
    rewrite(file, "# a comment\n" + entry() + entry(SECOND))
    assert not provider.is_revoked(identity), "a change elsewhere ended a session"

    rewrite(file, entry(SECOND))
    assert provider.is_revoked(identity), "another key of the user keeps a revoked one alive"


@pytest.mark.rule("JWT-9")
@pytest.mark.parametrize("change", [{"user": "other"}, {"groups": '["new"]'}, {"roles": '["admin"]'}])
def test_an_entry_with_other_rights_ends_the_sessions_of_the_old_ones(make_provider, file, change) -> None:
    provider = make_provider(entry())
    identity = log_in(provider, FIRST)
    assert identity is not None
    rewrite(file, entry(**change))
    assert provider.is_revoked(identity)


def new(user: str = "etl", **more: object) -> KeyEntry:
    return KeyEntry(key=Secret(hash_key(make_key())), user=user, **more)  # type: ignore[arg-type]


def test_a_key_that_was_taken_away_is_named_and_not_shown(make_provider, file: Path) -> None:
    provider = make_provider(entry() + entry(SECOND, user="ana"))
    (gone,) = (known.entry_id for known in provider._file.keys if known.user == "etl")
    rewrite(file, entry(SECOND, user="ana"))
    for key, key_id, reason in (
        (FIRST, gone, "it was taken from the keys file"),
        ("sqe_unknown", "", "no entry of the keys file has this key"),
    ):
        with pytest.raises(InvalidCredentialsError) as caught:
            log_in(provider, key)
        assert (caught.value.key_id, caught.value.reason) == (key_id, reason)
        assert str(caught.value) == "Authentication failed"
    rewrite(file, entry())
    assert log_in(provider, FIRST) is not None, "it came back"


def test_entries_are_added_and_taken_away_and_comments_stay(file: Path) -> None:
    file.write_text("# the keys of the loaders\n" + entry() + "\n# of Bob\n" + entry(SECOND, "bob"))
    file.chmod(0o640)
    added = new('Bob "B" O\'Neill\\', description="tab\there", groups=("a", "ü"))
    append_entry(file, added)
    first, second, third = parse(file.read_bytes(), file)
    assert third == added

    assert remove_entry(file, entry_id(first)) == first
    assert parse(file.read_bytes(), file) == (second, third)
    assert file.read_text().startswith("# the keys of the loaders\n\n# of Bob\n[[keys]]")
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert remove_entry(file, entry_id(third)) == third
    assert remove_entry(file, entry_id(second)) == second
    assert "# of Bob" in file.read_text()
    assert [path.name for path in file.parent.iterdir()] == ["keys.toml"]


def test_a_new_file_is_its_owners_alone(file: Path) -> None:
    append_entry(file, new())
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert len(KeyFileReader(file, strict=True).read().keys) == 1


@pytest.mark.parametrize("text", [f'keys = [{{ key = "{FIRST}", user = "etl" }}]\n', "keys = []\n"])
def test_a_file_of_another_shape_is_left_alone(file: Path, text: str) -> None:
    file.write_text(text)
    with pytest.raises(ConfigError, match="edit it by hand"):
        append_entry(file, new())
    for found in parse(text.encode(), file):
        with pytest.raises(ConfigError, match="edit it by hand"):
            remove_entry(file, entry_id(found))
    assert file.read_text() == text
    assert [path.name for path in file.parent.iterdir()] == ["keys.toml"]


def test_a_table_in_a_text_is_no_table(file: Path) -> None:
    tricky = entry(description='"""\n[[keys]]\n"""') + entry(SECOND)
    file.write_text(tricky)
    with pytest.raises(ConfigError, match="edit it by hand"):
        remove_entry(file, entry_id(parse(tricky.encode(), file)[0]))
    assert file.read_text() == tricky


@pytest.mark.parametrize("wanted", ["", "nothere", FIRST])
def test_an_unknown_id_is_an_error(file: Path, wanted: str) -> None:
    file.write_text(entry())
    with pytest.raises(ConfigError, match="has no key"):
        remove_entry(file, wanted)
    with pytest.raises(ConfigError, match="cannot change"):
        remove_entry(file.with_name("missing.toml"), wanted)
    with pytest.raises(ConfigError, match="cannot open the folder"):
        append_entry(file.parent / "missing" / "keys.toml", new())


def test_writers_at_once_lose_nothing(file: Path) -> None:
    import threading

    threads = [threading.Thread(target=append_entry, args=(file, new(f"user{number}"))) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert len(parse(file.read_bytes(), file)) == 12
