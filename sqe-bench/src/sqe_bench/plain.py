"""Plain PySpark on the JVM that SQE started: the yardstick."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa

from sqe_core.bootstrap import EmbeddedSqe
from sqe_core.engine.spark.engine import SparkEngine


class PlainSpark:
    """A PySpark session in SQE's JVM, with the warehouse mounted by its stored name, the way Iceberg's manual says."""

    def __init__(self, sqe: EmbeddedSqe, warehouse: Path) -> None:
        engine = sqe.sqe.engine
        assert isinstance(engine, SparkEngine)
        own = engine.context._gateway.java_parameters
        os.environ["PYSPARK_GATEWAY_PORT"] = str(own.port)
        os.environ["PYSPARK_GATEWAY_SECRET"] = own.auth_token
        os.environ["PYSPARK_PIN_THREAD"] = "true"
        from pyspark import SparkConf, SparkContext
        from pyspark.java_gateway import launch_gateway
        from pyspark.sql import SparkSession

        gateway = launch_gateway()
        jvm: Any = gateway.jvm
        scala = jvm.org.apache.spark.SparkContext.getOrCreate()
        conf = SparkConf(_jvm=jvm, _jconf=scala.getConf())
        context = SparkContext(conf=conf, gateway=gateway, jsc=jvm.org.apache.spark.api.java.JavaSparkContext(scala))
        root = jvm.org.apache.spark.sql.classic.SparkSession.getDefaultSession().get()
        self._context = context
        self._session = SparkSession(context, root.newSession())
        for key, value in {
            "": "org.apache.iceberg.spark.SparkCatalog",
            ".type": "jdbc",
            ".uri": f"jdbc:sqlite:{warehouse / 'sqe.db'}",
            ".warehouse": f"file://{warehouse}",
            ".jdbc.schema-version": "V1",
            ".cache-enabled": "false",
        }.items():
            self._session.conf.set(f"spark.sql.catalog.iceberg{key}", value)

    def read_all(self, sql: str) -> pa.Table:
        """Run a query and take its whole result as Arrow."""
        return self._session.sql(sql).toArrow()

    def jobs(self) -> int:
        """How many jobs the context has started."""
        return int(self._context._jsc.sc().dagScheduler().nextJobId())
