"""Only what is used is imported, and every failure names plugin, distribution, version and what to do."""

from __future__ import annotations

import sys
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sqe_core.plugins.discovery import discover
from sqe_core.plugins.kinds import KNOWN_DISTRIBUTIONS, ExtensionPoint, Kind
from sqe_core.plugins.lifecycle import Lifecycle
from sqe_core.plugins.manager import PluginManager
from sqe_core.spi import SPI_VERSION, CatalogContext, CatalogFactory, PluginContext, PluginError

LABEL = r"The plugin catalog-folder \(sqe-catalog-folder 1\.2\.3\)"
FOLDER = Kind.parse("catalog.folder")

HEAD = "from sqe_core.spi import *\nfrom sqe_core.spi import hookimpl\n"
BACKEND = """
class Backend(CatalogBackend):
    def spark_properties(self, identity):
        return {}
class Factory(CatalogFactory):
    kind = "folder"
    config_type = NoConfig
    def create(self, name, config, context):
        return Backend()
"""


def hook(body: str, name: str = "sqe_provide_catalogs") -> str:
    return f"{HEAD}{BACKEND}\nclass Plugin(SqePlugin):\n    @hookimpl\n    def {name}(self, context):\n        {body}\n"


def load(site) -> PluginManager:
    manager = PluginManager(discover(site.path))
    manager.factory(FOLDER)
    return manager


def test_loads_what_is_used(site) -> None:
    site.install_plugin()
    manager = load(site)
    factory = manager.catalog("folder")
    assert isinstance(factory, CatalogFactory)
    backend = factory.create("x", manager.factory(FOLDER).config_type(), CatalogContext())
    assert backend.spark_properties.__self__ is backend
    assert manager.catalog("folder") is factory


def test_imports_only_what_is_used(site) -> None:
    site.install_plugin()
    site.install_plugin("sqe-auth-header", package="sqe_auth_header", kinds=("auth.header",), code="raise SystemExit")
    load(site)
    assert "sqe_catalog_folder" in sys.modules
    assert "sqe_auth_header" not in sys.modules


def test_a_broken_plugin_that_nobody_uses_does_not_matter(site) -> None:
    site.install_plugin()
    site.install("sqe-broken", entry_points="[sqe.plugins]\nno equals sign\n")
    load(site)


def test_loads_on_demand(site) -> None:
    """ATTACH may name a catalog type that the configuration does not."""
    site.install_plugin()
    manager = PluginManager(discover(site.path))
    assert "sqe_catalog_folder" not in sys.modules
    manager.catalog("folder")
    assert "sqe_catalog_folder" in sys.modules


@pytest.mark.parametrize(
    ("kind", "distribution"),
    [
        ("auth.oidc_password", "sqe-auth-oidc"),
        ("auth.aws_iam", "sqe-auth-aws"),
        ("catalog.rest", "sqe-catalog-polaris"),
        ("policy.opa", "sqe-policy-opa"),
        ("policy.cedar", "sqe-policy-cedar"),
    ],
)
def test_missing_kind_names_what_to_install(kind: str, distribution: str) -> None:
    parsed = Kind.parse(kind)
    with pytest.raises(PluginError) as caught:
        PluginManager([]).factory(parsed)
    assert str(caught.value) == f"The {parsed.point.label} '{parsed.name}' is not installed"
    assert caught.value.hint == f"pip install {distribution}"


def test_hints_are_of_distributions_that_are_here() -> None:
    """Exactly those of this repository, with exactly their kinds."""
    declared = {
        Kind.parse(kind): project["project"]["name"]
        for file in Path(__file__).parents[3].glob("sqe-plugins/*/pyproject.toml")
        for project in [tomllib.loads(file.read_text())]
        for kind in project["project"]["entry-points"]["sqe.plugins.kinds"]
    }
    assert declared == KNOWN_DISTRIBUTIONS


def test_unknown_kind_suggests_a_known_one() -> None:
    with pytest.raises(PluginError, match="catalog type 'polaris2' is not known") as caught:
        PluginManager([]).factory(Kind(ExtensionPoint.CATALOG, "polaris2"))
    assert caught.value.hint == "did you mean 'polaris'?"


def test_unknown_kind_lists_the_known_ones(site) -> None:
    site.install_plugin()
    with pytest.raises(PluginError) as caught:
        PluginManager(discover(site.path)).factory(Kind(ExtensionPoint.CATALOG, "zzzz"))
    assert "folder" in (caught.value.hint or "")
    assert "polaris" in (caught.value.hint or "")


def test_unknown_kind_mentions_a_damaged_plugin(site) -> None:
    site.install("sqe-broken", entry_points="[sqe.plugins]\nno equals sign\n")
    with pytest.raises(PluginError, match=r"sqe-broken.*entry_points\.txt cannot be read"):
        load(site)


def test_known_distribution_without_the_kind(site) -> None:
    site.install_plugin("sqe-catalog-polaris", package="sqe_catalog_polaris", kinds=("catalog.rest",))
    with pytest.raises(PluginError, match=r"comes with sqe-catalog-polaris, but the installed .*does not declare it"):
        PluginManager(discover(site.path)).factory(Kind.parse("catalog.nessie"))


def test_duplicate_kind_stops(site) -> None:
    site.install_plugin()
    site.install_plugin("sqe-catalog-other", package="sqe_catalog_other", version="0.1")
    expected = r"catalog type 'folder' comes from sqe-catalog-folder 1\.2\.3 and sqe-catalog-other 0\.1; only one"
    with pytest.raises(PluginError, match=expected):
        load(site)


def test_built_in_kind_cannot_be_taken_over(site) -> None:
    site.install_plugin(kinds=("catalog.sqlite",))
    with pytest.raises(PluginError, match=r"'sqlite' comes from sqe-core .* and sqe-catalog-folder 1\.2\.3"):
        PluginManager().catalog("sqlite")


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("import no_such_module_5d1f", "is installed, but needs the Python module 'no_such_module_5d1f'"),
        ("import json.no_such", "is installed, but needs the Python module 'json.no_such'"),
        ("import sqe_core.no_such_room", r"needs sqe_core\.no_such_room, which this version of sqe-core does not have"),
        ("from sqe_core.spi import NoSuchName", "cannot be imported: ImportError"),
        ("1 / 0", "cannot be imported: ZeroDivisionError: division by zero"),
        ("assert False, 'no'", "cannot be imported: AssertionError: no"),
        ("raise SystemExit(3)", "cannot be imported: SystemExit: 3"),
        ("x = (", "cannot be imported: SyntaxError"),
        ("", r"its module sqe_catalog_folder\.plugin has no Plugin"),
        ("class Plugin: pass", "sqe_catalog_folder.plugin:Plugin is no subclass of SqePlugin"),
        ("Plugin = 3", "is no subclass of SqePlugin"),
        (HEAD + "class Plugin(SqePlugin):\n    def __init__(self): 1 / 0", "cannot be made: ZeroDivisionError"),
        (HEAD + "class Plugin(SqePlugin):\n    def __init__(self, x): ...", "cannot be made: TypeError"),
        (HEAD + "class Plugin(SqePlugin):\n    def sqe_provide_catalog(self): ...", "is no hook of SQE"),
        (HEAD + "class Plugin(SqePlugin):\n    config_type = dict", "its config_type is no frozen dataclass"),
        (hook("1 / 0"), "failed in sqe_provide_catalogs: ZeroDivisionError"),
        (hook("return None"), "sqe_provide_catalogs returned NoneType, not a sequence"),
        (hook("return [Factory]"), "returned .*Factory.*, which is no CatalogFactory"),
        (hook("return [Factory()]", "sqe_provide_auth_providers"), "which is no AuthProviderFactory"),
        (hook("return (Factory(), Factory())"), "provides the catalog type 'folder' twice"),
        (hook("Factory.kind = 'Fol der'; return (Factory(),)"), "a factory whose kind is 'Fol der'"),
        (hook("Factory.config_type = dict; return (Factory(),)"), "the config_type of 'folder' is no frozen dataclass"),
        (hook("Factory.kind = 'other'; return (Factory(),)"), r"provides catalog\.other without declaring it"),
        (hook("return ()"), r"declares catalog\.folder and does not provide it"),
        (
            HEAD + "class Plugin(SqePlugin):\n    @hookimpl\n    def sqe_provide_catalogs(self, startup): ...",
            r"does not fit the hooks: .*startup",
        ),
    ],
)
def test_broken_plugins_are_named(site, code: str, message: str) -> None:
    site.install_plugin(code=code)
    with pytest.raises(PluginError, match=f"(?s){LABEL}:?.*{message}"):
        load(site)


def test_broken_plugin_leaves_nothing_behind(site) -> None:
    site.install_plugin(code=hook("return ()"))
    manager = PluginManager(discover(site.path))
    for _ in range(2):
        with pytest.raises(PluginError, match="does not provide it"):
            manager.factory(FOLDER)


def test_missing_own_module_is_an_incomplete_installation(site) -> None:
    site.install_plugin()
    (site.folder / "sqe_catalog_folder" / "plugin.py").unlink()
    with pytest.raises(PluginError, match=r"its module sqe_catalog_folder\.plugin is missing") as caught:
        load(site)
    assert caught.value.hint == "pip install --upgrade --force-reinstall sqe-catalog-folder"


def test_missing_dependency_names_the_install_line(site) -> None:
    site.install_plugin(code="import no_such_module_5d1f")
    with pytest.raises(PluginError) as caught:
        load(site)
    assert caught.value.hint == "pip install --upgrade --force-reinstall sqe-catalog-folder"
    assert isinstance(caught.value.__cause__, ModuleNotFoundError)


def test_wrong_spi_stops_before_the_import(site) -> None:
    site.install_plugin(spi="2.0", code="raise SystemExit")
    with pytest.raises(PluginError, match=f"{LABEL}: needs SPI 2.0, this is {SPI_VERSION}"):
        load(site)


def test_plugin_by_name(site) -> None:
    site.install_plugin()
    manager = PluginManager(discover(site.path))
    manager.plugin("catalog-folder")
    assert type(manager.plugin("catalog-folder")).__name__ == "Plugin"
    with pytest.raises(PluginError, match="No plugin is called 'audit-siem'") as caught:
        manager.plugin("audit-siem")
    assert caught.value.hint == "installed plugins: catalog-folder"


def test_observer_starts_with_its_settings_and_stops(site) -> None:
    code = HEAD + (
        "class Plugin(SqePlugin):\n"
        "    calls = []\n"
        "    def start(self, config, context): self.calls.append((type(config).__name__, context.sqe_version))\n"
        "    def stop(self): self.calls.append('stop')\n"
    )
    site.install_plugin("sqe-audit-siem", package="sqe_audit_siem", kinds=(), code=code)
    manager = PluginManager(discover(site.path))
    config = manager.plugin("audit-siem").config_type()
    lifecycle = Lifecycle([manager.observer("audit-siem", config, PluginContext(sqe_version="1.2"))])
    lifecycle.start()
    lifecycle.stop()
    assert manager.plugin("audit-siem").calls == [("NoConfig", "1.2"), "stop"]


def test_many_threads_import_a_plugin_once(site) -> None:
    site.install_plugin()
    manager = PluginManager(discover(site.path))
    with ThreadPoolExecutor(max_workers=8) as pool:
        factories = list(pool.map(lambda _: manager.catalog("folder"), range(16)))
    assert len(set(map(id, factories))) == 1


def test_two_plugins_of_one_name(site) -> None:
    site.install_plugin()
    site.install_plugin("sqe-other", package="sqe_other", kinds=(), plugin="catalog-folder")
    with pytest.raises(PluginError, match="plugin name 'catalog-folder' comes from"):
        PluginManager(discover(site.path)).plugin("catalog-folder")
