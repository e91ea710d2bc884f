"""Every plan and expression class of the Spark and Iceberg that are installed is on a list, or the statement that holds
one could not be judged (ENF-6). The classes are read from the jars; no Java runs."""

from __future__ import annotations

import importlib.util
import json
import struct
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from sqe_core.engine.spark.jars import fetch_jars
from sqe_core.engine.spark.options import EngineOptions
from sqe_core.query.judge import allowed

PLAN = "org.apache.spark.sql.catalyst.plans.logical.LogicalPlan"
EXPRESSION = "org.apache.spark.sql.catalyst.expressions.Expression"
ABSTRACT = 0x0400
# Tags of the constant pool whose entries have a fixed size (JVM specification 4.4).
SIZES = {3: 5, 4: 5, 5: 9, 6: 9, 7: 3, 8: 3, 9: 5, 10: 5, 11: 5, 12: 5, 15: 4, 16: 3, 17: 5, 18: 5, 19: 3, 20: 3}


@dataclass(frozen=True)
class ClassFile:
    name: str
    superclass: str | None
    abstract: bool
    jar: str


def read_class(data: bytes, jar: str) -> ClassFile:
    """Read the head of a class file: its name, superclass and flags."""
    count = struct.unpack_from(">H", data, 8)[0]
    texts: dict[int, str] = {}
    classes: dict[int, int] = {}
    place, index = 10, 1
    while index < count:
        tag = data[place]
        if tag == 1:
            length = struct.unpack_from(">H", data, place + 1)[0]
            texts[index] = data[place + 3 : place + 3 + length].decode("utf-8", "replace")
            place += 3 + length
        else:
            if tag == 7:
                classes[index] = struct.unpack_from(">H", data, place + 1)[0]
            place += SIZES[tag]
            # Longs and doubles take two entries.
            index += tag in (5, 6)
        index += 1
    flags, this, parent = struct.unpack_from(">HHH", data, place)

    def name(entry: int) -> str:
        return texts[classes[entry]].replace("/", ".")

    return ClassFile(name(this), name(parent) if parent else None, bool(flags & ABSTRACT), jar)


def spark_jars() -> list[Path]:
    spec = importlib.util.find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    return sorted((Path(spec.origin).parent / "jars").glob("*.jar"))


def classes_of(jar: Path) -> Iterator[ClassFile]:
    with zipfile.ZipFile(jar) as archive:
        for name in archive.namelist():
            # Shaded libraries and other versions' classes are no part of Spark's plans.
            if name.endswith(".class") and not name.startswith("META-INF/") and "/shaded/" not in name:
                yield read_class(archive.read(name), jar.name)


@cache
def all_classes() -> Mapping[str, ClassFile]:
    own = [jar for jar in spark_jars() if jar.name.startswith("spark-")]
    iceberg = [jar for jar in fetch_jars(EngineOptions(), spark_jars()) if jar.name.startswith("iceberg-spark")]
    assert own
    assert iceberg
    found = {entry.name: entry for jar in own for entry in classes_of(jar)}
    for jar in iceberg:
        # Iceberg's extensions live in Spark's packages and in its own.
        found.update({entry.name: entry for entry in classes_of(jar) if "spark" in entry.name})
    return found


def concrete(root: str) -> dict[str, ClassFile]:
    """Return the classes that extend the root and can have instances."""
    classes = all_classes()

    def descends(entry: ClassFile) -> bool:
        parent = entry.superclass
        while parent is not None and parent != root:
            above = classes.get(parent)
            parent = above.superclass if above else None
        return parent == root

    return {name: entry for name, entry in classes.items() if not entry.abstract and descends(entry)}


def listed_plans() -> list[str]:
    lists = allowed.plans()
    names: set[str] = set()
    for moment in (lists.parsed, lists.analysed):
        names |= moment.query
        names = names.union(*moment.commands.values(), *moment.parts.values())
    return [*names, *lists.denied]


def listed_expressions() -> list[str]:
    lists = allowed.expressions()
    return [*(lists.parsed | lists.analysed), *lists.denied]


def show(names: Iterable[str]) -> str:
    return "\n".join(sorted(names))


@pytest.mark.rule("ENF-6", "TEST-7")
@pytest.mark.parametrize(("root", "listed"), [(PLAN, listed_plans), (EXPRESSION, listed_expressions)])
def test_every_class_is_classified_once(root: str, listed: object) -> None:
    assert callable(listed)
    classified = listed()
    found = concrete(root)
    assert len(found) > 300
    new = found.keys() - set(classified)
    assert not new, f"nobody classified these classes in sqe_core/query/allowed:\n{show(new)}"
    gone = set(classified) - found.keys()
    assert not gone, f"these classes do not exist:\n{show(gone)}"
    both = [name for name, count in Counter(classified).items() if count > 1]
    assert not both, f"these classes are allowed and denied:\n{show(both)}"


@pytest.mark.rule("ENF-6")
def test_a_class_that_nobody_classified_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    novel = ClassFile("com.example.Novel", PLAN, False, "novel.jar")
    monkeypatch.setitem(all_classes(), novel.name, novel)  # type: ignore[misc]
    assert novel.name in concrete(PLAN).keys() - set(listed_plans())


@pytest.mark.rule("ENF-6")
def test_what_runs_code_or_reads_files_is_denied() -> None:
    plans, expressions = allowed.plans(), allowed.expressions()
    for name in concrete(PLAN):
        simple = name.rsplit(".", 1)[-1]
        if any(word in simple for word in ("Python", "Script", "Pandas", "InR", "Variable", "Jar", "Dir", "Cache")):
            assert name in plans.denied, name
        if ".hive." in name or ".streaming." in name or ".execution.command." in name:
            assert name in plans.denied, name
    for name in concrete(EXPRESSION):
        simple = name.rsplit(".", 1)[-1]
        if any(
            word in simple for word in ("UDF", "UDTF", "UDAF", "Python", "Reflect", "InputFile", "Avro", "Protobuf")
        ):
            assert name in expressions.denied, name
        if ".hive." in name or ".physical." in name or name.startswith("org.apache.spark.ml."):
            assert name in expressions.denied, name


@pytest.mark.rule("FUNC-1", "OBS-9")
def test_the_lists_belong_to_the_installed_versions() -> None:
    versions = {jar.name.split("_2.13-")[-1] for jar in spark_jars() if jar.name.startswith("spark-sql_")}
    assert versions == {f"{allowed.REVIEWED_SPARK}.jar"}
    iceberg = [jar.name for jar in fetch_jars(EngineOptions(), spark_jars()) if jar.name.startswith("iceberg-spark")]
    assert all(name.endswith(f"-{allowed.REVIEWED_ICEBERG}.jar") for name in iceberg)


@pytest.mark.rule("ERR-2")
def test_every_error_template_belongs_to_a_condition_of_spark() -> None:
    from string import Formatter

    from sqe_core.query.errors.templates import templates

    (jar,) = [jar for jar in spark_jars() if jar.name.startswith("spark-common-utils_")]
    with zipfile.ZipFile(jar) as archive:
        conditions = json.loads(archive.read("error/error-conditions.json"))
    kinds = {"name", "names", "number", "count", "column", "type", "word", "token", "value"}
    for key, template in templates().spark.items():
        main, _, sub = key.partition(".")
        assert main in conditions, key
        assert not sub or sub in conditions[main]["subClass"], key
        text = " ".join(conditions[main]["message"])
        subclasses = conditions[main].get("subClass", {})
        texts = [subclasses[sub]] if sub else list(subclasses.values())
        text += " ".join(line for entry in texts for line in entry["message"])
        for _, name, kind, _ in Formatter().parse(template.text):
            assert name is None or f"<{name}>" in text, f"{key} has no parameter {name}"
            assert name is None or kind in kinds, f"{key}: {kind}"
        assert template.suggest is None or f"<{template.suggest}>" in text, key
