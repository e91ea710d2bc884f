"""The table of a policy engine that a plugin brings: the core keeps none of its keys, and knows what to install."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqe_core.bootstrap.instances import configured_instances
from sqe_core.config import LoadedConfig, load
from sqe_core.plugins.discovery import discover
from sqe_core.plugins.manager import PluginManager

OPA = '[policy]\nengine = "opa"\n[policy.opa]\nurl = "http://localhost:8181"\n'


def loaded(folder: Path, text: str, **environ: str) -> LoadedConfig:
    file = folder / "sqe.toml"
    file.write_text(text)
    return load(file, environ=environ)


def without_opa() -> PluginManager:
    return PluginManager([plugin for plugin in discover() if plugin.distribution != "sqe-policy-opa"])


def test_without_the_plugin_its_distribution_is_named(tmp_path: Path) -> None:
    (fault,) = configured_instances(loaded(tmp_path, OPA), without_opa()).faults
    assert fault.endswith("policy.engine: The policy engine 'opa' is not installed (pip install sqe-policy-opa)")


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ('[policy]\nengine = "opa"\n', "policy.opa.url: is missing"),
        (f"{OPA}timeout_sec = 5\n", 'sqe.toml:5: policy.opa.timeout_sec: unknown key; did you mean "timeout_secs"?'),
        (f"{OPA}timeout_secs = 0\n", "sqe.toml:5: policy.opa.timeout_secs: must be at least 1, not 0"),
        (f'{OPA}authz_path = "/v1/data"\n', "sqe.toml:5: policy.opa.authz_path: expected a path of words"),
        (f'{OPA}data_prefix = "sqe/../x"\n', "sqe.toml:5: policy.opa.data_prefix: expected a path of words"),
        (OPA.replace("localhost", "opa.example.com"), "policy.opa: url has to be https, or on this machine"),
        (OPA.replace("http://", "ftp://"), "policy.opa.url: expected a URL"),
    ],
)
def test_with_the_plugin_its_keys_are_checked(tmp_path: Path, text: str, fault: str) -> None:
    faults = configured_instances(loaded(tmp_path, text), PluginManager()).faults
    assert [one for one in faults if fault in one], faults


def test_the_environment_reaches_the_plugin(tmp_path: Path) -> None:
    faults = configured_instances(loaded(tmp_path, OPA, SQE_POLICY__OPA__MAX_RETRIES="99"), PluginManager()).faults
    assert [one for one in faults if "SQE_POLICY__OPA__MAX_RETRIES" in one and "at most 10" in one], faults
