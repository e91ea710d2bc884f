"""Catalogs that are attached and detached, and what may not be reached that way."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from sqe_core.catalog.attaching import Attachments, AttachRules
from sqe_core.catalog.backends import HadoopBackend, SqliteBackend
from sqe_core.catalog.factories import HadoopFactory, JdbcFactory, SqliteFactory
from sqe_core.catalog.local_places import LocalPlaces
from sqe_core.catalog.registry import CatalogRegistry, Mount
from sqe_core.engine.port import EngineExecutionError, EngineFailure
from sqe_core.spi.catalog import AttachRequest, AttachSecret, CatalogBackend, CatalogContext, CatalogFactory
from sqe_core.spi.errors import (
    ErrorCode,
    ExternalError,
    NotSupportedError,
    PluginError,
    QueryCancelledError,
    SqeError,
    UserError,
)
from sqe_core.spi.identity import Identity, Secret
from sqe_core.sql.reader import Reader
from sqe_core.sql.statement import TextLimits
from sqe_core.sql.statements.attachments import Attach, CreateSecret

CANARY = "kanarienvogel"


@dataclass(frozen=True)
class Settings:
    location: str
    token: Secret | None


class Backend(CatalogBackend):
    def __init__(self, settings: Settings, factory: Factory) -> None:
        self.settings = settings
        self.factory = factory
        self.identity_mode = factory.identity_mode
        self.closed = 0

    def spark_properties(self, identity: Identity) -> Mapping[str, str]:
        return {"uri": self.settings.location, "warehouse": self.factory.warehouse}

    def required_jars(self) -> Sequence[str]:
        return self.factory.jars

    def check(self) -> None:
        if self.factory.failure is not None:
            raise self.factory.failure

    def close(self) -> None:
        self.closed += 1
        self.factory.closed += 1


class Factory(CatalogFactory[Settings]):
    kind = "fake"
    config_type = Settings

    def __init__(self) -> None:
        self.identity_mode: Any = "shared"
        self.jars: tuple[str, ...] = ()
        self.failure: BaseException | None = None
        self.made: list[Backend] = []
        self.closed = 0
        self.warehouse = "s3://w"

    def attach(self, request: AttachRequest) -> Settings:
        request.check(optional=("warehouse",), secrets=("bearer",))
        self.warehouse = request.options.get("warehouse", self.warehouse)
        return Settings(request.location, request.secret.values["token"] if request.secret else None)

    def create(self, name: str, config: Settings, context: CatalogContext) -> Backend:
        self.made.append(Backend(config, self))
        return self.made[-1]


FACTORIES: dict[str, Callable[[], CatalogFactory[Any]]] = {
    "sqlite": SqliteFactory,
    "hadoop": HadoopFactory,
    "jdbc": JdbcFactory,
}


@dataclass
class Lake:
    registry: CatalogRegistry
    attachments: Attachments
    factory: Factory
    asked: list[str]
    flushed: list[bool]

    def attach(self, sql: str, probe: Callable[[Mount], object] | None = None) -> None:
        statement = read(sql)
        assert isinstance(statement, Attach)

        def ask(mount: Mount) -> None:
            self.asked.append(mount.name)
            if probe is not None:
                probe(mount)

        self.attachments.attach(statement, ask)

    def create(self, sql: str) -> None:
        statement = read(sql)
        assert isinstance(statement, CreateSecret)
        self.attachments.create_secret(statement)

    def names(self) -> list[str]:
        return [mount.name for mount in self.registry.mounts()]

    def refusal(self, sql: str, probe: Callable[[Mount], object] | None = None) -> SqeError:
        before = self.registry.mounts()
        with pytest.raises(SqeError) as caught:
            self.attach(sql, probe)
        assert self.registry.mounts() == before
        return caught.value


def read(sql: str) -> object:
    return Reader().read(sql, dialect="sqe", limits=TextLimits(max_bytes=100_000))


def make(*, places: LocalPlaces | None = None, mounts: Sequence[Mount] = (), **rules: Any) -> Lake:
    factory = Factory()
    flushed: list[bool] = []

    def factory_of(kind: str) -> CatalogFactory[Any]:
        if kind == "fake":
            return factory
        if kind in FACTORIES:
            return FACTORIES[kind]()
        raise PluginError(f"The catalog type '{kind}' is not known", hint="known ones: fake")

    registry = CatalogRegistry(
        [Mount(name="home", backend=HadoopBackend(warehouse="s3://h"), aliases=frozenset({"other"})), *mounts]
    )
    rules_ = AttachRules(factory_of=factory_of, places=places, **rules)
    attachments = Attachments(registry, rules_, changed=lambda: flushed.append(True))
    return Lake(registry, attachments, factory, [], flushed)


def test_attach_and_detach() -> None:
    lake = make()
    lake.attach("ATTACH 'http://c' AS x (TYPE fake)")
    assert (lake.names(), lake.asked, len(lake.flushed)) == (["home", "x"], ["x"], 1)
    assert (
        lake.refusal("ATTACH 'http://d' AS x (TYPE fake)").message == "catalog 'x' is already attached; DETACH it first"
    )
    lake.attach("ATTACH IF NOT EXISTS 'http://d' AS x (TYPE fake)")
    assert len(lake.factory.made) == 1
    lake.attachments.detach("x")
    assert (lake.names(), len(lake.flushed)) == (["home"], 2)
    with pytest.raises(UserError, match="catalog 'x' is not attached"):
        lake.attachments.detach("x")
    lake.attachments.detach("x", if_exists=True)
    lake.attach("ATTACH 'http://d' AS x (TYPE fake)")
    assert lake.names() == ["home", "x"]


def test_or_replace_never_leaves_a_gap() -> None:
    lake = make()
    lake.attach("ATTACH 'http://c' AS x (TYPE fake)")
    former = lake.registry.find("x")
    seen: list[Mount | None] = []
    lake.attach("ATTACH OR REPLACE 'http://d' AS x (TYPE fake)", lambda mount: seen.append(lake.registry.find("x")))
    assert seen == [former]
    assert lake.registry.find("x") is not former
    lake.factory.failure = RuntimeError("down")
    lake.refusal("ATTACH OR REPLACE 'http://e' AS x (TYPE fake)")


def test_a_backend_is_closed_when_nobody_uses_it_any_more() -> None:
    lake = make()
    lake.attach("ATTACH 'http://c' AS x (TYPE fake)")
    used = lake.registry.find("x")
    lake.attachments.detach("x")
    gc.collect()
    assert (used is not None, lake.factory.closed) == (True, 0)
    del used
    gc.collect()
    assert lake.factory.closed == 1


@pytest.mark.rule("NAME-4")
@pytest.mark.parametrize(
    "name",
    [
        *("home", "other", "HOME", '"Home"', '"Other"', "system", "System", "information_schema", "spark_catalog"),
        *("_sqe_c_00", "__sqe", '"a.b"', '"a/b"', '"a`b"', '"a$snapshots"', f'"{"x" * 200}"'),
    ],
)
def test_names_that_mean_something_else(name: str) -> None:
    lake = make()
    error = lake.refusal(f"ATTACH 'http://c' AS {name} (TYPE fake)")
    assert isinstance(error, UserError)
    assert lake.factory.made == []


def test_a_catalog_of_the_configuration_is_not_detached() -> None:
    lake = make()
    for name in ("home", "other"):
        with pytest.raises(UserError, match="is not attached"):
            lake.attachments.detach(name)
        with pytest.raises(UserError, match="is not attached"):
            lake.attach(f"ATTACH OR REPLACE 'http://c' AS {name} (TYPE fake)")
    assert lake.names() == ["home"]


@pytest.mark.rule("OBS-2")
@pytest.mark.parametrize(
    "failure",
    [
        ConnectionRefusedError(f"10.0.0.1:5432 refused {CANARY}"),
        ExternalError(f"403 from http://169.254.169.254/{CANARY}"),
        UserError(f"/etc/shadow is a file {CANARY}"),
        EngineExecutionError(
            EngineFailure(condition="java.net.ConnectException", sql_state=None, parameters={}, raw=CANARY)
        ),
    ],
)
def test_what_answers_at_an_address_is_not_told(failure: BaseException, caplog: pytest.LogCaptureFixture) -> None:
    """Nobody scans a network, or a disk, by reading errors."""
    lake = make(places=LocalPlaces())
    lake.factory.failure = failure
    error = lake.refusal("ATTACH 'http://10.0.0.1' AS x (TYPE fake)")
    assert error.message == "There is no catalog of this type at this location, or it does not answer"
    assert error.hint == "check the location, the options and the secret; the server's log has the kind of the error"
    assert error.code is ErrorCode.CATALOG_UNAVAILABLE
    assert error.__cause__ is None
    assert CANARY not in caplog.text
    assert lake.factory.closed == 1


def test_at_ones_own_machine_the_reason_is_told_without_the_login() -> None:
    lake = make()
    lake.create(f"CREATE SECRET s (TYPE bearer, TOKEN '{CANARY}')")
    lake.factory.failure = ExternalError(f"503 for http://u:pw@c with {CANARY}")
    error = lake.refusal("ATTACH 'http://u:pw@c' AS x (TYPE fake, SECRET s)")
    assert "503 for … with …" in error.message


def test_what_ends_the_statement_ends_it_as_usual() -> None:
    lake = make(places=LocalPlaces())
    lake.factory.failure = QueryCancelledError("cancelled")
    assert isinstance(lake.refusal("ATTACH 'http://c' AS x (TYPE fake)"), QueryCancelledError)


def test_a_type_that_nobody_has() -> None:
    error = make().refusal("ATTACH 'x' AS x (TYPE ducklake)")
    assert (error.message, error.hint) == ("The catalog type 'ducklake' is not known", "known ones: fake")
    assert isinstance(error, UserError)


def test_jars_that_the_engine_does_not_have() -> None:
    lake = make(engine_jars=frozenset({"aws"}))
    lake.factory.jars = ("aws", "postgresql")
    error = lake.refusal("ATTACH 'http://c' AS x (TYPE fake)")
    assert error.message == "The engine runs without the jars of postgresql, which this catalog needs"
    assert 'jar_groups = ["postgresql"]' in (error.hint or "")
    assert lake.factory.closed == 1
    lake.factory.jars = ("aws",)
    lake.attach("ATTACH 'http://c' AS x (TYPE fake)")


@pytest.mark.rule("AUTHN-3")
def test_one_identity_for_everybody_is_refused_where_it_is() -> None:
    lake = make(shared_identity=False)
    error = lake.refusal("ATTACH 'http://c' AS x (TYPE fake)")
    assert "allow_shared_service_identity" in (error.hint or "")
    lake.factory.identity_mode = "user"
    lake.attach("ATTACH 'http://c' AS x (TYPE fake)")


def test_no_token_goes_over_a_readable_connection_in_production() -> None:
    lake = make(context=CatalogContext(production_mode=True))
    assert "https" in lake.refusal("ATTACH 'HTTP://c' AS x (TYPE fake)").message
    lake.attach("ATTACH 'https://c' AS x (TYPE fake)")


def test_two_at_once_under_one_name() -> None:
    lake = make()
    at, go = threading.Event(), threading.Event()

    def slow(mount: Mount) -> None:
        at.set()
        assert go.wait(10)

    first = threading.Thread(target=lake.attach, args=("ATTACH 'http://c' AS x (TYPE fake, SECRET s)", slow))
    lake.create("CREATE SECRET s (TYPE bearer, TOKEN 'a')")
    first.start()
    assert at.wait(10)
    assert "somebody else" in lake.refusal("ATTACH 'http://c' AS x (TYPE fake)").message
    assert "upper and lower case" in lake.refusal("ATTACH 'http://c' AS \"X\" (TYPE fake)").message
    with pytest.raises(UserError, match="secret 's' is used by catalog 'x'"):
        lake.attachments.drop_secret("s")
    lake.attach("ATTACH 'http://c' AS y (TYPE fake)")
    go.set()
    first.join()
    assert lake.names() == ["home", "x", "y"]


def test_a_secret_in_use_stays() -> None:
    lake = make()
    assert lake.refusal("ATTACH 'c' AS x (TYPE fake, SECRET s)").message == "secret 's' does not exist"
    lake.create("CREATE SECRET s (TYPE bearer, TOKEN 'a')")
    lake.create("CREATE SECRET IF NOT EXISTS s (TYPE bearer, TOKEN 'b')")
    lake.create("CREATE SECRET b (TYPE basic, USERNAME 'a', PASSWORD 'p')")
    assert "is of type basic" in lake.refusal("ATTACH 'http://c' AS x (TYPE fake, SECRET b)").message
    lake.attach("ATTACH 'http://c' AS x (TYPE fake, SECRET s)")
    assert lake.factory.made[-1].settings.token == Secret("a")
    with pytest.raises(UserError, match="secret 's' is used by catalog 'x'") as caught:
        lake.attachments.drop_secret("s")
    assert caught.value.hint == "DETACH x first"
    assert list(lake.attachments.secrets()) == [("b", "basic"), ("s", "bearer")]
    lake.attachments.detach("x")
    lake.attachments.drop_secret("s")
    lake.attachments.drop_secret("s", if_exists=True)
    assert list(lake.attachments.secrets()) == [("b", "basic")]


# Places on the server


@pytest.fixture
def server(tmp_path: Path) -> Lake:
    """A server with a catalog, an audit log and a configuration."""
    for name in ("etc", "data", "free"):
        (tmp_path / name).mkdir()
    (tmp_path / "etc" / "sqe.toml").touch()
    (tmp_path / "link").symlink_to(tmp_path / "data")
    mount = Mount(name="lake", backend=SqliteBackend.at(tmp_path / "data"))
    return make(places=LocalPlaces([tmp_path / "etc" / "sqe.toml", tmp_path / "audit"]), mounts=[mount])


@pytest.mark.parametrize(
    "location",
    [
        *("{}/data", "{}/data/warehouse", "{}/data/warehouse/x", "{}", "/", "{}/link", "{}/free/../data"),
        *("{}/etc", "{}/etc/sqe.toml", "{}/audit", "{}/audit/x", "file://{}/data", "file:{}/data"),
        *("file://host{}/data", "file://{}/d%61ta", "file://host{}/d%61ta", "FILE:{}/data"),
    ],
)
def test_what_the_server_stands_on(server: Lake, tmp_path: Path, location: str) -> None:
    place = location.format(tmp_path)
    for sql in (
        f"ATTACH '{place}' AS x (TYPE hadoop)",
        f"ATTACH '{place}' AS x (TYPE sqlite)",
        f"ATTACH 'sqlite:{tmp_path}/free/new.db' AS x (TYPE jdbc, WAREHOUSE '{place}')",
        f"ATTACH 'http://c' AS x (TYPE fake, WAREHOUSE '{place}')",
        f"ATTACH 'jdbc:sqlite:{place}' AS x (TYPE jdbc, WAREHOUSE 's3://w')",
        f"ATTACH 'sqlite:///{place}' AS x (TYPE jdbc, WAREHOUSE 's3://w')",
    ):
        if "FILE:" in place and ("TYPE jdbc" in sql or "fake" in sql):
            continue
        error = server.refusal(sql)
        assert isinstance(error, UserError), sql
        assert str(tmp_path) not in f"{error.message} {error.hint}"
    assert list((tmp_path / "free").iterdir()) == []


@pytest.mark.parametrize("location", ["file://a/b", "file://localhost/a/b"])
def test_an_address_of_a_file_is_no_relative_path(
    server: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, location: str
) -> None:
    """It would be looked at as one place, and a catalog made at another, below the folder that the server runs in."""
    monkeypatch.chdir(tmp_path / "free")
    assert isinstance(server.refusal(f"ATTACH '{location}' AS x (TYPE sqlite)"), UserError)
    assert list((tmp_path / "free").iterdir()) == []


def test_a_place_of_its_own(server: Lake, tmp_path: Path) -> None:
    server.attach(f"ATTACH '{tmp_path}/free/a' AS a (TYPE sqlite)")
    assert server.refusal(f"ATTACH '{tmp_path}/free/a' AS b (TYPE hadoop)").code is ErrorCode.ACCESS_DENIED
    assert server.refusal("ATTACH 'free' AS b (TYPE hadoop)").message == "A path on the server is absolute"
    server.attachments.detach("a")
    server.attach(f"ATTACH '{tmp_path}/free/a' AS b (TYPE sqlite)")


@pytest.mark.parametrize(
    "location",
    [
        "jdbc:postgresql://h/d?socketFactory=org.springframework.context.support.ClassPathXmlApplicationContext",
        "postgresql://h/d?sslfactory=x&sslmode=require",
        "postgresql://h/d?%6coggerFile=/etc/cron.d/x",
        "mysql://h/d?allowLoadLocalInfile=true",
        "mysql://address=(host=h)(allowLoadLocalInfile=true)/d",
        "postgresql://h/d;x=y",
        "postgresql://h/",
        "sqlite::memory:",
        "sqlite::resource:http://10.0.0.1/x.db",
        "jdbc:sqlite:file:/etc/x?vfs=y",
        "jdbc:h2:mem:x;INIT=RUNSCRIPT FROM 'http://x'",
        "jdbc:derby:memory:x",
        "http://10.0.0.1/",
    ],
)
def test_addresses_that_mean_more_than_a_database(location: str) -> None:
    """Drivers load classes, read files and fetch pages that an address names."""
    jars = frozenset({"postgresql", "mysql"})
    for lake in (make(engine_jars=jars), make(engine_jars=jars, places=LocalPlaces())):
        escaped = location.replace("'", "''")
        error = lake.refusal(f"ATTACH '{escaped}' AS x (TYPE jdbc, WAREHOUSE 's3://w')")
        assert isinstance(error, UserError)
        assert location not in f"{error.message} {error.hint}"


@pytest.mark.parametrize("place", ["http://10.0.0.1/", "har:/x", "viewfs://x", "ftp://x", "jar:file:/x", "HTTP://x"])
def test_warehouses_that_hadoop_would_fetch(place: str) -> None:
    for sql in (
        f"ATTACH '{place}' AS x (TYPE hadoop)",
        f"ATTACH 'postgresql://h/d' AS x (TYPE jdbc, WAREHOUSE '{place}')",
        f"ATTACH '{place}' AS x (TYPE sqlite)",
    ):
        assert isinstance(make(engine_jars=frozenset({"postgresql"})).refusal(sql), UserError)


def test_addresses_that_are_fine() -> None:
    lake = make(engine_jars=frozenset({"postgresql"}), places=LocalPlaces())
    for number, location in enumerate(
        (
            "jdbc:postgresql://db.example:5432/lake?sslmode=require&ApplicationName=x",
            "postgres://a:b@[::1]:5432/l",
            "postgresql://a,b:1/l",
        )
    ):
        lake.attach(f"ATTACH '{location}' AS x{number} (TYPE jdbc, WAREHOUSE 's3://b/w', CATALOG_NAME 'main')")


def test_a_failing_attach_leaves_no_files(tmp_path: Path) -> None:
    lake = make()

    def fail(mount: Mount) -> None:
        raise ExternalError("no")

    lake.refusal(f"ATTACH '{tmp_path}/new' AS x (TYPE sqlite)", fail)
    assert list(tmp_path.iterdir()) == []
    lake.attach(f"ATTACH '{tmp_path}/new' AS x (TYPE sqlite)")
    lake.attachments.detach("x")
    lake.refusal(f"ATTACH '{tmp_path}/new' AS x (TYPE sqlite)", fail)
    assert (tmp_path / "new" / "catalog.db").exists()


def test_a_warehouse_of_the_command_line_is_attached_as_it_is(tmp_path: Path) -> None:
    SqliteBackend.at(tmp_path, "sqe.db")
    lake = make()
    lake.attach(f"ATTACH '{tmp_path}' AS x (TYPE sqlite)")
    assert not (tmp_path / "catalog.db").exists()


def test_a_hadoop_folder_that_is_not_there(tmp_path: Path) -> None:
    assert "does not exist" in make().refusal(f"ATTACH '{tmp_path}/x' AS x (TYPE hadoop)").message


def test_kinds_that_cannot_be_attached() -> None:
    class Fixed(Factory):
        def attach(self, request: AttachRequest) -> Settings:
            return CatalogFactory.attach(self, request)

    lake = make()
    rules = AttachRules(factory_of=lambda kind: Fixed())
    statement = read("ATTACH 'x' AS x (TYPE fake)")
    assert isinstance(statement, Attach)
    with pytest.raises(NotSupportedError, match="cannot be attached"):
        Attachments(lake.registry, rules).attach(statement, lambda mount: None)


def test_secrets_do_not_print() -> None:
    secret = AttachSecret(name="s", type="bearer", values={"token": Secret(CANARY)})
    request = AttachRequest(name="x", location=f"pg://u:{CANARY}@h", options={"warehouse": CANARY}, secret=secret)
    assert CANARY not in repr(request)
