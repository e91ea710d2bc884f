"""Our errors as statuses of gRPC."""

from __future__ import annotations

import grpc

from sqe_core.protocols.flight.handles import UnknownHandleError
from sqe_core.spi.errors import (
    AccessDeniedError,
    ErrorCode,
    InternalError,
    InvalidCredentialsError,
    SqeError,
)

_CODES = {
    ErrorCode.TABLE_NOT_FOUND: grpc.StatusCode.NOT_FOUND,
    ErrorCode.VIEW_NOT_FOUND: grpc.StatusCode.NOT_FOUND,
    ErrorCode.SCHEMA_NOT_FOUND: grpc.StatusCode.NOT_FOUND,
    ErrorCode.CATALOG_NOT_FOUND: grpc.StatusCode.NOT_FOUND,
    ErrorCode.DUPLICATE_TABLE: grpc.StatusCode.ALREADY_EXISTS,
    ErrorCode.DUPLICATE_COLUMN: grpc.StatusCode.ALREADY_EXISTS,
    ErrorCode.AUTHENTICATION_FAILED: grpc.StatusCode.UNAUTHENTICATED,
    ErrorCode.SESSION_EXPIRED: grpc.StatusCode.UNAUTHENTICATED,
    ErrorCode.ACCESS_DENIED: grpc.StatusCode.PERMISSION_DENIED,
    ErrorCode.NOT_SUPPORTED: grpc.StatusCode.UNIMPLEMENTED,
    ErrorCode.UNKNOWN_TRANSACTION: grpc.StatusCode.FAILED_PRECONDITION,
    ErrorCode.NOT_IN_TRANSACTION: grpc.StatusCode.FAILED_PRECONDITION,
    ErrorCode.READ_ONLY_VIOLATION: grpc.StatusCode.FAILED_PRECONDITION,
    ErrorCode.AUTOCOMMIT_WRITE_CONFLICT: grpc.StatusCode.FAILED_PRECONDITION,
    ErrorCode.QUERY_TIMEOUT: grpc.StatusCode.DEADLINE_EXCEEDED,
    ErrorCode.QUERY_CANCELLED: grpc.StatusCode.CANCELLED,
    ErrorCode.RESOURCE_EXHAUSTED: grpc.StatusCode.RESOURCE_EXHAUSTED,
    ErrorCode.SERVER_SHUTTING_DOWN: grpc.StatusCode.UNAVAILABLE,
    ErrorCode.CATALOG_UNAVAILABLE: grpc.StatusCode.UNAVAILABLE,
    ErrorCode.CIRCUIT_BREAKER_OPEN: grpc.StatusCode.UNAVAILABLE,
    ErrorCode.COMMIT_CONFLICT: grpc.StatusCode.ABORTED,
    ErrorCode.EXECUTION_FAILED: grpc.StatusCode.INTERNAL,
    ErrorCode.GENERIC_INTERNAL_ERROR: grpc.StatusCode.INTERNAL,
    ErrorCode.CATALOG_ERROR: grpc.StatusCode.INTERNAL,
    ErrorCode.STORAGE_ERROR: grpc.StatusCode.INTERNAL,
}
# The text travels in a header, percent-encoded, and clients take 8 KiB of headers.
_LONGEST_TEXT = 4000
_PLAIN = frozenset(range(0x20, 0x7F)) - {ord("%")}
_LONGEST_HINT = 1000


def status_code(error: SqeError) -> grpc.StatusCode:
    if isinstance(error, UnknownHandleError):
        return grpc.StatusCode.NOT_FOUND
    if isinstance(error, InvalidCredentialsError):
        return grpc.StatusCode.UNAUTHENTICATED
    if isinstance(error, AccessDeniedError):
        return grpc.StatusCode.PERMISSION_DENIED
    known = _CODES.get(error.code)
    if known is not None:
        return known
    return grpc.StatusCode.INTERNAL if isinstance(error, InternalError) else grpc.StatusCode.INVALID_ARGUMENT


def status_text(error: SqeError) -> str:
    """Return what the client reads: the error, what to do next, and what an administrator finds a denial by."""
    text = f"{error} ({error.hint})" if error.hint else str(error)
    if error.query_id and error.may_be_denial:
        text += f" (query id {error.query_id})"
    encoded = text[:_LONGEST_TEXT].encode("utf-8", "replace")
    left = _LONGEST_TEXT
    for place, byte in enumerate(encoded):
        left -= 1 if byte in _PLAIN else 3
        if left < 0:
            return encoded[:place].decode("utf-8", "ignore")
    return encoded.decode("utf-8")


def trailing_metadata(error: SqeError, *, request_id: str | None = None) -> tuple[tuple[str, str | bytes], ...]:
    """Return what programs read; with the hint they can tell the two parts of the text from each other."""
    pairs: list[tuple[str, str | bytes]] = [
        ("x-sqe-error-code", error.code.name),
        ("x-sqe-error-kind", error.kind.value),
    ]
    hint = (error.hint or "").encode("utf-8", "replace")
    if 0 < len(hint) <= _LONGEST_HINT:
        pairs.append(("x-sqe-hint-bin", hint))
    if request_id:
        pairs.append(("x-request-id", request_id))
    if error.query_id:
        pairs.append(("x-sqe-query-id", error.query_id))
    retry = getattr(error, "retry_after_secs", None)
    if retry is not None:
        pairs.append(("retry-after", str(retry)))
    return tuple(pairs)
