"""Listings as each user, without the engine: nothing that one user was told serves another (ISO-8, features §5.5)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from sqe_catalog_polaris.config import NessieConfig, UnityConfig
from sqe_core.spi import ObjectNotFoundError, ResourcesError, Secret, SqeError
from sqe_core.testing.contract import in_threads
from sqe_core.testing.fakes import make_identity
from sqe_http.testing import Reply

ALICE = make_identity("alice", token="token-of-alice-5d1f")
BOB = make_identity("bob", token="token-of-bob-77c3")
HR, FIN = ("hr",), ("fin",)


def listing(backend: Any, identity: Any = ALICE) -> Any:
    found = backend.quick_metadata(identity)
    assert found is not None
    return found


def test_namespaces_tables_and_views(make: Any) -> None:
    alice = listing(make())

    assert alice.list_namespaces() == [HR, FIN]
    assert alice.list_namespaces(HR) == [("hr", "pay")]
    assert alice.list_tables(HR) == ["emp", "roles"]
    assert alice.list_views(HR) == ["grown_ups"]
    assert alice.load_namespace(HR) == {"owner": "people"}


@pytest.mark.rule("AUTHN-3")
def test_each_request_carries_the_token_of_its_user_and_asks_for_vended_credentials(catalog: Any, make: Any) -> None:
    backend = make()
    listing(backend).list_tables(HR)
    listing(backend, BOB).list_tables(HR)

    bearers = [request.bearer for request in catalog.requests]
    assert bearers == sorted(bearers)
    assert set(bearers) == {ALICE.access_token.reveal(), BOB.access_token.reveal()}
    delegations = {request.headers.get("x-iceberg-access-delegation") for request in catalog.requests}
    assert delegations == {"vended-credentials"}


def test_what_a_user_may_not_look_into_is_hidden(catalog: Any, make: Any) -> None:
    backend = make()

    assert listing(backend, BOB).list_namespaces() == [HR]
    assert listing(backend, ALICE).list_namespaces() == [HR, FIN]
    with pytest.raises(ObjectNotFoundError):
        listing(backend, BOB).list_tables(FIN)


def test_each_namespace_is_asked_for_once_per_token(catalog: Any, make: Any) -> None:
    backend = make()
    for _ in range(3):
        listing(backend, BOB).list_namespaces()

    assert catalog.paths().count("lake/namespaces/fin") == 1
    listing(backend, replace(BOB, access_token=Secret("token-of-alice-5d1f"))).list_namespaces()
    assert catalog.paths().count("lake/namespaces/fin") == 2


def test_a_catalog_that_cannot_say_hides_nothing(catalog: Any, make: Any) -> None:
    catalog.reply = lambda request: catalog.error(500) if request.path.endswith("/namespaces/fin") else None

    assert listing(make(), BOB).list_namespaces() == [HR, FIN]


def test_the_filter_can_be_switched_off(catalog: Any, make: Any) -> None:
    assert listing(make(namespace_visibility_filter=False), BOB).list_namespaces() == [HR, FIN]
    assert "lake/namespaces/fin" not in catalog.paths()


@pytest.mark.rule("ERR-5")
def test_denied_and_missing_schemas_give_the_same_answer(make: Any) -> None:
    bob = listing(make(), BOB)
    texts = []
    for name in ("fin", "nil"):
        with pytest.raises(ObjectNotFoundError) as caught:
            bob.list_tables((name,))
        texts.append((str(caught.value).replace(name, "…"), caught.value.code, caught.value.hint))

    assert texts[0] == texts[1]


def test_pages_are_read_to_the_end(catalog: Any, make: Any) -> None:
    catalog.tables[HR] = [f"t{number:03}" for number in range(25)]
    catalog.page = 10

    assert listing(make()).list_tables(HR) == catalog.tables[HR]


def test_pages_that_never_end_do(catalog: Any, make: Any) -> None:
    def same_page(request: Any) -> Any:
        if not request.path.endswith("/tables"):
            return None
        return Reply(body={"identifiers": [], "next-page-token": "again"})

    catalog.reply = same_page
    with pytest.raises(SqeError, match="does not answer as expected"):
        listing(make()).list_tables(HR)


def test_more_names_than_fit_are_refused(catalog: Any, make: Any) -> None:
    catalog.tables[HR] = [f"t{number}" for number in range(30)]

    with pytest.raises(ResourcesError, match="more names"):
        listing(make(max_names=20, page_size=10)).list_tables(HR)


@pytest.mark.rule("ISO-8")
def test_a_known_answer_serves_whoever_got_it_and_nobody_else(catalog: Any, make: Any) -> None:
    catalog.etags = True
    backend = make(namespace_visibility_filter=False)
    listing(backend).list_namespaces()
    listing(backend).list_namespaces()
    listing(backend, BOB).list_namespaces()

    asked = [request for request in catalog.requests if request.path.endswith("/namespaces")]
    assert ["if-none-match" in request.headers for request in asked] == [False, True, False]


def test_what_changed_is_seen_despite_its_tag(catalog: Any, make: Any) -> None:
    catalog.etags = True
    alice = listing(make())
    assert alice.list_tables(HR) == ["emp", "roles"]
    catalog.tables[HR] = ["emp"]

    assert alice.list_tables(HR) == ["emp"]


def test_nested_names_travel_in_the_separator_of_the_catalog(catalog: Any, make: Any) -> None:
    catalog.separator = "."
    catalog.config["overrides"]["namespace-separator"] = "%2E"

    assert listing(make()).list_tables(("hr", "pay")) == ["salaries"]


@pytest.mark.parametrize("name", ["a/b", "a b", "ä", "a?b", "..", "a%2Fb"])
def test_names_are_one_segment_each(catalog: Any, make: Any, name: str) -> None:
    catalog.namespaces[(name,)] = {}
    catalog.tables[(name,)] = ["t"]

    assert listing(make()).list_tables((name,)) == ["t"]


def test_a_catalog_may_name_another_path_and_never_another_server(catalog: Any, make: Any) -> None:
    catalog.config["overrides"]["uri"] = "http://127.0.0.1:1/elsewhere"
    assert listing(make()).list_tables(HR) == ["emp", "roles"]

    catalog.config["overrides"]["uri"] = catalog.url.replace("/catalog", "/other")
    with pytest.raises(SqeError):
        listing(make()).list_tables(HR)
    assert catalog.requests[-1].path.startswith("/api/other/v1/lake/namespaces/hr")
    catalog.violations.clear()


def test_views_need_endpoints(catalog: Any, make: Any) -> None:
    catalog.config["endpoints"] = ["GET /v1/{prefix}/namespaces"]
    assert listing(make()).list_views(HR) == []

    del catalog.config["endpoints"]
    assert listing(make(NessieConfig)).list_views(HR) == []
    catalog.config["overrides"]["view-endpoints-supported"] = "true"
    assert listing(make(NessieConfig)).list_views(HR) == ["grown_ups"]


def test_the_handle_is_read_once_for_each_user_and_connections_are_used_again(catalog: Any, make: Any) -> None:
    backend = make()
    for _ in range(5):
        for identity in (ALICE, BOB):
            listing(backend, identity).list_tables(HR)

    assert catalog.paths().count("config") == 2
    assert catalog.connections == 1


def test_many_users_at_once_get_their_own(make: Any) -> None:
    backend = make()
    people = [ALICE, BOB] * 8
    answers = in_threads(lambda: [(who.username, listing(backend, who).list_namespaces()) for who in people], 8)

    for name, found in (entry for answer in answers for entry in answer):
        assert found == ([HR, FIN] if name == "alice" else [HR])


@pytest.mark.rule("AUTHN-3")
def test_whoever_has_no_token_is_nobody_else(catalog: Any, make: Any) -> None:
    backend = make()
    with pytest.raises(SqeError, match="needs the token of a login"):
        listing(backend, replace(ALICE, access_token=None))
    assert catalog.requests == []


def test_an_unknown_warehouse_is_named_as_that(make: Any) -> None:
    with pytest.raises(SqeError, match="does not know the warehouse"):
        listing(make(warehouse="nil")).list_namespaces()


def test_other_warehouses_are_found_by_those_who_may(catalog: Any, make: Any) -> None:
    backend = make()
    found = backend.discover("other", ALICE)

    assert found is not None
    assert found.spark_properties(ALICE)["warehouse"] == "other"
    assert backend.discover("other", BOB) is None
    assert backend.discover("nil", ALICE) is None
    found.close()


@pytest.mark.rule("POL-9")
def test_a_warehouse_that_is_mounted_is_known_by_whatever_name(catalog: Any, make: Any) -> None:
    """Its requests go to the same place: the name in the configuration may be another one, or a default."""
    mounted = make()
    catalog.warehouses["s3-lake"] = {"alice"}
    again, other = mounted.discover("s3-lake", ALICE), mounted.discover("other", ALICE)

    assert mounted.is_same(again, ALICE)
    catalog.config["overrides"] = {"prefix": "other"}
    assert not mounted.is_same(other, ALICE)
    assert mounted.is_same(mounted.discover("other", ALICE), BOB)
    assert not make(catalog_url="https://elsewhere.example/api/catalog").is_same(other, ALICE)


@pytest.mark.parametrize("name", ["env:PATH", "a/b", "", "s3://x", "a b", "x" * 200])
def test_what_is_no_plain_name_is_not_looked_for(catalog: Any, make: Any, name: str) -> None:
    assert make().discover(name, ALICE) is None
    assert catalog.requests == []


def test_unity_is_read_only(make: Any) -> None:
    backend = make(UnityConfig)
    assert backend.read_only
    assert not backend.supports_views


@pytest.mark.rule("POL-10")
def test_catalogs_that_keep_lower_case_say_so(make: Any) -> None:
    assert make(UnityConfig).ignores_case
    assert not make().ignores_case
    for service, expected in (("glue", True), ("s3tables", True), ("execute-api", False)):
        assert make(auth={"type": "aws", "region": "eu-west-1", "service": service}).ignores_case is expected
