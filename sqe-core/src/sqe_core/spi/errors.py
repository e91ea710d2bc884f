"""Every error that SQE raises on purpose.

SqeError
├── UserError                  the statement or the request is at fault
│   ├── AccessDeniedError
│   ├── NotSupportedError
│   ├── ObjectNotFoundError    missing, hidden and denied objects look the same (ERR-5)
│   └── InvalidCredentialsError
├── InternalError              SQE is at fault; the client gets a fixed text
│   └── EngineLostError        the engine's JVM ended while the statement ran
├── ResourcesError             a limit was reached
│   ├── QueryTimeoutError
│   ├── QueryCancelledError
│   └── ShuttingDownError      the server is about to end and takes nothing new
├── ExternalError              a catalog, store, identity provider or policy engine is at fault
│   └── CommitConflictError
└── StartupError               SQE cannot start; never reaches a client of a server
    ├── ConfigError
    └── PluginError
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class ErrorKind(Enum):
    """Who has to act: the person who sent the statement, we, the operator, or another system."""

    USER = "USER_ERROR"
    INTERNAL = "INTERNAL_ERROR"
    RESOURCES = "INSUFFICIENT_RESOURCES"
    EXTERNAL = "EXTERNAL"


class ErrorCode(Enum):
    """The stable codes; the value is the number that protocols send (docs/flight.md)."""

    SYNTAX_ERROR = 1
    PARSE_ERROR = 2
    SEMANTIC_ERROR = 4
    TYPE_MISMATCH = 7
    TABLE_NOT_FOUND = 11
    COLUMN_NOT_FOUND = 12
    SCHEMA_NOT_FOUND = 13
    CATALOG_NOT_FOUND = 14
    VIEW_NOT_FOUND = 15
    FUNCTION_NOT_FOUND = 20
    INVALID_ARGUMENTS = 21
    INVALID_SESSION_PROPERTY = 22
    UNKNOWN_TRANSACTION = 23
    NOT_IN_TRANSACTION = 24
    READ_ONLY_VIOLATION = 25
    AUTOCOMMIT_WRITE_CONFLICT = 26
    DUPLICATE_TABLE = 30
    DUPLICATE_COLUMN = 31
    DIVISION_BY_ZERO = 40
    INVALID_CAST = 41
    NOT_SUPPORTED = 100
    AUTHENTICATION_FAILED = 131
    ACCESS_DENIED = 132
    SESSION_EXPIRED = 133
    EXECUTION_FAILED = 65536
    RESOURCE_EXHAUSTED = 65537
    QUERY_TIMEOUT = 65540
    GENERIC_INTERNAL_ERROR = 65541
    QUERY_CANCELLED = 65542
    SERVER_SHUTTING_DOWN = 65543
    CATALOG_ERROR = 65600
    STORAGE_ERROR = 65601
    COMMIT_CONFLICT = 65602
    CATALOG_UNAVAILABLE = 65603
    CIRCUIT_BREAKER_OPEN = 65604


_MAY_BE_DENIAL = frozenset(
    {
        ErrorCode.TABLE_NOT_FOUND,
        ErrorCode.COLUMN_NOT_FOUND,
        ErrorCode.SCHEMA_NOT_FOUND,
        ErrorCode.CATALOG_NOT_FOUND,
        ErrorCode.VIEW_NOT_FOUND,
        ErrorCode.ACCESS_DENIED,
    }
)


@dataclass(frozen=True, slots=True)
class Position:
    """A place in the text that the client sent; both numbers start at 1, columns count code points."""

    line: int
    column: int

    def __str__(self) -> str:
        return f"line {self.line}:{self.column}"


class SqeError(Exception):
    """An error whose text may be shown to the client: it is written by us and holds no secret.

    Args:
        message: what failed, on what object.
        code: the stable code; each class has a default.
        hint: what to do next, for example `did you mean "orders"?`.
        position: where in the client's own text.
        condition: what went wrong, more finely than the code: a word of Trino's list of errors (StandardErrorCode), for
            protocols whose clients tell those apart. It says nothing that the message does not say.
    """

    kind: ErrorKind = ErrorKind.INTERNAL
    default_code: ErrorCode = ErrorCode.GENERIC_INTERNAL_ERROR

    def __init__(
        self,
        message: str,
        *,
        code: ErrorCode | None = None,
        hint: str | None = None,
        position: Position | None = None,
        condition: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code or self.default_code
        self.hint = hint
        self.position = position
        # What may be a denial has one name, whatever is behind it (ERR-5).
        self.condition = None if self.may_be_denial else condition
        # Filled by the query pipeline, so that a report of an error can be found in the logs.
        self.query_id: str | None = None

    @property
    def may_be_denial(self) -> bool:
        """Whether something denied looks like this, as something missing does: both are told with the query's id."""
        return self.code in _MAY_BE_DENIAL

    def __str__(self) -> str:
        where = f"{self.position}: " if self.position else ""
        return where + self.message


class UserError(SqeError):
    """The statement or the request is at fault."""

    kind = ErrorKind.USER
    default_code = ErrorCode.SEMANTIC_ERROR


class AccessDeniedError(UserError):
    """An action refused on something that the user may see."""

    default_code = ErrorCode.ACCESS_DENIED


class NotSupportedError(UserError):
    """A statement, a clause or a capability that SQE or this plugin does not offer."""

    default_code = ErrorCode.NOT_SUPPORTED


class ObjectNotFoundError(UserError):
    """An object that does not exist, or that this user may not see."""

    default_code = ErrorCode.TABLE_NOT_FOUND


class InvalidCredentialsError(UserError):
    """A credential that was this provider's to judge, and is bad. The text is constant (AUTHN-6).

    Args:
        message: the constant text.
        reason: why, for the server's log only; nothing of the credential may be in it.
        key_id: which key it was, when that is no secret, as the id of an access key.
    """

    default_code = ErrorCode.AUTHENTICATION_FAILED

    def __init__(self, message: str = "Authentication failed", *, reason: str = "", key_id: str = "") -> None:
        super().__init__(message)
        self.reason = reason
        self.key_id = key_id
        # Filled by the chain: whose credential it was.
        self.provider = ""


class InternalError(SqeError):
    """SQE is at fault."""


class EngineLostError(InternalError):
    """The engine ended while the statement ran; it restarts by itself."""

    default_code = ErrorCode.EXECUTION_FAILED


class ResourcesError(SqeError):
    """A limit of time, memory, disk or concurrency was reached."""

    kind = ErrorKind.RESOURCES
    default_code = ErrorCode.RESOURCE_EXHAUSTED

    def __init__(
        self,
        message: str,
        *,
        code: ErrorCode | None = None,
        hint: str | None = None,
        position: Position | None = None,
        condition: str | None = None,
        retry_after_secs: int | None = None,
    ) -> None:
        super().__init__(message, code=code, hint=hint, position=position, condition=condition)
        self.retry_after_secs = retry_after_secs


class QueryTimeoutError(ResourcesError):
    """The statement ran longer than it may."""

    default_code = ErrorCode.QUERY_TIMEOUT


class QueryCancelledError(ResourcesError):
    """The statement was cancelled by its user, an admin or a vanished client."""

    kind = ErrorKind.USER
    default_code = ErrorCode.QUERY_CANCELLED


class ShuttingDownError(ResourcesError):
    """The server is about to end: it takes nothing new, or ends what runs. Another one may answer."""

    default_code = ErrorCode.SERVER_SHUTTING_DOWN


class ExternalError(SqeError):
    """A catalog, a store, an identity provider or a policy engine is at fault."""

    kind = ErrorKind.EXTERNAL
    default_code = ErrorCode.CATALOG_ERROR


class CommitConflictError(ExternalError):
    """Somebody else changed the table first; the statement can be sent again."""

    default_code = ErrorCode.COMMIT_CONFLICT


class StartupError(SqeError):
    """SQE cannot start; the text is for the operator."""

    kind = ErrorKind.USER
    default_code = ErrorCode.INVALID_ARGUMENTS


class ConfigError(StartupError):
    """The configuration has faults; `faults` holds every one of them, a line each."""

    def __init__(self, faults: tuple[str, ...]) -> None:
        super().__init__("\n".join(faults))
        self.faults = faults


class PluginError(StartupError):
    """A plugin is missing, broken, duplicated or made for another SPI version."""
