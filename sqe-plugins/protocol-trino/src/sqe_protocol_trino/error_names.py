"""SQE's errors as Trino's: one table, with Trino's names, numbers and types."""

from __future__ import annotations

from typing import Any

from sqe_core.spi import ErrorCode, InternalError, SqeError

_USER, _INTERNAL, _RESOURCES, _EXTERNAL = "USER_ERROR", "INTERNAL_ERROR", "INSUFFICIENT_RESOURCES", "EXTERNAL"
_TYPES = ((0, _USER), (0x1_0000, _INTERNAL), (0x2_0000, _RESOURCES), (0x100_0000, _EXTERNAL))

NAMES: dict[ErrorCode, tuple[str, int]] = {
    ErrorCode.SYNTAX_ERROR: ("SYNTAX_ERROR", 1),
    ErrorCode.PARSE_ERROR: ("SYNTAX_ERROR", 1),
    ErrorCode.SEMANTIC_ERROR: ("GENERIC_USER_ERROR", 0),
    ErrorCode.TYPE_MISMATCH: ("TYPE_MISMATCH", 58),
    ErrorCode.TABLE_NOT_FOUND: ("TABLE_NOT_FOUND", 46),
    ErrorCode.COLUMN_NOT_FOUND: ("COLUMN_NOT_FOUND", 47),
    ErrorCode.SCHEMA_NOT_FOUND: ("SCHEMA_NOT_FOUND", 45),
    ErrorCode.CATALOG_NOT_FOUND: ("CATALOG_NOT_FOUND", 44),
    ErrorCode.VIEW_NOT_FOUND: ("TABLE_NOT_FOUND", 46),
    ErrorCode.FUNCTION_NOT_FOUND: ("FUNCTION_NOT_FOUND", 6),
    ErrorCode.INVALID_ARGUMENTS: ("INVALID_FUNCTION_ARGUMENT", 7),
    ErrorCode.INVALID_SESSION_PROPERTY: ("INVALID_SESSION_PROPERTY", 14),
    ErrorCode.UNKNOWN_TRANSACTION: ("UNKNOWN_TRANSACTION", 20),
    ErrorCode.NOT_IN_TRANSACTION: ("NOT_IN_TRANSACTION", 21),
    ErrorCode.READ_ONLY_VIOLATION: ("READ_ONLY_VIOLATION", 23),
    ErrorCode.AUTOCOMMIT_WRITE_CONFLICT: ("AUTOCOMMIT_WRITE_CONFLICT", 25),
    ErrorCode.DUPLICATE_TABLE: ("TABLE_ALREADY_EXISTS", 50),
    ErrorCode.DUPLICATE_COLUMN: ("DUPLICATE_COLUMN_NAME", 54),
    ErrorCode.DIVISION_BY_ZERO: ("DIVISION_BY_ZERO", 8),
    ErrorCode.INVALID_CAST: ("INVALID_CAST_ARGUMENT", 9),
    ErrorCode.NOT_SUPPORTED: ("NOT_SUPPORTED", 13),
    ErrorCode.AUTHENTICATION_FAILED: ("PERMISSION_DENIED", 4),
    ErrorCode.ACCESS_DENIED: ("PERMISSION_DENIED", 4),
    ErrorCode.SESSION_EXPIRED: ("PERMISSION_DENIED", 4),
    ErrorCode.EXECUTION_FAILED: ("GENERIC_INTERNAL_ERROR", 0x1_0000),
    ErrorCode.RESOURCE_EXHAUSTED: ("GENERIC_INSUFFICIENT_RESOURCES", 0x2_0000),
    ErrorCode.QUERY_TIMEOUT: ("EXCEEDED_TIME_LIMIT", 0x2_0003),
    ErrorCode.GENERIC_INTERNAL_ERROR: ("GENERIC_INTERNAL_ERROR", 0x1_0000),
    ErrorCode.QUERY_CANCELLED: ("USER_CANCELED", 3),
    ErrorCode.SERVER_SHUTTING_DOWN: ("SERVER_SHUTTING_DOWN", 0x1_0009),
    ErrorCode.CATALOG_ERROR: ("ICEBERG_CATALOG_ERROR", 0x504_000D),
    ErrorCode.STORAGE_ERROR: ("ICEBERG_FILESYSTEM_ERROR", 0x504_0008),
    ErrorCode.COMMIT_CONFLICT: ("ICEBERG_COMMIT_ERROR", 0x504_000C),
    ErrorCode.CATALOG_UNAVAILABLE: ("ICEBERG_CATALOG_ERROR", 0x504_000D),
    ErrorCode.CIRCUIT_BREAKER_OPEN: ("ICEBERG_CATALOG_ERROR", 0x504_000D),
}
"""Trino has no error of its own for a view that is missing, a login, or a session: those share one."""

CONDITIONS: dict[str, int] = {
    "SYNTAX_ERROR": 1,
    "NOT_FOUND": 5,
    "FUNCTION_NOT_FOUND": 6,
    "INVALID_FUNCTION_ARGUMENT": 7,
    "INVALID_CAST_ARGUMENT": 9,
    "NOT_SUPPORTED": 13,
    "INVALID_WINDOW_FRAME": 15,
    "CONSTRAINT_VIOLATION": 16,
    "INVALID_TABLE_PROPERTY": 18,
    "NUMERIC_VALUE_OUT_OF_RANGE": 19,
    "SUBQUERY_MULTIPLE_ROWS": 28,
    "PROCEDURE_NOT_FOUND": 29,
    "INVALID_PROCEDURE_ARGUMENT": 30,
    "SCHEMA_NOT_EMPTY": 34,
    "TYPE_NOT_FOUND": 43,
    "ROLE_NOT_FOUND": 48,
    "SCHEMA_ALREADY_EXISTS": 49,
    "COLUMN_ALREADY_EXISTS": 51,
    "ROLE_ALREADY_EXISTS": 52,
    "DUPLICATE_NAMED_QUERY": 53,
    "TYPE_MISMATCH": 58,
    "INVALID_LITERAL": 59,
    "MISMATCHED_COLUMN_ALIASES": 61,
    "AMBIGUOUS_NAME": 62,
    "INVALID_COLUMN_REFERENCE": 63,
    "MISSING_GROUP_BY": 64,
    "MISSING_ORDER_BY": 65,
    "MISSING_OVER": 66,
    "NESTED_AGGREGATION": 67,
    "NESTED_WINDOW": 68,
    "EXPRESSION_NOT_IN_DISTINCT": 69,
    "FUNCTION_NOT_WINDOW": 71,
    "EXPRESSION_NOT_AGGREGATE": 73,
    "EXPRESSION_NOT_SCALAR": 74,
    "INVALID_ARGUMENTS": 76,
    "INVALID_PARAMETER_USAGE": 80,
    "INVALID_RECURSIVE_REFERENCE": 87,
    "INVALID_WINDOW_REFERENCE": 93,
    "MERGE_TARGET_ROW_MULTIPLE_MATCHES": 119,
    "QUERY_QUEUE_FULL": 0x2_0002,
}
"""What an error says beside its code (`SqeError.condition`); a word that is not here is told by its code."""

QUERY_TEXT_TOO_LARGE = ("QUERY_TEXT_TOO_LARGE", 35)
ABANDONED_QUERY = ("ABANDONED_QUERY", 2)


def told(error: BaseException) -> dict[str, Any]:
    """Return an error as a client reads it: of what is no `SqeError` nothing (ERR-1)."""
    shown = error if isinstance(error, SqeError) else InternalError("Internal error")
    name, number = _name(shown)
    message = shown.message if shown.hint is None else f"{shown.message}; {shown.hint}"
    return named(name, number, f"{shown.position}: {message}" if shown.position else message, shown)


def _name(error: SqeError) -> tuple[str, int]:
    """Return the name and the number; what may be a denial has no condition (ERR-5)."""
    number = CONDITIONS.get(error.condition or "")
    return NAMES[error.code] if number is None or error.may_be_denial else (str(error.condition), number)


def named(name: str, number: int, message: str, error: SqeError | None = None) -> dict[str, Any]:
    """Return an error of one of Trino's names."""
    kind = next(text for start, text in reversed(_TYPES) if number >= start)
    failure: dict[str, Any] = {
        "type": "io.trino.spi.TrinoException",
        "message": message,
        "suppressed": [],
        "stack": [],
        "errorInfo": {"code": number, "name": name, "type": kind},
    }
    document: dict[str, Any] = {
        "message": message,
        "errorCode": number,
        "errorName": name,
        "errorType": kind,
        "failureInfo": failure,
    }
    if error is not None and error.position is not None:
        location = {"lineNumber": error.position.line, "columnNumber": error.position.column}
        document["errorLocation"] = failure["errorLocation"] = location
    return document
