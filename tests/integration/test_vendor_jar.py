"""A plugin brings a jar of its own: named by the backend, on the class path of the engine, used by the mount."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from sqe_core.bootstrap import OWNER, compose
from sqe_core.config.loading import load
from sqe_core.engine.port import EngineState
from sqe_core.engine.spark.compiler import COMPILER_JAR, compile_sources
from sqe_core.engine.spark.engine import EngineOptions
from sqe_core.engine.spark.jars import fetch_jars, read_lock
from sqe_core.engine.spark.java import find_java
from sqe_core.engine.spark.preparation import spark_home

SOURCES = Path(__file__).parents[1] / "vendor/metastore/java"


def build(folder: Path) -> Path:
    """Compile and pack what the vendor wrote, against the Iceberg that SQE runs with."""
    classes = folder / "classes"
    classes.mkdir()
    spark = list((spark_home() / "jars").glob("*.jar"))
    lock = [jar for jar in read_lock() if jar.file_name.startswith(COMPILER_JAR)]
    (compiler,) = fetch_jars(EngineOptions(), spark, lock=lock)
    iceberg = [jar for jar in read_lock() if jar.file_name.startswith("iceberg-spark-runtime")]
    class_path = [*fetch_jars(EngineOptions(), spark, lock=iceberg), *spark]
    compile_sources(find_java(None), compiler, class_path, list(SOURCES.rglob("*.java")), classes)
    with zipfile.ZipFile(folder / "acme-metastore.jar", "w") as jar:
        for path in classes.rglob("*.class"):
            jar.write(path, path.relative_to(classes))
    return folder / "acme-metastore.jar"


@pytest.mark.parametrize("there", [True, False])
def test_the_mount_runs_with_the_jar_of_its_plugin(tmp_path: Path, there: bool) -> None:
    jar = build(tmp_path) if there else tmp_path / "none.jar"
    (tmp_path / "sqe.toml").write_text(
        f"""
        [coordinator]
        memory_limit = "1GB"
        spill_dir = "{tmp_path}/spill"
        [catalogs.old]
        type = "metastore"
        file = "{tmp_path}/names.db"
        warehouse = "{tmp_path}/data"
        jar = "{jar}"
        [policy]
        engine = "passthrough"
        i_understand_no_enforcement = true
        """
    )
    sqe = compose(load(tmp_path / "sqe.toml", environ={}))
    try:
        sqe.engine.start()
        if not there:
            with pytest.raises(Exception, match=r"The jar .*/none\.jar of a plugin is not there"):
                sqe.engine.wait_ready(60)
            assert sqe.engine.state is EngineState.FAILED
            return
        session = sqe.open_session(OWNER, catalog="old", protocol="test")
        for sql in ("CREATE TABLE t AS SELECT 7 AS id", "INSERT INTO t VALUES (8)"):
            sqe.service.execute(session, sql).read_all()
        assert sqe.service.execute(session, "SELECT sum(id) AS n FROM t").read_all().to_pylist() == [{"n": 15}]
        metadata = session.metadata(session.catalogs.find("old"))  # type: ignore[arg-type]
        assert metadata.load_table(("default",), "t").properties["acme.kept-by"] == "metastore"
    finally:
        sqe.close()
