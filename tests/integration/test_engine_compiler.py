"""The bridge's compiler, on every Java of this machine that the engine runs on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from sqe_core.engine.spark.compiler import COMPILER_JAR, compile_sources
from sqe_core.engine.spark.jars import fetch_jars, read_lock
from sqe_core.engine.spark.java import Java, candidates
from sqe_core.engine.spark.options import EngineOptions
from sqe_core.spi.errors import StartupError

JAVAS = [java for java in candidates(None) if java.problem is None]


def compiled(java: Java, folder: Path, sources: Sequence[Path]) -> set[str]:
    lock = [jar for jar in read_lock() if jar.file_name.startswith(COMPILER_JAR)]
    (compiler,) = fetch_jars(EngineOptions(), [], lock=lock)
    classes = folder / "classes"
    classes.mkdir()
    compile_sources(java, compiler, [], sources, classes)
    return {path.name for path in classes.rglob("*.class")}


@pytest.mark.parametrize("java", JAVAS, ids=str)
def test_java_17_is_compiled(java: Java, tmp_path: Path) -> None:
    source = tmp_path / "Pair.java"
    source.write_text("record Pair(int a, int b) { static final Runnable R = () -> System.gc(); }\n")
    assert compiled(java, tmp_path, [source]) == {"Pair.class"}


@pytest.mark.parametrize("java", JAVAS, ids=str)
def test_each_error_has_its_file_line_and_column(java: Java, tmp_path: Path) -> None:
    first, second = tmp_path / "First.java", tmp_path / "Second.java"
    first.write_text("class First {\n  /* é */ int a = nothing;\n  Missing b;\n}\n", encoding="utf-8")
    second.write_text("class Second {\n  int one() { return 1 }\n}\n")
    with pytest.raises(StartupError) as caught:
        compiled(java, tmp_path, [first, second])
    heading, *errors = str(caught.value).splitlines()
    assert heading == "The Java bridge does not compile:"
    assert [error.partition(": ")[0] for error in errors] == [f"{first}:2:19", f"{first}:3:3", f"{second}:2:22"]
    assert "nothing cannot be resolved" in errors[0]
    assert "Missing cannot be resolved to a type" in errors[1]
    assert 'insert ";"' in errors[2]


def test_a_compiler_that_is_none_is_told(tmp_path: Path) -> None:
    with pytest.raises(StartupError, match="does not compile:\nError: Could not find"):
        compile_sources(JAVAS[0], tmp_path / "none.jar", [], [], tmp_path)
