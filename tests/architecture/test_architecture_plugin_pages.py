"""The keys of a plugin's kind stand on its page as they are in its `config_type`."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

from sqe_core.config.reference import plugin_table

DOCS = Path(__file__).parents[2] / "docs"
KEYS = re.compile(r"<!-- keys: (python -m sqe_core\.config\.reference (\S+)) -->\n((?:\|.*\n)*)")


def tables() -> list[tuple[str, str, str, str]]:
    return [
        (page.name, *found) for page in sorted(DOCS.glob("*.md")) for found in KEYS.findall(page.read_text("utf-8"))
    ]


@pytest.mark.parametrize(("page", "command", "config", "written"), tables())
def test_the_table_of_keys_is_current(page: str, command: str, config: str, written: str) -> None:
    module, _, name = config.partition(":")
    assert written == plugin_table(getattr(importlib.import_module(module), name)), f"{page}: run {command}"


def test_every_plugin_distribution_has_a_page_with_its_keys() -> None:
    named = {config.partition(".")[0] for _, _, config, _ in tables()}
    assert "sqe_policy_opa" in named
