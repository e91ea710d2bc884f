"""What is installed is read from .dist-info folders, without importing anything."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from sqe_core.plugins.discovery import discover, find_fault
from sqe_core.plugins.kinds import ExtensionPoint, Kind
from sqe_core.plugins.listing import list_plugins, main_list, render
from sqe_core.spi import SPI_VERSION


def test_reads_name_version_kinds_and_spi(site) -> None:
    site.install_plugin(kinds=("catalog.folder", "auth.header"))
    (plugin,) = discover(site.path)
    assert (plugin.name, plugin.distribution, plugin.version) == ("catalog-folder", "sqe-catalog-folder", "1.2.3")
    assert plugin.kinds == {Kind(ExtensionPoint.CATALOG, "folder"), Kind(ExtensionPoint.AUTH, "header")}
    assert plugin.spi == "1.0"
    assert find_fault(plugin) is None


def test_imports_nothing(site) -> None:
    site.install_plugin(code="raise RuntimeError('imported')")
    (plugin,) = discover(site.path)
    assert find_fault(plugin) is None
    assert "sqe_catalog_folder" not in sys.modules
    assert [row.status for row in list_plugins([plugin])] == ["installed"]


def test_two_plugins_of_one_distribution_keep_their_kinds_apart(site) -> None:
    site.install(
        "sqe-two",
        entry_points=(
            "[sqe.plugins]\none = two.one:One\nother = two.other:Other\n"
            "[sqe.plugins.kinds]\ncatalog.one = two.one:One\nauth.other = two.other:Other\n"
            "[sqe.plugins.spi]\n1.0 = two.one:One\n"
        ),
        files={"two/__init__.py": ""},
    )
    one, other = discover(site.path)
    assert {str(kind) for kind in one.kinds} == {"catalog.one"}
    assert {str(kind) for kind in other.kinds} == {"auth.other"}
    assert find_fault(one) is None
    assert find_fault(other) is None


def test_other_distributions_are_not_plugins(site) -> None:
    site.install("requests", entry_points="[console_scripts]\nx = y:z\n")
    site.install("urllib3")
    assert discover(site.path) == ()


def test_a_damaged_foreign_file_does_not_matter(site) -> None:
    site.install("damaged", entry_points="[console_scripts]\nno equals sign here\n")
    site.install_plugin()
    assert [plugin.name for plugin in discover(site.path)] == ["catalog-folder"]


def test_files_that_are_no_text_do_not_matter(site) -> None:
    site.install("damaged", entry_points="")
    (site.folder / "damaged-1.2.3.dist-info" / "entry_points.txt").write_bytes(b"\xff\xfe\x00")
    site.install("worse", entry_points="[sqe.plugins]\nx = m:C\n")
    (site.folder / "worse-1.2.3.dist-info" / "METADATA").write_bytes(b"Name: w\xff\n")
    site.install_plugin()
    found = {plugin.name: find_fault(plugin) for plugin in discover(site.path)}
    assert found == {"catalog-folder": None, "worse-1.2.3.dist-info": "its METADATA file is missing or damaged"}


def test_the_first_of_two_copies_counts(site, tmp_path: Path) -> None:
    site.install_plugin(version="2.0")
    second = tmp_path / "older"
    type(site)(second).install_plugin(version="1.0")
    (plugin,) = discover([str(site.folder), str(second)])
    assert plugin.version == "2.0"


@pytest.mark.parametrize(
    ("entry_points", "fault"),
    [
        ("[sqe.plugins]\nthis line has no equals sign\n", "its entry_points.txt cannot be read"),
        ("[sqe.plugins]\nx = not a reference\n", "is not of the form module:Class"),
        ("[sqe.plugins]\nx = module.without.cls\n", "is not of the form module:Class"),
        ("[sqe.plugins]\nx = m:C\n[sqe.plugins.kinds]\nkatalog.y = m:C\n", "declares 'katalog.y', which is no kind"),
        ("[sqe.plugins]\nx = m:C\n[sqe.plugins.kinds]\ncatalog = m:C\n", "declares 'catalog', which is no kind"),
        ("[sqe.plugins.kinds]\ncatalog.y = m:C\n", "m:C has kinds or an SPI version, but no entry in [sqe.plugins]"),
        ("[sqe.plugins]\nx = m:C\n[sqe.plugins.spi]\n1.0 = m:C\n1.1 = m:C\n", "names 2 versions of the SPI"),
    ],
)
def test_faults_of_a_declaration_are_said(site, entry_points: str, fault: str) -> None:
    site.install("sqe-broken", entry_points=entry_points)
    faults = [find_fault(plugin) or "" for plugin in discover(site.path)]
    assert any(fault in found for found in faults), faults


def test_missing_metadata_is_said(site) -> None:
    site.install("sqe-broken", metadata="", entry_points="[sqe.plugins]\nx = m:C\n")
    (plugin,) = discover(site.path)
    assert find_fault(plugin) == "its METADATA file is missing or damaged"
    assert plugin.distribution == "sqe_broken-1.2.3.dist-info"


@pytest.mark.parametrize("spi", ["2.0", "0.9", "1.99", "one", "1", "1.x"])
def test_another_spi_is_said(site, spi: str) -> None:
    site.install_plugin(spi=spi)
    (plugin,) = discover(site.path)
    assert find_fault(plugin) == f"needs SPI {spi}, this is {SPI_VERSION}"


def test_missing_package_is_said(site) -> None:
    site.install_plugin(code=None)
    (plugin,) = discover(site.path)
    assert find_fault(plugin) == "its package sqe_catalog_folder is missing"


def test_core_declares_itself() -> None:
    core = discover()[0]
    assert (core.name, core.distribution) == ("core", "sqe-core")
    assert find_fault(core) is None


def test_list_shows_broken_beside_whole_ones(site) -> None:
    site.install_plugin()
    site.install("sqe-broken", entry_points="[sqe.plugins]\nno equals sign\n")
    site.install_plugin("sqe-auth-header", package="sqe_auth_header", kinds=("auth.header",), spi="2.0")
    rows = list_plugins(discover(site.path))
    assert [(row.kind, row.name, row.plugin, row.spi) for row in rows] == [
        ("auth", "header", "auth-header", "2.0"),
        ("catalog", "folder", "catalog-folder", "1.0"),
        ("-", "-", "sqe-broken", "-"),
    ]
    assert rows[0].status == f"broken: needs SPI 2.0, this is {SPI_VERSION}"
    assert rows[1].status == "installed"
    assert rows[2].status.startswith("broken: its entry_points.txt cannot be read")


def test_list_marks_duplicates(site) -> None:
    site.install_plugin()
    site.install_plugin("sqe-catalog-other", package="sqe_catalog_other")
    statuses = [row.status for row in list_plugins(discover(site.path))]
    assert statuses == ["duplicate: another distribution declares it too"] * 2


def test_table_is_aligned(site) -> None:
    site.install_plugin()
    lines = render(list_plugins(discover(site.path))).splitlines()
    assert lines[0].split() == ["kind", "name", "plugin", "distribution", "version", "SPI", "status"]
    assert lines[1].index("installed") == lines[0].index("status")


def test_main_list_prints_the_core(capsys: pytest.CaptureFixture[str], site) -> None:
    site.install("sqe-broken", entry_points="[sqe.plugins]\nno equals sign\n")
    assert main_list() == 0
    output = capsys.readouterr().out
    assert re.search(r"catalog +sqlite", output)
    assert "built in" in output
    assert "broken: its entry_points.txt cannot be read" in output
