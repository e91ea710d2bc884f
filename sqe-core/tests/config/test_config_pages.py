"""Every configuration that a page shows can be copied: it loads, and the kinds that are built in know their keys."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from sqe_core.bootstrap.instances import configured_instances
from sqe_core.config import load
from sqe_core.plugins.manager import PluginManager

ROOT = Path(__file__).parents[3]
PAGES = [ROOT / "README.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("*/README.md"), *ROOT.glob("*/*/README.md")]
_BLOCK = re.compile(r"^```toml *(?:title=\"([^\"]*)\")?\n(.*?)^```", re.MULTILINE | re.DOTALL)
_ENVIRONMENT = re.compile(r'\{ *env *= *"(\w+)" *\}')
# What has to be there when the server starts; a page shows where people keep it.
_FILE = re.compile(r'((?:\b(?:cert_file|key_file|ca_file)|\{ *file) *= *)"[^"]*"')
# Kinds of the vendor in the examples.
_OTHERS = ("catalog type 'folder'", "login provider 'badge'", "policy engine 'weekend'", "'acme-chronicle'")


def blocks() -> Iterator[object]:
    for page in sorted(set(PAGES)):
        text = page.read_text(encoding="utf-8")
        for match in _BLOCK.finditer(text):
            if match[1] in (None, "sqe.toml"):
                place = f"{page.relative_to(ROOT)}:{text[: match.start()].count(chr(10)) + 1}"
                yield pytest.param(match[2], id=place)


@pytest.mark.parametrize("text", list(blocks()))
def test_what_a_page_shows_loads(tmp_path: Path, text: str) -> None:
    (tmp_path / "file").write_text("long-and-random-51fa")
    (tmp_path / "file").chmod(0o600)
    (tmp_path / "sqe.toml").write_text(_FILE.sub(rf'\1"{tmp_path / "file"}"', text))
    environ = dict.fromkeys(_ENVIRONMENT.findall(text), "long-and-random-51fa")

    loaded = load(tmp_path / "sqe.toml", environ=environ)
    faults = configured_instances(loaded, PluginManager()).faults
    assert [fault for fault in faults if not any(kind in fault for kind in _OTHERS)] == []


def test_there_are_pages_with_configurations() -> None:
    places = [str(getattr(block, "id", "")) for block in blocks()]
    assert {"README.md", "docs/server.md", "docs/logins.md"} <= {place.partition(":")[0] for place in places}
