"""Session options of Flight: the current catalog and schema, and the properties of the session."""

from __future__ import annotations

from sqe_core.protocols.flight.wire import flight_pb2 as flight
from sqe_core.spi.errors import ErrorCode, SqeError, UserError
from sqe_core.spi.protocol import MOST_PARTS, GatewaySession

ENDPOINTS = "x-sqe-endpoints"
"""Header that says for one call what the property of the same meaning says for the session."""
_PARALLEL_ENDPOINTS = "parallel_endpoints"
_ERRORS = flight.SetSessionOptionsResult


def get_options(session: GatewaySession) -> flight.GetSessionOptionsResult:
    values = {"catalog": session.catalog, "schema": ".".join(session.schema), **session.properties()}
    return flight.GetSessionOptionsResult(
        session_options={name: flight.SessionOptionValue(string_value=value) for name, value in values.items()}
    )


def endpoints_wanted(session: GatewaySession, asked: str | None) -> int:
    """Return how many endpoints a result may have: as the call asks, else as the session does."""
    if asked is None:
        return int(session.properties().get(_PARALLEL_ENDPOINTS) or 1)
    if not (asked.isascii() and asked.isdigit() and len(asked) < 3 and 1 <= int(asked) <= MOST_PARTS):
        raise UserError(
            f"The header {ENDPOINTS} must be a number from 1 to {MOST_PARTS}", code=ErrorCode.INVALID_ARGUMENTS
        )
    return int(asked)


def set_options(session: GatewaySession, request: flight.SetSessionOptionsRequest) -> flight.SetSessionOptionsResult:
    """Set options one by one; the answer names those that were not set, and why."""
    result = flight.SetSessionOptionsResult()
    known = session.properties()
    # The catalog first: the schema is one of its.
    for name in sorted(request.session_options, key=lambda name: (name != "catalog", name)):
        value = _text(request.session_options[name], "." if name == "schema" else ",")
        error: int | None = None
        if name in ("catalog", "schema"):
            error = _use(session, name, value) if value else _ERRORS.INVALID_VALUE
        elif name not in known:
            error = _ERRORS.INVALID_NAME
        else:
            try:
                session.set_properties({name: value})
            except SqeError as fault:
                error = _ERRORS.INVALID_VALUE if fault.code is ErrorCode.INVALID_ARGUMENTS else _ERRORS.ERROR
        if error is not None:
            result.errors[name].value = error  # type: ignore[assignment]
    return result


def _use(session: GatewaySession, name: str, value: str) -> int | None:
    try:
        if name == "catalog":
            if value != session.catalog:
                session.use(value, None)
        else:
            session.use(None, tuple(value.split(".")))
    except SqeError:
        return _ERRORS.INVALID_VALUE
    return None


def _text(value: flight.SessionOptionValue, separator: str) -> str | None:
    match value.WhichOneof("option_value"):
        case "string_value":
            return value.string_value
        case "bool_value":
            return "true" if value.bool_value else "false"
        case "int64_value":
            return str(value.int64_value)
        case "double_value":
            return repr(value.double_value)
        case "string_list_value":
            return separator.join(value.string_list_value.values)
    return None
