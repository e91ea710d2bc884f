"""The Maven module of the bridge builds against what the engine runs with."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from importlib.metadata import version
from pathlib import Path

from sqe_core.engine.spark.jars import read_lock

CORE = Path(__file__).parents[2] / "sqe-core"
POM = ElementTree.parse(CORE / "pom.xml").getroot()
NAMESPACE = "{http://maven.apache.org/POM/4.0.0}"


def properties() -> dict[str, str]:
    found = POM.find(f"{NAMESPACE}properties")
    assert found is not None
    return {item.tag.removeprefix(NAMESPACE): item.text or "" for item in found}


def test_jars_have_the_versions_of_the_lock() -> None:
    filled = re.sub(
        r"\$\{([\w.]+)\}", lambda found: properties().get(found[1], found[0]), ElementTree.tostring(POM).decode()
    )
    pinned = {
        (item.findtext(f"{NAMESPACE}groupId"), item.findtext(f"{NAMESPACE}artifactId")): item.findtext(
            f"{NAMESPACE}version"
        )
        for item in ElementTree.fromstring(filled).iter(f"{NAMESPACE}dependency")
    }
    locked = {tuple(jar.artifact.split(":")[:2]): jar.artifact.split(":")[2] for jar in read_lock()}
    shared = pinned.keys() & locked.keys()
    assert len(shared) == 3  # Iceberg, its bundle for AWS, and the compiler
    assert {name: pinned[name] for name in shared} == {name: locked[name] for name in shared}


def test_spark_is_of_the_same_line() -> None:
    """A patch release of the pyspark wheel is there before that of the jars, or without one."""
    ours, wheel = (tuple(map(int, text.split("."))) for text in (properties()["spark.version"], version("pyspark")))
    assert ours[:2] == wheel[:2]
    assert ours <= wheel


def test_folders_follow_the_packages() -> None:
    """Else no IDE takes the sources for what they are."""
    for root in (CORE / "src/sqe_core/engine/spark/bridge", CORE / "tests/bridge"):
        sources = list(root.rglob("*.java"))
        assert sources
        for source in sources:
            package = ".".join(source.relative_to(root).parent.parts)
            assert f"package {package};" in source.read_text(encoding="utf-8"), source
