"""Bring together what a JVM of the engine is started from: a Java, Spark's jars, ours, and the compiled bridge."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from sqe_core.engine.spark.compiler import COMPILER_JAR, bridge_jar
from sqe_core.engine.spark.jars import fetch_jars
from sqe_core.engine.spark.java import find_java
from sqe_core.engine.spark.launcher import LaunchPlan
from sqe_core.engine.spark.options import EngineOptions, Report
from sqe_core.spi.errors import StartupError


def spark_home() -> Path:
    """Return the folder of the pyspark wheel, without importing it: the JVM shall start first."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None or not (Path(spec.origin).parent / "jars").is_dir():
        raise StartupError("The pyspark package is not installed", hint="pip install 'pyspark==4.1.*'")
    return Path(spec.origin).parent


def prepare_launch(options: EngineOptions, report: Report = lambda step, share: None) -> LaunchPlan:
    """Find, fetch, verify and compile whatever a start needs. Fast when everything is there."""
    home = spark_home()
    java = find_java(options.java_home)
    spark_jars = sorted((home / "jars").glob("*.jar"))
    jars = fetch_jars(options, spark_jars, report)
    (compiler,) = (jar for jar in jars if jar.name.startswith(COMPILER_JAR))
    ours = [jar for jar in jars if jar != compiler]
    bridge = bridge_jar(java, compiler, [*spark_jars, *ours], options.cache_dir / "engine", report)
    return LaunchPlan(
        java=java,
        spark_home=home,
        # The bridge comes first: it carries classes that take the place of some in Spark's jars (see compiler.py).
        class_path=(bridge, *spark_jars, *ours),
        executor_jars=(*ours, bridge),
        options=options,
    )
