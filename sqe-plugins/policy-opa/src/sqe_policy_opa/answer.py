"""What OPA answers, read strictly: whatever is not exactly of the known form is an error, which denies (POL-4).

A mistyped `row_filter` must not mean "no filter". Keys are known, types exact, columns exist, nothing stands twice, and
no two keys differ in their case only.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqe_core.spi import (
    Column,
    ColumnMask,
    Decision,
    Effect,
    ErrorCode,
    ExternalError,
    Resource,
    SqlExpression,
)
from sqe_policy_opa.masks import LONGEST_TEXT, read_mask
from sqe_policy_opa.transport import Answer

_ENVELOPE = frozenset({"result", "decision_id", "metrics", "provenance", "warning", "explanation"})
_ONE = frozenset(
    {"version", "allow", "row_filters", "column_masks", "restricted_columns", "hidden_columns", "check", "ttl_s"}
)
_ENTRY = frozenset({"allowed_columns", "masks", "row_filters", "hidden_columns", "check", "ttl_s"})
_VERSION = 1
_MOST_FILTERS = 100
_LONGEST_TTL = 10 * 365 * 86400
_DECISION_ID = re.compile(r"[A-Za-z0-9_.:/-]{1,200}")


class _Malformed(ValueError):
    """The answer has another form; the text names what, and nothing of the answer itself."""


def read_result(answer: Answer) -> tuple[Any, str | None]:
    """Return the result of an evaluation and OPA's id of it.

    Raises:
        ExternalError: there is no result.
    """
    if answer.status != 200:
        raise _unusable(_refusal(answer.status))
    body = answer.body
    if not isinstance(body, Mapping) or not body.keys() <= _ENVELOPE:
        raise _unusable("is no answer of OPA")
    if body.get("result") is None:
        # OPA says so with status 200 when nobody has loaded the policy.
        raise _unusable("has no result: the document is not defined")
    identifier = body.get("decision_id")
    if identifier is not None and not (isinstance(identifier, str) and _DECISION_ID.fullmatch(identifier)):
        raise _unusable("has a decision id of another form")
    return body["result"], identifier


def read_one(result: Any, resource: Resource) -> Decision:
    try:
        return _one(result, resource.columns)
    except ValueError as error:
        raise _unusable(str(error)) from error


def read_all(result: Any, resources: Mapping[str, Resource], read_only: Collection[str]) -> dict[str, Decision]:
    """Read the answer about several objects, by their keys. What has no entry is denied.

    Args:
        result: OPA's result.
        resources: what was asked about.
        read_only: the keys of what is read or listed, and nothing else.
    """
    try:
        return _all(result, resources, read_only)
    except ValueError as error:
        raise _unusable(str(error)) from error


def _one(result: Any, columns: Sequence[Column]) -> Decision:
    given = _table(result, _ONE, "result")
    _refuse_case_variants(given)
    _check_version(given)
    if "restricted_columns" in given and "hidden_columns" in given:
        raise _Malformed("names hidden columns twice")
    hidden = _names(given, "restricted_columns" if "restricted_columns" in given else "hidden_columns", columns)
    allowed = _decision(given, hidden, "column_masks", columns)
    # Read first, so that a malformed answer is told apart from a refusal.
    return allowed if given.get("allow") is True else Decision.deny("opa: allow is not true")


def _all(result: Any, resources: Mapping[str, Resource], read_only: Collection[str]) -> dict[str, Decision]:
    given = _table(result, frozenset({"version", "per_table"}), "result")
    _check_version(given)
    if "per_table" not in given:
        raise _Malformed("has no per_table")
    entries = _table(given["per_table"], frozenset(resources), "per_table")
    _refuse_case_variants(given)
    return {
        key: _entry(entries[key], resource.columns, reads=key in read_only)
        if key in entries
        else Decision.deny("opa: no entry in per_table")
        for key, resource in resources.items()
    }


def _check_version(given: Mapping[str, Any]) -> None:
    version = given.get("version", _VERSION)
    if type(version) is not int or version != _VERSION:
        raise _Malformed("has a version that SQE does not know")


def _entry(value: Any, columns: Sequence[Column], *, reads: bool) -> Decision:
    given = _table(value, _ENTRY, "an entry of per_table")
    hidden = _names(given, "hidden_columns", columns)
    if given.get("allowed_columns") is not None:
        # Of a name in a listing, or of a table that is gone, there is no column to see.
        if not columns and not reads:
            raise _Malformed("allows single columns of something that has none, or that does not exist yet")
        hidden |= {column.name for column in columns} - _names(given, "allowed_columns", columns)
    return _decision(given, hidden, "masks", columns)


def _decision(given: Mapping[str, Any], hidden: frozenset[str], masks_key: str, columns: Sequence[Column]) -> Decision:
    ttl = given.get("ttl_s")
    if "ttl_s" in given and (type(ttl) is not int or not 0 <= ttl <= _LONGEST_TTL):
        raise _Malformed("has a ttl_s that is no whole number of seconds")
    return Decision(
        effect=Effect.ALLOW,
        row_filters=_expressions(given, "row_filters", reads_tables=True),
        column_masks=_masks(given, masks_key, columns),
        hidden_columns=hidden,
        check=_expressions(given, "check") if "check" in given else None,
        ttl_secs=ttl,
    )


def _expressions(given: Mapping[str, Any], key: str, *, reads_tables: bool = False) -> tuple[SqlExpression, ...]:
    value = given.get(key, [])
    if not isinstance(value, list) or len(value) > _MOST_FILTERS:
        raise _Malformed(f"has {key} that are no array, or too many")
    for text in value:
        if not isinstance(text, str) or not text.strip() or len(text) > LONGEST_TEXT:
            raise _Malformed(f"has {key} that are no expressions")
    return tuple(SqlExpression(text=text, reads_tables=reads_tables) for text in value)


def _masks(given: Mapping[str, Any], key: str, columns: Sequence[Column]) -> tuple[ColumnMask, ...]:
    value = given.get(key, {})
    if not isinstance(value, Mapping):
        raise _Malformed(f"has {key} that are no object")
    _check_columns(value, key, columns)
    try:
        return tuple(ColumnMask(column=column, mask=read_mask(mask)) for column, mask in value.items())
    except ValueError as error:
        raise _Malformed(f"has {key} that SQE does not understand: {error}") from error


def _names(given: Mapping[str, Any], key: str, columns: Sequence[Column]) -> frozenset[str]:
    value = given.get(key, [])
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise _Malformed(f"has {key} that are no array of names")
    if len({name.casefold() for name in value}) != len(value):
        raise _Malformed(f"names a column twice in {key}")
    _check_columns(value, key, columns)
    return frozenset(value)


def _check_columns(names: Collection[str], key: str, columns: Sequence[Column]) -> None:
    """A name that fits nothing protects nothing. Without columns there is nothing to compare with: the core does."""
    if columns and not {column.name for column in columns}.issuperset(names):
        raise _Malformed(f"names a column in {key} that the table does not have")


def _table(value: Any, known: Collection[str], what: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise _Malformed(f"has a {what} that is no object")
    if not value.keys() <= set(known):
        raise _Malformed(f"has keys in {what} that were not asked for")
    return value


def _refuse_case_variants(value: Any) -> None:
    if isinstance(value, Mapping):
        if len({key.casefold() for key in value}) != len(value):
            raise _Malformed("has keys that differ in their case only")
        for item in value.values():
            _refuse_case_variants(item)
    elif isinstance(value, list):
        for item in value:
            _refuse_case_variants(item)


def _refusal(status: int) -> str:
    if status in (401, 403):
        return f"is a refusal (status {status}): OPA wants another token or certificate of SQE"
    return f"has the status {status}"


def _unusable(message: str) -> ExternalError:
    return ExternalError(f"The answer of OPA {message}", code=ErrorCode.EXECUTION_FAILED)
