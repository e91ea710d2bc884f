"""Catalogs that speak of their objects with exceptions of their own: Glue (moto), and Hive's metastore in the JVM."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest
from testbed.moto import REGION, Moto, running_moto

from sqe_core.engine.port import EngineCatalog, EngineExecutionError
from sqe_core.engine.spark.engine import SparkEngine
from sqe_core.query.errors.translate import translate
from sqe_core.spi.errors import ErrorCode, ObjectNotFoundError, UserError
from sqe_core.sql.statement import StatementKind

GLUE = {"type": "glue", "client.region": REGION}
OF_PROPERTIES = "software.amazon.awssdk.auth.credentials.SystemPropertyCredentialsProvider"
ANONYMOUS = "software.amazon.awssdk.auth.credentials.AnonymousCredentialsProvider"


@pytest.fixture(scope="module")
def moto() -> Iterator[Moto]:
    with running_moto() as running:
        yield running


@pytest.fixture(scope="module")
def backends(
    engine: SparkEngine, moto: Moto, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, EngineCatalog]]:
    folder = tmp_path_factory.mktemp("backends")
    session = engine.open_session()
    glue = {"glue.endpoint": moto.url, "client.credentials-provider": OF_PROPERTIES}
    files = {"warehouse": f"file://{folder}", "io-impl": "org.apache.iceberg.hadoop.HadoopFileIO"}
    hive = {
        "type": "hive",
        "hadoop.hive.metastore.schema.verification": "false",
        "hadoop.datanucleus.schema.autoCreateAll": "true",
        "hadoop.datanucleus.connectionPoolingType": "none",
        "hadoop.javax.jdo.option.ConnectionURL": f"jdbc:derby:memory:{uuid.uuid4().hex};create=true",
    }
    mounted = {}
    for name, properties in {"glue": GLUE | glue | files, "hive": hive | files}.items():
        alias = f"_sqe_c_{uuid.uuid4().hex}"
        session.mount(alias, properties)
        mounted[name] = session.catalog(alias)
    yield mounted
    session.close()


@pytest.fixture(params=["glue", "hive"])
def catalog(
    engine: SparkEngine, backends: dict[str, EngineCatalog], request: pytest.FixtureRequest
) -> Iterator[EngineCatalog]:
    system = engine.context._jvm.java.lang.System
    for key in ("aws.accessKeyId", "aws.secretAccessKey"):
        system.setProperty(key, "key")
    yield backends[request.param]
    for key in ("aws.accessKeyId", "aws.secretAccessKey"):
        system.clearProperty(key)


@pytest.mark.rule("ERR-5")
def test_a_schema_that_is_not_there(catalog: EngineCatalog) -> None:
    nowhere = ("nowhere",)
    for read in (catalog.list_tables, catalog.list_views, catalog.list_objects, catalog.load_namespace):
        with pytest.raises(ObjectNotFoundError, match="Schema 'nowhere' does not exist") as missing:
            read(nowhere)
        assert missing.value.code is ErrorCode.SCHEMA_NOT_FOUND
    with pytest.raises(ObjectNotFoundError, match="Schema 'nowhere' does not exist"):
        catalog.drop_namespace(nowhere)
    with pytest.raises(ObjectNotFoundError, match=r"Table 'nowhere\.t' does not exist"):
        catalog.load_table(nowhere, "t")
    with pytest.raises(ObjectNotFoundError, match=r"Table 'nowhere\.t' does not exist"):
        catalog.drop_table(nowhere, "t", purge=False)


def test_a_schema_from_its_start_to_its_end(catalog: EngineCatalog) -> None:
    ns = ("made",)
    catalog.create_namespace(ns, {})
    assert ns in catalog.all_namespaces()
    assert list(catalog.list_namespaces(ns)) == []
    assert catalog.list_objects(ns) == ([], [])
    with pytest.raises(UserError, match="already exists"):
        catalog.create_namespace(ns, {})
    with pytest.raises(ObjectNotFoundError, match=r"Table 'made\.t' does not exist"):
        catalog.load_table(ns, "t")
    catalog.drop_namespace(ns)
    with pytest.raises(ObjectNotFoundError):
        catalog.load_namespace(ns)


@pytest.mark.rule("ERR-1")
@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({"client.region": REGION}, "A store or catalog at AWS has no keys"),
        ({"client.credentials-provider": ANONYMOUS}, "A store or catalog at AWS has no region"),
    ],
)
def test_what_a_catalog_at_aws_lacks_is_told(engine: SparkEngine, properties: dict[str, str], message: str) -> None:
    session = engine.open_session()
    try:
        session.mount("_sqe_c_lacking", {"type": "glue", "warehouse": "s3://bucket/path", **properties})
        with pytest.raises(EngineExecutionError) as failed:
            session.catalog("_sqe_c_lacking").list_namespaces()
        failure = failed.value.failure
        shown = translate(failure, kind=StatementKind.SHOW, query_id="q1")
        assert (shown.message, shown.code) == (message, ErrorCode.STORAGE_ERROR)
        assert any("software.amazon.awssdk" in cause and "Unable to load" in cause for cause in failure.causes)
    finally:
        session.close()
