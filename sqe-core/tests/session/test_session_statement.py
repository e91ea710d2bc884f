"""What statements of one session see of it, and the engine sessions that they get."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from sqe_core.catalog.registry import CatalogRegistry, Mount
from sqe_core.session import engine_sides
from sqe_core.session.engine_pool import EnginePool
from sqe_core.session.properties import SessionProperties
from sqe_core.session.session import Session, SessionState, SessionView
from sqe_core.session.statement_session import StatementSession
from sqe_core.spi.catalog import AwsKeys, SupportsLogout
from sqe_core.spi.errors import (
    EngineLostError,
    ErrorCode,
    ExternalError,
    InternalError,
    NotSupportedError,
    SqeError,
    UserError,
)
from sqe_core.spi.identity import Identity, Secret
from sqe_core.testing.fakes import make_identity


def a_view(name: str) -> SessionView:
    return SessionView(
        name=name, spark_sql="SELECT 1", text="", columns=(), renames=None, catalog="lake", schema=("default",)
    )


class EngineSession:
    """As much of an engine session as sessions know."""

    def __init__(self) -> None:
        self.alive = True
        self.settings_fit = True
        self.closed = 0
        self.mounts: dict[str, Mapping[str, str]] = {}
        self.tokens: dict[str, Secret | None] = {}

    def check_settings(self) -> bool:
        return self.settings_fit

    def mount(self, alias: str, properties: Mapping[str, str], *, token: Secret | None = None) -> None:
        self.mounts[alias] = properties
        self.tokens[alias] = token

    def unmount(self, alias: str) -> None:
        del self.mounts[alias]

    def renew_token(self, alias: str, token: Secret) -> None:
        self.tokens[alias] = token

    def catalog(self, alias: str) -> tuple[EngineSession, str]:
        return self, alias

    def close(self) -> None:
        self.closed += 1


class Engine:
    def __init__(self) -> None:
        self.opened: list[EngineSession] = []
        self.gate: threading.Event | None = None

    def open_session(self) -> Any:
        if self.gate is not None:
            assert self.gate.wait(5)
        self.opened.append(EngineSession())
        return self.opened[-1]


class Backend:
    def aws_keys(self, identity: Identity) -> None:
        return None

    def spark_properties(self, identity: object) -> Mapping[str, str]:
        return {"type": "fake"}


LAKE: Any = Mount(name="lake", backend=Backend())  # type: ignore[arg-type]


@pytest.fixture
def engine() -> Engine:
    return Engine()


@pytest.fixture
def session(engine: Engine) -> Session:
    mounts: Sequence[Mount] = (LAKE,)
    anything: Any = engine
    return Session(identity=make_identity(), engine=anything, catalogs=CatalogRegistry(mounts), catalog="lake")


# Names and settings


def test_a_statement_sees_the_session_as_it_was_when_it_began(session: Session) -> None:
    early = StatementSession(session)
    session.use("other", ("s",))
    session.set_properties({"dialect": "trino"})
    late = StatementSession(session)
    assert (early.catalog, early.schema, early.properties["dialect"]) == ("lake", ("default",), "sqe")
    assert (late.catalog, late.schema, late.properties["dialect"]) == ("other", ("s",), "trino")


def test_what_a_statement_changes_counts_for_itself_and_for_later_ones(session: Session) -> None:
    beside, changing = StatementSession(session), StatementSession(session)
    changing.use("other", ("s",))
    changing.set_property("dialect", "spark")
    assert (changing.catalog, changing.properties["dialect"]) == ("other", "spark")
    assert (session.catalog, session.schema, session.properties["dialect"]) == ("other", ("s",), "spark")
    assert (beside.catalog, beside.properties["dialect"]) == ("lake", "sqe")
    changing.reset_property("dialect")
    assert session.properties["dialect"] == changing.properties["dialect"] == "sqe"
    session.set_properties({"dialect": "trino", "query_max_run_time": "5m"})
    changing.reset_property(None)
    assert session.properties.values == {}


def test_two_statements_that_set_different_properties_keep_both(session: Session) -> None:
    one, two = StatementSession(session), StatementSession(session)
    one.set_property("dialect", "trino")
    two.set_property("query_max_run_time", "5m")
    assert session.properties.values == {"dialect": "trino", "query_max_run_time": "5m"}


def test_a_statement_apart_changes_nobody_elses_session(session: Session) -> None:
    kept = SessionState(
        catalog="other",
        schema=("s",),
        properties=SessionProperties({"query_max_result_rows": 5}),
        prepared={"p": "SELECT 1"},
    )
    apart = StatementSession(session, kept=kept)
    assert apart.began.properties.values == {"query_max_result_rows": 5}
    apart.use("third", ("t",))
    apart.set_property("dialect", "trino")
    apart.reset_property("query_max_result_rows")
    assert (apart.state().catalog, apart.state().schema) == ("third", ("t",))
    assert apart.state().properties.values == {"dialect": "trino"}
    assert (session.catalog, session.schema, session.properties.values) == ("lake", ("default",), {})


@pytest.mark.rule("SESS-2")
def test_a_statement_apart_has_its_own_prepared_statements_roles_and_no_views(session: Session) -> None:
    """Clients of one login that keep their state see nothing of each other."""
    StatementSession(session).put_prepared("shared", "SELECT 0")
    session.put_view(a_view("shared"), replace=False)
    kept = SessionState(catalog="lake", schema=("default",), prepared={"p": "SELECT 1"}, roles=("r",))
    apart = StatementSession(session, kept=kept)
    assert apart.prepared == {"p": "SELECT 1"}
    apart.put_prepared("q", "SELECT 2")
    assert apart.drop_prepared("p")
    assert not apart.drop_prepared("shared")
    apart.choose_roles(None)
    assert (apart.find_view("shared"), apart.views(), apart.drop_view("shared")) == (None, (), False)
    with pytest.raises(NotSupportedError, match="keeps its state itself"):
        apart.put_view(a_view("mine"), replace=False)
    assert (apart.state().prepared, apart.state().roles) == ({"q": "SELECT 2"}, None)
    assert (session.state().prepared, session.chosen_roles) == ({"shared": "SELECT 0"}, None)
    assert [view.name for view in session.views()] == ["shared"]


def test_prepared_statements_of_a_session_are_seen_by_those_that_begin_later_and_bounded(session: Session) -> None:
    one = StatementSession(session)
    one.put_prepared("p", "SELECT 1")
    assert StatementSession(session).prepared == {"p": "SELECT 1"}
    with pytest.raises(UserError, match="A session can have 1000 prepared statements"):
        one.put_prepared("long", "x" * (17 << 20))
    assert one.drop_prepared("p")
    assert not StatementSession(session).prepared


def test_properties_are_set_together_or_not_at_all(session: Session) -> None:
    with pytest.raises(UserError):
        session.set_properties({"dialect": "trino", "query_max_result_rows": -1})
    assert session.properties.values == {}


@pytest.mark.rule("SESS-2")
def test_readers_see_names_of_one_moment(session: Session) -> None:
    done = threading.Event()
    pairs = [("a", ("a1",)), ("b", ("b1",))]
    session.use(*pairs[0])

    def change() -> None:
        while not done.is_set():
            for pair in pairs:
                session.use(*pair)

    thread = threading.Thread(target=change)
    thread.start()
    try:
        for _ in range(5000):
            state = session.state()
            assert (state.catalog, state.schema) in pairs
    finally:
        done.set()
        thread.join()


# Engine sessions


@pytest.mark.rule("ENF-13")
def test_statements_at_once_have_engine_sessions_of_their_own(session: Session, engine: Engine) -> None:
    one, two = StatementSession(session), StatementSession(session)
    with one.engine() as first, two.engine() as second:
        assert first is not second
        with one.engine() as again:
            assert again is first
        assert one.alias_of(LAKE) != two.alias_of(LAKE)
        assert one.metadata(LAKE) == (first, one.alias_of(LAKE))
    with StatementSession(session).engine() as later:
        assert later is first
    assert len(engine.opened) == 2
    assert set(session.catalog_names().values()) == {"lake"}
    assert set(session.secrets()) == set(session.catalog_names())
    assert len(session.secrets()) == 2


def test_a_statement_comes_back_to_the_engine_session_of_its_plan(session: Session) -> None:
    blocker, planned = StatementSession(session), StatementSession(session)
    with blocker.engine(), planned.engine() as second:
        pass
    with planned.engine() as again:
        assert again is second


def test_listings_need_no_turn(session: Session, engine: Engine) -> None:
    with StatementSession(session).engine() as busy:
        assert session.metadata(LAKE)[0] is busy  # type: ignore[index]
        assert StatementSession(session).metadata(LAKE)[0] is busy  # type: ignore[index]
    assert len(engine.opened) == 1


def test_outside_of_its_turn_a_statement_has_no_engine_session(session: Session) -> None:
    with pytest.raises(InternalError):
        StatementSession(session).engine_session()


@pytest.mark.rule("CONF-1")
def test_an_engine_session_that_was_meddled_with_is_not_used_again(session: Session, engine: Engine) -> None:
    with StatementSession(session).engine():
        pass
    engine.opened[0].settings_fit = False
    with StatementSession(session).engine() as fresh:
        assert fresh is engine.opened[1]
    assert engine.opened[0].closed == 1
    engine.opened[1].settings_fit = False
    assert session.engine_session() is engine.opened[2]


def test_one_that_somebody_works_in_is_closed_when_that_is_done(session: Session, engine: Engine) -> None:
    with StatementSession(session).engine():
        engine.opened[0].settings_fit = False
        assert session.engine_session() is engine.opened[1]
        assert engine.opened[0].closed == 0
    assert engine.opened[0].closed == 1


def test_after_the_engine_died_there_is_another(session: Session, engine: Engine) -> None:
    with StatementSession(session).engine():
        pass

    def lost() -> bool:
        raise EngineLostError("gone")

    engine.opened[0].check_settings = lost  # type: ignore[method-assign]
    with StatementSession(session).engine() as fresh:
        assert fresh is engine.opened[1]


def test_opening_one_holds_up_nobody(session: Session, engine: Engine) -> None:
    with StatementSession(session).engine():
        engine.gate = threading.Event()
        opening = threading.Thread(target=lambda: StatementSession(session).engine().__enter__())
        opening.start()
        session.use("other", ("s",))
        assert session.state().catalog == "other"
        assert session.engine_session() is engine.opened[0]
        engine.gate.set()
        opening.join(5)


def test_what_was_not_needed_lately_is_closed(
    session: Session, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    with StatementSession(session).engine(), StatementSession(session).engine():
        pass
    session.trim()
    assert [each.closed for each in engine.opened] == [0, 0]
    monkeypatch.setattr(session.sides, "_idle_secs", 0.0)
    session.trim()
    assert [each.closed for each in engine.opened] == [1, 1]
    assert session.engine_session() is engine.opened[2], "the next need opens another one"


def test_nothing_is_closed_while_something_runs_or_is_listed(engine: Engine) -> None:
    running: list[Session] = []
    anything: Any = engine
    session = Session(
        identity=make_identity(),
        engine=anything,
        catalogs=CatalogRegistry(()),
        catalog="lake",
        is_busy=running.__contains__,
        engine_idle_secs=0,
    )
    session.engine_session()
    running.append(session)
    session.trim()
    running.clear()
    with session.looking():
        session.trim()
    assert session.engine_session() is engine.opened[0]
    session.trim()
    assert engine.opened[0].closed == 1


@pytest.mark.rule("LIM-10")
def test_the_longest_unused_of_all_sessions_are_closed(engine: Engine) -> None:
    anything: Any = engine
    pool, busy = EnginePool(most=3), list[Session]()

    def make() -> Session:
        return Session(
            identity=make_identity(),
            engine=anything,
            catalogs=CatalogRegistry(()),
            catalog="lake",
            is_busy=busy.__contains__,
            pool=pool,
        )

    sessions = [make() for _ in range(6)]
    for session in sessions[:3]:
        session.engine_session()
    busy.append(sessions[0])
    sessions[1].engine_session()
    for session in sessions[3:5]:
        session.engine_session()
    assert [each.closed for each in engine.opened] == [0, 1, 1, 0, 0], "not that of a session in which something runs"
    assert pool.count == 3
    with StatementSession(sessions[3]).engine(), StatementSession(sessions[4]).engine():
        sessions[5].engine_session()
        assert [each.closed for each in engine.opened] == [0, 1, 1, 0, 0, 0], "nor one in which somebody works"
    sessions[2].engine_session()
    assert [each.closed for each in engine.opened] == [0, 1, 1, 0, 1, 1, 0]
    assert pool.count == 3


@pytest.mark.rule("SESS-6")
def test_a_session_that_ends_closes_all(session: Session, engine: Engine) -> None:
    with StatementSession(session).engine(), StatementSession(session).engine():
        pass
    with StatementSession(session).engine():
        session.close()
        assert [each.closed for each in engine.opened] == [0, 1]
    assert [each.closed for each in engine.opened] == [1, 1]
    with pytest.raises(UserError) as caught, StatementSession(session).engine():
        pass
    assert caught.value.code is ErrorCode.SESSION_EXPIRED
    with pytest.raises(UserError):
        session.engine_session()


class Exchanging(Backend, SupportsLogout):
    """A catalog that keeps something for each token."""

    def __init__(self) -> None:
        self.forgotten: list[str] = []
        self.broken = False

    def forget_login(self, identity: Identity) -> None:
        assert identity.access_token
        self.forgotten.append(identity.access_token.reveal())
        if self.broken:
            raise ValueError("broken")


@pytest.mark.rule("SESS-6")
def test_catalogs_forget_a_login_when_its_session_ends(
    session: Session, engine: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    backends = [Exchanging(), Exchanging()]
    backends[0].broken = True
    for number, backend in enumerate(backends):
        session.catalogs.add(Mount(name=f"c{number}", backend=backend))  # type: ignore[arg-type]
    session.renew(make_identity(token="first"))
    session.renew(make_identity(token="first", roles=("more",)))
    session.renew(make_identity(token="second"))
    assert [backend.forgotten for backend in backends] == [["first"], ["first"]]
    session.close()
    session.close()
    assert [backend.forgotten for backend in backends] == [["first", "second"]] * 2
    assert "c0 did not forget a login: ValueError" in caplog.text


# Tokens of mounts


class Tokens:
    """A catalog that sends its user's token, or what it was told to send."""

    def __init__(self) -> None:
        self.more: dict[str, str] = {}
        self.failure: SqeError | None = None
        self.asked = 0
        self.token: str | None = None
        self.keys: AwsKeys | None = None

    def spark_properties(self, identity: Identity) -> Mapping[str, str]:
        self.asked += 1
        if self.failure is not None:
            raise self.failure
        assert identity.access_token is not None
        return {"type": "rest", "token": self.token or identity.access_token.reveal(), **self.more}

    def aws_keys(self, identity: Identity) -> AwsKeys | None:
        return self.keys


@pytest.fixture
def tokens() -> Tokens:
    return Tokens()


@pytest.fixture
def rest(session: Session, tokens: Tokens) -> Any:
    mount = Mount(name="rest", backend=tokens)  # type: ignore[arg-type]
    session.catalogs.add(mount)
    return mount


def with_token(session: Session, token: str) -> Identity:
    return replace(session.identity, access_token=Secret(token))


@pytest.mark.rule("SESS-7")
def test_a_token_is_no_property_of_a_mount(session: Session, rest: Any) -> None:
    session.identity = with_token(session, "first")
    alias = session.alias_of(rest)
    engine: Any = session.engine_session()
    assert engine.mounts[alias] == {"type": "rest"}
    assert engine.tokens[alias] == Secret("first")


@pytest.mark.rule("SESS-7")
def test_aws_keys_are_no_property_of_a_mount_and_are_renewed_in_place(
    session: Session, rest: Any, tokens: Tokens
) -> None:
    session.identity = with_token(session, "first")
    tokens.keys = AwsKeys(access_key="AKIA1", secret_key=Secret("s1"), session_token=Secret("t1"))
    statement = StatementSession(session)
    with statement.engine() as engine:
        alias = statement.alias_of(rest)
        assert engine.mounts[alias] == {"type": "rest", "sqe.mount": "aws"}  # type: ignore[attr-defined]
        assert engine.tokens[alias] == Secret("AKIA1\ns1\nt1")  # type: ignore[attr-defined]
        tokens.keys = AwsKeys(access_key="AKIA2", secret_key=Secret("s2"))
        session.renew_catalogs()
        assert engine.tokens[alias] == Secret("AKIA2\ns2\n")  # type: ignore[attr-defined]


@pytest.mark.rule("SESS-3")
def test_a_new_token_reaches_every_mount_and_statements_keep_their_aliases(session: Session, rest: Any) -> None:
    session.identity = with_token(session, "first")
    one, two = StatementSession(session), StatementSession(session)
    with one.engine() as running:
        alias = one.alias_of(rest)
        with two.engine() as other:
            other_alias = two.alias_of(rest)
        session.renew(with_token(session, "second"))
        session.renew_catalogs()
        assert one.alias_of(rest) == alias
        assert (running.tokens[alias], other.tokens[other_alias]) == (Secret("second"), Secret("second"))  # type: ignore[attr-defined]
    assert {"first", "second"} <= set(session.secrets()), "an older token may still be in an error (ERR-6)"


@pytest.mark.rule("SESS-3")
def test_a_mount_that_changes_otherwise_is_made_anew_for_the_next_statement(
    session: Session, rest: Any, tokens: Tokens
) -> None:
    session.identity = with_token(session, "first")
    statement = StatementSession(session)
    with statement.engine() as old:
        alias = statement.alias_of(rest)
        tokens.more = {"header.X-Role": "auditor"}
        session.renew(with_token(session, "second"))
        session.renew_catalogs()
        assert statement.alias_of(rest) == alias
        assert old.closed == 0  # type: ignore[attr-defined]
    later = StatementSession(session)
    with later.engine() as new:
        assert new is not old
        assert later.alias_of(rest) != alias
        assert new.mounts[later.alias_of(rest)] == {"type": "rest", "header.X-Role": "auditor"}  # type: ignore[attr-defined]
    assert old.closed == 1  # type: ignore[attr-defined]


def test_a_catalog_whose_login_cannot_be_renewed_goes_on_until_it_can(
    session: Session, rest: Any, tokens: Tokens, monkeypatch: pytest.MonkeyPatch
) -> None:
    session.identity = with_token(session, "first")
    alias = session.alias_of(rest)
    engine: Any = session.engine_session()
    tokens.failure = ExternalError("no answer", code=ErrorCode.CATALOG_UNAVAILABLE)
    session.renew(with_token(session, "second"))
    session.renew_catalogs()
    assert session.alias_of(rest) == alias
    assert engine.tokens[alias] == Secret("first")

    tokens.failure = None
    assert session.alias_of(rest) == alias
    assert engine.tokens[alias] == Secret("second")


def test_a_catalogs_own_token_is_asked_for_while_it_is_used(
    session: Session, rest: Any, tokens: Tokens, monkeypatch: pytest.MonkeyPatch
) -> None:
    session.identity = with_token(session, "users")
    tokens.token = "exchanged-1"
    alias = session.alias_of(rest)
    engine: Any = session.engine_session()
    tokens.token = "exchanged-2"
    for _ in range(100):
        session.alias_of(rest)
    assert tokens.asked == 1
    monkeypatch.setattr(engine_sides, "_ASK_SECS", 0.0)
    session.alias_of(rest)
    assert engine.tokens[alias] == Secret("exchanged-2")


@pytest.mark.rule("SESS-6")
def test_an_ended_session_holds_no_tokens(session: Session) -> None:
    session.identity = with_token(session, "first")
    session.renew(with_token(session, "second"))
    session.close()
    assert session.identity.access_token is None
    assert session.secrets() == ()
    session.renew(replace(session.identity, access_token=Secret("third")))
    assert session.identity.access_token is None


def test_names_settings_and_views_stay_over_a_renewal(session: Session) -> None:
    session.use("lake", ("s",))
    session.set_properties({"dialect": "trino"})
    StatementSession(session).choose_roles(("auditor",))
    session.renew(with_token(session, "second"))
    session.renew_catalogs()
    assert (session.schema, session.properties["dialect"], session.chosen_roles) == (("s",), "trino", ("auditor",))


# Catalogs that are detached


def attached(session: Session) -> Mount:
    mount = Mount(name="guest", backend=LAKE.backend, attached=True)
    session.catalogs.add(mount)
    return mount


@pytest.mark.rule("SESS-7")
def test_a_detached_catalog_leaves_every_engine_session_at_once(session: Session, engine: Engine) -> None:
    guest = attached(session)
    one, other = StatementSession(session), StatementSession(session)
    with one.engine(), other.engine():
        one.alias_of(guest)
        other.alias_of(guest)
        other.alias_of(LAKE)
    assert [len(opened.mounts) for opened in engine.opened] == [1, 2]
    session.catalogs.remove(guest)
    assert [len(opened.mounts) for opened in engine.opened] == [0, 1]
    assert set(session.catalog_names().values()) == {"lake"}


def test_a_statement_goes_on_with_a_catalog_that_was_detached(session: Session, engine: Engine) -> None:
    guest = attached(session)
    statement = StatementSession(session)
    with statement.engine():
        alias = statement.alias_of(guest)
        session.catalogs.remove(guest)
        assert statement.alias_of(guest) == alias
        assert alias in engine.opened[0].mounts
    assert engine.opened[0].mounts == {}


def test_a_result_is_read_to_its_end(session: Session, engine: Engine) -> None:
    guest = attached(session)
    statement = StatementSession(session)
    with statement.engine():
        alias = statement.alias_of(guest)
        end = statement.begin_result()
    session.catalogs.remove(guest)
    with StatementSession(session).engine():
        pass
    assert alias in engine.opened[0].mounts
    end()
    end()
    assert engine.opened[0].mounts == {}
    assert len(session.sides) == 1


def test_another_catalog_of_the_same_name_is_another_one(session: Session, engine: Engine) -> None:
    guest = attached(session)
    statement = StatementSession(session)
    with statement.engine():
        before = statement.alias_of(guest)
        end = statement.begin_result()
    new = Mount(name="guest", backend=LAKE.backend, attached=True)
    session.catalogs.replace(guest, new)
    with StatementSession(session).engine():
        assert session.alias_of(new) != before
    end()
    assert list(engine.opened[0].mounts) == [session.alias_of(new)]


def test_what_cannot_be_taken_out_now_is_taken_out_later(
    session: Session, engine: Engine, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    guest = attached(session)
    session.alias_of(guest)

    def fail(alias: str) -> None:
        raise RuntimeError("secret text")

    with monkeypatch.context() as patched:
        patched.setattr(engine.opened[0], "unmount", fail)
        session.catalogs.remove(guest)
    assert "secret text" not in caplog.text
    with StatementSession(session).engine():
        pass
    assert engine.opened[0].mounts == {}
    assert len(session.sides) == 1


def test_a_session_that_is_gone_is_told_nothing(session: Session) -> None:
    guest = attached(session)
    session.alias_of(guest)
    session.close()
    session.catalogs.remove(guest)


def test_what_a_listing_mounted_while_it_was_being_detached(session: Session, engine: Engine) -> None:
    guest = attached(session)
    session.catalogs.remove(guest)
    session.metadata(guest)
    assert len(engine.opened[0].mounts) == 1
    session.trim()
    assert engine.opened[0].mounts == {}
