"""What CREATE TABLE and ALTER TABLE may ask for (STMT-3, STMT-7), read from the fields of the parsed command."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqe_core.query.errors.suggestions import did_you_mean
from sqe_core.query.errors.wording import shown
from sqe_core.query.judge import allowed
from sqe_core.spi.errors import ErrorCode, NotSupportedError, UserError

UNSUPPORTED_FORM = "This form of the statement is not supported"
_PROVIDERS = frozenset({"iceberg"})
_DEFAULT_CLASSES = frozenset({"Literal", "UnaryMinus", "Cast"})


def check_table_properties(properties: Mapping[str, str]) -> None:
    """Refuse table properties that are not listed (STMT-7)."""
    lists = allowed.table_properties()
    for key, value in properties.items():
        _check_property_key(key)
        permitted = lists.value_of(key)
        if permitted is not None and not permitted.fits(str(value)):
            raise UserError(
                f"Table property {shown(key)} cannot be {shown(str(value))}",
                code=ErrorCode.INVALID_ARGUMENTS,
                hint=f"it is {permitted}",
                condition="INVALID_TABLE_PROPERTY",
            )


def _check_property_key(key: str) -> None:
    lists = allowed.table_properties()
    reason = lists.refusal(key)
    if reason is None:
        return
    if reason:
        raise NotSupportedError(
            f"Table property {shown(key)} cannot be set: {reason}", condition="INVALID_TABLE_PROPERTY"
        )
    raise NotSupportedError(
        f"Table property {shown(key)} is not supported",
        hint=did_you_mean(key, sorted(lists.allowed)),
        condition="INVALID_TABLE_PROPERTY",
    )


def check_unset_properties(keys: object) -> None:
    if not isinstance(keys, Sequence) or isinstance(keys, str):
        raise NotSupportedError(UNSUPPORTED_FORM)
    for key in keys:
        _check_property_key(str(key))


def check_table_spec(spec: object) -> None:
    if not isinstance(spec, Mapping) or not isinstance(spec.get("properties"), Mapping):
        raise NotSupportedError(UNSUPPORTED_FORM)  # what cannot be read cannot be judged
    provider = spec.get("provider")
    if provider is not None and str(provider).lower() not in _PROVIDERS:
        raise NotSupportedError(
            f"USING {shown(str(provider))} is not supported: every table is an Iceberg table", hint="leave USING out"
        )
    if spec.get("location") is not None:
        raise NotSupportedError("LOCATION is not supported: the catalog chooses where a table's files lie")
    options = spec.get("optionExpression", spec.get("options"))
    if options and (not isinstance(options, Mapping) or options.get("options", options.keys() - {"class"})):
        raise NotSupportedError("OPTIONS are not supported", hint="use TBLPROPERTIES")
    for clause, text in (
        ("serde", "Row formats and SERDE are not supported: every table is an Iceberg table"),
        ("external", "EXTERNAL tables are not supported"),
        ("constraints", "Constraints are not supported by Iceberg tables"),
        ("collation", "A default collation is not supported"),
    ):
        if spec.get(clause):
            raise NotSupportedError(text)
    check_table_properties(text_map(spec["properties"]))


def check_new_columns(columns: Sequence[Mapping[str, Any]]) -> None:
    for column in columns:
        name = shown(str(column.get("name")))
        if column.get("generationExpression") is not None:
            raise NotSupportedError(f"Column {name}: generated columns are not supported by Iceberg tables")
        if column.get("identityColumnSpec") is not None:
            raise NotSupportedError(f"Column {name}: identity columns are not supported by Iceberg tables")
        _check_default(name, column.get("defaultValue"))


def check_added_columns(columns: Sequence[Mapping[str, Any]]) -> None:
    for column in columns:
        _check_default(shown(str(column.get("colName", column.get("name")))), column.get("default"))


def _check_default(name: str, default: object) -> None:
    """A default that is no literal would be frozen to its value of today."""
    if default is None:
        return
    value = default.get("child") if isinstance(default, Mapping) else None
    if not isinstance(value, Mapping) or value.get("class") not in _DEFAULT_CLASSES:
        raise NotSupportedError(f"Column {name}: a default must be a literal")


def check_altered_columns(specs: Sequence[Mapping[str, Any]]) -> None:
    for spec in specs:
        if spec.get("newDefaultExpression") is not None or spec.get("dropDefault"):
            raise NotSupportedError("The default of an existing column cannot be changed")


def records(value: object) -> list[Mapping[str, Any]]:
    """Return a list of records as the engine renders them; anything else cannot be judged."""
    if value is None:
        return []
    if not isinstance(value, Sequence) or isinstance(value, str) or not all(isinstance(one, Mapping) for one in value):
        raise NotSupportedError(UNSUPPORTED_FORM)
    return list(value)


def text_map(value: object) -> Mapping[str, str]:
    if not isinstance(value, Mapping):
        raise NotSupportedError(UNSUPPORTED_FORM)
    return {str(key): str(text) for key, text in value.items()}
