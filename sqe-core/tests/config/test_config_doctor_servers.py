"""`sqe doctor` asks what the configuration names: half of it down, wrong, slow, or with another clock."""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest

from sqe_core.catalog.backends import SqliteBackend
from sqe_core.cli.doctor import doctor, reachability
from sqe_core.cli.doctor.examinations import Finding, Level
from sqe_core.cli.doctor.reachability import examine_servers
from sqe_core.config import load
from sqe_core.config.loading import LoadedConfig
from sqe_http.testing import HttpFake, Reply, Request

SECRET = "canary-77c1-secret"


class Idp(HttpFake):
    """An identity provider of which only its metadata and its clock count."""

    def __init__(self) -> None:
        super().__init__()
        self.url += "/realms/main"
        self.metadata: Callable[[], bytes] = lambda: json.dumps({"issuer": self.url}).encode()
        self.ahead_secs = 0.0
        self.has_clock = True
        self.status = 200
        self.more: dict[str, str] = {}
        self.gate: threading.Event | None = None

    def usual_headers(self) -> Mapping[str, str]:
        return {"Date": formatdate(time.time() + self.ahead_secs, usegmt=True) if self.has_clock else "", **self.more}

    def honest(self, request: Request) -> Reply:
        if self.gate is not None:
            self.gate.wait(20)
        return Reply(status=self.status, body=self.metadata())

    def stop(self) -> None:
        if self.gate is not None:
            self.gate.set()
        super().stop()


@pytest.fixture
def idp() -> Iterator[Idp]:
    made = Idp()
    yield made
    made.stop()


@pytest.fixture
def make_config(tmp_path: Path) -> Callable[[str], LoadedConfig]:
    def make(text: str) -> LoadedConfig:
        (tmp_path / "sqe.toml").write_text(text)
        return load(tmp_path / "sqe.toml", environ={})

    return make


def closed_port() -> int:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        return int(unused.getsockname()[1])


def provider(issuer: str, more: str = "") -> str:
    return f'[[auth.providers]]\ntype = "bearer_token"\nissuer = "{issuer}"\naudience = "sqe"\n{more}\n'


def about(findings: list[Finding], *subjects: str) -> list[tuple[Level, str]]:
    return [(finding.level, finding.text) for finding in findings if finding.subject in subjects]


@pytest.mark.parametrize(
    ("ahead", "level", "told"),
    [
        (0, Level.OK, "to a few seconds"),
        (12, Level.NOTE, "s behind identity provider"),
        (3600, Level.PROBLEM, "good tokens are refused; set both by NTP"),
        (-3600, Level.PROBLEM, "s ahead of identity provider"),
    ],
)
def test_the_clock_of_the_identity_provider(idp: Idp, make_config, ahead: int, level: Level, told: str) -> None:
    idp.ahead_secs = ahead
    ((found, text),) = about(list(examine_servers(make_config(provider(idp.url)))), "clock")
    assert found is level
    assert told in text


def test_a_clock_that_is_not_told(idp: Idp, make_config) -> None:
    idp.has_clock = False
    ((level, text),) = about(list(examine_servers(make_config(provider(idp.url)))), "clock")
    assert (level, "does not say what time it is" in text) == (Level.NOTE, True)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"status": 404}, "has no metadata: status 404; is the address right?"),
        ({"metadata": lambda: b"<html>Welcome</html>"}, "answered with HTML (status 200); is the address right?"),
        ({"metadata": lambda: b"{}"}, "says that the issuer is something else; write exactly that"),
        ({"status": 302, "more": {"Location": "http://127.0.0.1:9/"}}, "answered with a redirect, which is not foll"),
    ],
)
def test_an_address_that_is_no_issuer(idp: Idp, make_config, change: dict[str, Any], told: str) -> None:
    for name, value in change.items():
        setattr(idp, name, value)
    findings = about(list(examine_servers(make_config(provider(idp.url)))), "login")
    assert any(level is Level.PROBLEM and told in text for level, text in findings), findings


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("http://127.0.0.1:CLOSED/realms/main", "cannot be reached; check its address, port"),
        ("https://127.0.0.1:IDP/realms/main", "is not the server that its certificate has to name"),
        ("https://idp.invalid/realms/main", "cannot be reached; check its address, port"),
    ],
)
def test_an_identity_provider_that_is_not_there(idp: Idp, make_config, url: str, told: str, monkeypatch) -> None:
    def unknown(host: str, *args: Any, **kwargs: Any) -> Any:
        if host.endswith(".invalid"):
            raise socket.gaierror(-2, "Name or service not known")
        return find(host, *args, **kwargs)

    find = socket.getaddrinfo
    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    url = url.replace("CLOSED", str(closed_port())).replace("IDP", str(idp.port))
    findings = about(list(examine_servers(make_config(provider(url)))), "login")
    assert any(level is Level.PROBLEM and told in text for level, text in findings), findings


def test_half_of_it_hangs_and_the_rest_is_told_in_time(idp: Idp, make_config, tmp_path: Path) -> None:
    idp.gate = threading.Event()
    (tmp_path / "keys.toml").write_text("")
    text = provider(idp.url) + f'[[auth.providers]]\ntype = "api_key"\nkeys_file = "{tmp_path}/keys.toml"\n'
    text += f'[catalogs.db]\ntype = "jdbc"\nurl = "postgresql://u:{SECRET}@127.0.0.1:{closed_port()}/x"\n'
    text += f'warehouse = "{tmp_path}"\n[storage]\ns3_endpoint = "http://127.0.0.1:{closed_port()}"\n'
    began = time.monotonic()
    findings = list(examine_servers(make_config(text), patience_secs=1.0))
    assert time.monotonic() - began < 5

    assert any("did not answer within 1 s" in text for _, text in about(findings, "clock"))
    assert (Level.OK, "login provider api_key can be used") in about(findings, "login")
    assert any(level is Level.PROBLEM and "cannot be reached" in t for level, t in about(findings, "catalog"))
    assert any(level is Level.PROBLEM and "cannot be reached" in t for level, t in about(findings, "storage"))
    assert SECRET not in repr(findings)


def test_a_warehouse_that_cannot_be_written(make_config, tmp_path: Path, monkeypatch) -> None:
    SqliteBackend.at(tmp_path / "lake")
    loaded = make_config(f'[catalogs.lake]\ntype = "sqlite"\ndirectory = "{tmp_path}/lake"\n')
    assert about(list(examine_servers(loaded)), "catalog") == [(Level.OK, "catalog lake (sqlite) can be used")]
    monkeypatch.setattr(os, "access", lambda place, mode: not str(place).startswith(str(tmp_path / "lake")))
    ((level, text),) = about(list(examine_servers(loaded)), "catalog")
    assert (level, "catalog lake (sqlite) cannot be written: " in text) == (Level.PROBLEM, True)


def test_a_provider_that_fails_says_nothing_of_its_own(make_config, monkeypatch) -> None:
    def fails(say: Any) -> None:
        raise ValueError(f"GET https://u:{SECRET}@idp failed")

    monkeypatch.setattr(reachability, "_stores", lambda loaded: [reachability._Task(subject="x", name="x", ask=fails)])
    (told,) = about(list(examine_servers(make_config(""))), "x")
    assert told == (Level.PROBLEM, "x failed with ValueError")


def test_secrets_of_the_configuration_are_not_printed(make_config, monkeypatch) -> None:
    def tells(say: Any) -> None:
        say(Level.OK, "x", f"it is {SECRET}, and {SECRET}2")

    monkeypatch.setattr(reachability, "_stores", lambda loaded: [reachability._Task(subject="x", name="x", ask=tells)])
    text = f'[[auth.providers]]\ntype = "api_key"\nclient_secret = "{SECRET}2"\n[policy]\nmask_key = "{SECRET}"\n'
    assert SECRET not in repr(list(examine_servers(make_config(text))))


def test_what_production_would_refuse_is_listed(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(doctor, "EXAMINATIONS", ())
    (tmp_path / "sqe.toml").write_text('[[auth.providers]]\ntype = "anonymous"\n[coordinator]\ndebug = true\n')
    told = [f.text for f in doctor.examine(tmp_path / "sqe.toml", {}) if f.subject == "production"]
    assert any("would be refused: " in text and "coordinator.debug: clients must not read" in text for text in told)
    assert any("auth.providers[0].type: the login provider 'anonymous' lets everybody in" in text for text in told)


def test_a_file_that_production_refuses_is_looked_at_all_the_same(idp: Idp, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(doctor, "EXAMINATIONS", ())
    idp.ahead_secs = 3600
    (tmp_path / "sqe.toml").write_text(provider(idp.url) + "[coordinator]\nproduction_mode = true\n")
    findings = list(doctor.examine(tmp_path / "sqe.toml", {}))
    assert any(finding.level is Level.FAULT and "rate limiting must be on" in finding.text for finding in findings)
    assert any(finding.level is Level.PROBLEM and finding.subject == "clock" for finding in findings)


def test_waivers_are_named(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(doctor, "EXAMINATIONS", ())
    for name in ("cert", "key", "keys"):
        (tmp_path / name).write_text("")
        (tmp_path / name).chmod(0o600)
    (tmp_path / "sqe.toml").write_text(
        f'[coordinator]\nproduction_mode = true\n[coordinator.tls]\ncert_file = "{tmp_path}/cert"\n'
        f'key_file = "{tmp_path}/key"\n[[auth.providers]]\ntype = "api_key"\nkeys_file = "{tmp_path}/keys"\n'
        "[rate_limit]\nenabled = true\n[security]\nallow_unkeyed_hash_masks = true\n"
        "allow_shared_service_identity = true\n"
        f'[catalogs.lake]\ntype = "sqlite"\ndirectory = "{tmp_path}"\n'
    )
    findings = list(doctor.examine(tmp_path / "sqe.toml", {}))
    assert about(findings, "production") == [
        (Level.NOTE, "accepted on request: security.allow_shared_service_identity"),
        (Level.NOTE, "accepted on request: security.allow_unkeyed_hash_masks"),
    ]
