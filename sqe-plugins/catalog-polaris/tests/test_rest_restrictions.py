"""What a catalog says of reading a table reaches the core as it was said, for the user who asked."""

from __future__ import annotations

from typing import Any

import pytest

from sqe_core.spi import ErrorCode, ExternalError, Identity, ObjectNotFoundError, SqeError
from sqe_core.testing import make_identity

ALICE = make_identity("alice", token="token-of-alice-5d1f")
BOB = make_identity("bob", token="token-of-bob-77c3")


def schema(**names: int) -> dict[str, Any]:
    fields = [{"id": number, "name": name, "type": "int", "required": False} for name, number in names.items()]
    return {"type": "struct", "schema-id": 0, "fields": fields}


METADATA = {"table-uuid": "u-1", "current-schema-id": 0, "schemas": [schema(id=1, ssn=2, pay=3)]}
EU = {"required-row-filter": {"type": "eq", "term": "id", "value": 1}}


@pytest.fixture
def backend(catalog: Any, make: Any) -> Any:
    catalog.loaded[("hr",), "emp"] = METADATA
    return make()


def ask(backend: Any, who: Identity = ALICE, name: str = "emp") -> Any:
    return backend.read_restrictions(("hr",), name, who)


@pytest.mark.rule("POL-9")
def test_each_user_is_told_their_own_and_asks_anew(catalog: Any, backend: Any) -> None:
    catalog.restricted["alice", "emp"] = EU
    assert ask(backend).document == EU
    assert ask(backend).table_uuid == "u-1"
    assert ask(backend, BOB) is None
    # The entity tag stays the same; what is restricted does not.
    catalog.restricted = {("bob", "emp"): EU}
    assert ask(backend) is None
    assert ask(backend, BOB).document == EU
    loads = [request for request in catalog.requests if request.path.endswith("/tables/emp")]
    assert len(loads) == 5
    assert {request.bearer for request in loads} == {"token-of-alice-5d1f", "token-of-bob-77c3"}
    assert not any("if-none-match" in request.headers for request in loads)


@pytest.mark.rule("POL-6")
@pytest.mark.parametrize(
    ("schemas", "renamed"),
    [
        ([schema(id=1, ssn=2)], set()),
        ([schema(id=1, ssn=2), schema(id=1, ssn=2, pay=3)], set()),
        ([schema(id=1, ssn=2), schema(id=1, code=2)], {2}),
        ([schema(a=1, b=2), schema(b=1, a=2)], {1, 2}),
        ([schema(id=1, ssn=2), schema(id=1), schema(id=1, SSN=3)], {2, 3}),
    ],
)
def test_fields_with_other_names_are_told(catalog: Any, backend: Any, schemas: Any, renamed: set[int]) -> None:
    catalog.loaded[("hr",), "emp"] = {**METADATA, "schemas": schemas}
    catalog.restricted["alice", "emp"] = {}
    assert ask(backend).renamed == renamed


@pytest.mark.rule("POL-2")
@pytest.mark.parametrize(
    ("metadata", "document"),
    [
        (METADATA, []),
        (METADATA, "none"),
        (METADATA, False),
        (None, EU),
        ({"schemas": METADATA["schemas"]}, EU),
        ({**METADATA, "table-uuid": 1}, EU),
        ({"table-uuid": "u-1"}, EU),
        ({**METADATA, "schemas": []}, EU),
        ({**METADATA, "schemas": [{}]}, EU),
        ({**METADATA, "schemas": [{"fields": [{"id": "1", "name": "a"}]}]}, EU),
        ({**METADATA, "schemas": [{"fields": [{"id": 1}]}]}, EU),
    ],
)
def test_what_is_no_answer_is_no_permission(catalog: Any, backend: Any, metadata: Any, document: Any) -> None:
    catalog.loaded[("hr",), "emp"] = metadata
    catalog.restricted["alice", "emp"] = document
    with pytest.raises(ExternalError):
        ask(backend)


@pytest.mark.rule("POL-2")
@pytest.mark.parametrize("status", [500, 503, 400])
def test_a_catalog_that_fails_permits_nothing(catalog: Any, backend: Any, status: int) -> None:
    ask(backend)
    catalog.reply = lambda request: catalog.error(status) if "/tables/" in request.path else None
    with pytest.raises(SqeError):
        ask(backend)
    catalog.reply = None
    assert ask(backend) is None


def test_a_table_that_is_missing_or_denied(catalog: Any, backend: Any) -> None:
    with pytest.raises(ObjectNotFoundError):
        ask(backend, name="nothing")
    catalog.reply = lambda request: catalog.error(403, "ForbiddenException") if "/tables/" in request.path else None
    with pytest.raises(ObjectNotFoundError):
        ask(backend)
    catalog.reply = lambda request: catalog.error(401, "NotAuthorizedException") if "/tables/" in request.path else None
    with pytest.raises(SqeError) as caught:
        ask(backend)
    assert caught.value.code is ErrorCode.AUTHENTICATION_FAILED


def test_it_can_be_switched_off(catalog: Any, make: Any) -> None:
    catalog.restricted["alice", "emp"] = EU
    assert ask(make(read_restrictions=False)) is None
    assert catalog.requests == []
