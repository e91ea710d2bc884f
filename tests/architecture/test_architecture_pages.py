"""The pages: keys of a plugin's kind are as in its `config_type`, and links lead somewhere."""

from __future__ import annotations

import importlib
import os
import re
from pathlib import Path

import pytest

from sqe_core.config.reference import plugin_table

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
KEYS = re.compile(r"<!-- keys: (python -m sqe_core\.config\.reference (\S+)) -->\n((?:\|.*\n)*)")
FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?![a-z]+:)([^)\s]+)\)")


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
    projects = (ROOT / "sqe-plugins").glob("*/pyproject.toml")
    assert named == {f"sqe_{project.parent.name.replace('-', '_')}" for project in projects}


def pages() -> list[Path]:
    folders = (DOCS, *ROOT.glob("sqe-*"))
    inside = (path for folder in folders for path in folder.rglob("*.md"))
    return sorted({*ROOT.glob("*.md"), *inside})


def anchors(page: Path) -> set[str]:
    """What GitHub calls the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", FENCED.sub("", page.read_text("utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    for link in LINK.findall(FENCED.sub("", page.read_text("utf-8"))):
        target, _, anchor = link.partition("#")
        found = (page.parent / target).resolve() if target else page
        assert found.exists(), link
        assert not anchor or anchor in anchors(found), link


def test_the_map_names_files_and_names_that_are_there() -> None:
    """docs/architecture.md is where newcomers look first."""
    core, text = ROOT / "sqe-core" / "src" / "sqe_core", (DOCS / "architecture.md").read_text("utf-8")
    files = set(re.findall(r"(?<![\w/-])((?:[a-z_]+/)+[A-Za-z_]*\.?(?:py|java|toml)?)(?![\w{*…])", text))
    files = {path for path in files if path.split("/")[0] in set(os.listdir(core))}
    assert {path for path in files if not (core / path).exists()} == set()
    # `file` `Name.method`: the name is defined there.
    for path, name in re.findall(r"`((?:[a-z_]+/)+[a-z_]+\.py)` `([A-Z]\w+(?:\.\w+)?|[a-z_]+)`", text):
        for part in name.split("."):
            assert re.search(rf"(?:class|def) {part}\b", (core / path).read_text("utf-8")), f"{path}: {name}"
