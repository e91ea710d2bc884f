"""A server's refusal, turned back into the error that it was there."""

from __future__ import annotations

import re

import grpc

from sqe_core.spi.errors import (
    ErrorCode,
    ErrorKind,
    ExternalError,
    InternalError,
    Position,
    QueryCancelledError,
    SqeError,
    UserError,
)

_POSITION = re.compile(r"line (\d+):(\d+): ")


class RemoteError(SqeError):
    def __init__(
        self, message: str, *, kind: ErrorKind, code: ErrorCode, hint: str | None, position: Position | None
    ) -> None:
        super().__init__(message, code=code, hint=hint, position=position)
        self.kind = kind


class SignedOutError(UserError):
    """The server does not know the session, or the login, that a call came with."""

    default_code = ErrorCode.SESSION_EXPIRED


class ConnectionLostError(ExternalError):
    """The server cannot be reached, or went away in the middle of a call."""

    default_code = ErrorCode.EXECUTION_FAILED


def error_of(failure: BaseException, address: str) -> SqeError:
    if isinstance(failure, grpc.FutureCancelledError):
        return QueryCancelledError("The statement was cancelled")
    if not isinstance(failure, grpc.RpcError) or not isinstance(failure, grpc.Call):
        return InternalError(f"The connection to {address} failed: {failure}")
    status, text = failure.code(), failure.details() or ""
    told = dict(failure.trailing_metadata() or ())
    code = ErrorCode.__members__.get(str(told.get("x-sqe-error-code", "")))
    if code is None:
        return _of_transport(status, text, address)
    if status is grpc.StatusCode.UNAUTHENTICATED:
        error: SqeError = SignedOutError(text, code=code)
    elif code is ErrorCode.QUERY_CANCELLED:
        error = QueryCancelledError(text)
    else:
        error = _of_server(code, text, told)
    query_id = told.get("x-sqe-query-id")
    error.query_id = str(query_id) if query_id else None
    return error


def _of_server(code: ErrorCode, text: str, told: dict[str, str | bytes]) -> RemoteError:
    query_id, hint = str(told.get("x-sqe-query-id", "")), told.get("x-sqe-hint-bin")
    message = text.removesuffix(f" (query id {query_id})")
    if isinstance(hint, bytes):
        hint = hint.decode("utf-8", "replace")
        message = message.removesuffix(f" ({hint})")
    position = None
    if found := _POSITION.match(message):
        position = Position(int(found[1]), int(found[2]))
        message = message[found.end() :]
    kind = told.get("x-sqe-error-kind")
    known = {each.value: each for each in ErrorKind}
    return RemoteError(message, kind=known.get(str(kind), _kind_of(code)), code=code, hint=hint, position=position)


def _kind_of(code: ErrorCode) -> ErrorKind:
    """Which kind of error a code mostly is."""
    if code.value < ErrorCode.EXECUTION_FAILED.value:
        return ErrorKind.USER
    if code.value >= ErrorCode.CATALOG_ERROR.value:
        return ErrorKind.EXTERNAL
    internal = (ErrorCode.EXECUTION_FAILED, ErrorCode.GENERIC_INTERNAL_ERROR)
    return ErrorKind.INTERNAL if code in internal else ErrorKind.RESOURCES


def _of_transport(status: grpc.StatusCode, text: str, address: str) -> SqeError:
    """What gRPC itself, or something between us and the server, has to say."""
    match status:
        case grpc.StatusCode.CANCELLED:
            return QueryCancelledError("The statement was cancelled")
        case grpc.StatusCode.UNAVAILABLE | grpc.StatusCode.DEADLINE_EXCEEDED:
            return ConnectionLostError(
                f"The server {address} does not answer: {text}",
                hint="a change that was under way may have been committed or not; look before you run it again",
            )
        case grpc.StatusCode.UNAUTHENTICATED:
            return SignedOutError(text)
        case grpc.StatusCode.UNIMPLEMENTED:
            return ExternalError(f"{address} does not speak Arrow Flight SQL: {text}")
    return ExternalError(f"{address} answered {status.name}: {text}", code=ErrorCode.EXECUTION_FAILED)
