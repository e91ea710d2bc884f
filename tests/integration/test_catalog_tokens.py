"""A mount's token is in one map of the engine and nowhere else: no setting, no plan, no task, no table."""

from __future__ import annotations

import base64
import secrets
from collections.abc import Iterator

import pytest
from testbed.rest_fixture import RestFixture

from sqe_core.engine.spark.engine import SparkEngine
from sqe_core.engine.spark.session import SparkEngineSession
from sqe_core.spi import Secret


@pytest.fixture(scope="module")
def rest() -> Iterator[RestFixture]:
    """Iceberg's own REST catalog."""
    with RestFixture() as catalog:
        yield catalog.ready()


@pytest.mark.rule("ISO-7", "ERR-6")
def test_a_token_is_in_no_setting_no_plan_and_no_task(engine: SparkEngine, rest: RestFixture) -> None:
    tokens = [secrets.token_hex(20) for _ in range(2)]
    session = engine.open_session()
    assert isinstance(session, SparkEngineSession)
    alias = "_sqe_c_" + secrets.token_hex(16)
    files = {"io-impl": "org.apache.iceberg.hadoop.HadoopFileIO"}
    session.mount(alias, {"type": "rest", "sqe.mount": "rest", "uri": rest.url, **files}, token=Secret(tokens[0]))
    session.catalog(alias).create_namespace(("hr",), {})
    session.renew_token(alias, Secret(tokens[1]))
    jvm, spark = session.context._jvm, session.spark._jsparkSession
    jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession(spark)
    try:
        spark.sql(f"CREATE TABLE `{alias}`.hr.emp (id bigint) USING iceberg")
        spark.sql(f"INSERT INTO `{alias}`.hr.emp VALUES (1), (2)")
        frame = spark.sql(f"SELECT count(*) FROM `{alias}`.hr.emp WHERE id > 1")
        assert frame.collectAsList().get(0).getLong(0) == 1
    finally:
        jvm.org.apache.spark.sql.classic.SparkSession.clearActiveSession()
    context = spark.sparkContext()
    hadoop = jvm.java.io.StringWriter()
    context.hadoopConfiguration().writeXml(hadoop)
    catalog = spark.sessionState().catalogManager().catalog(alias).icebergCatalog()
    table = catalog.loadTable(jvm.org.apache.iceberg.catalog.TableIdentifier.parse("hr.emp"))
    task = jvm.org.apache.iceberg.SerializableTable.copyOf(table)
    places = {
        "settings of the session": spark.conf().getAll().toString(),
        "settings of Spark": context.getConf().toDebugString(),
        "settings of Hadoop": hadoop.toString(),
        "properties of the JVM": jvm.java.lang.System.getProperties().toString(),
        "environment": jvm.java.lang.System.getenv().toString(),
        "plans": frame.queryExecution().toString(),
        "plan as JSON": frame.queryExecution().analyzed().toJSON(),
        "stored jobs": context.statusStore().jobsList(None).toString(),
        "file access of a table": table.io().properties().toString(),
        "task": base64.b64decode(
            jvm.org.apache.iceberg.util.SerializationUtil.serializeToBase64(task), validate=False
        ).decode("latin-1"),
    }
    assert "hr.emp" in places["plans"]
    assert "emp" in places["task"]
    for place, text in places.items():
        for token in tokens:
            assert token not in text, place
    session.close()
