"""Parameters bind as values, never as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqe_core.spi.errors import ErrorCode, UserError
from sqe_core.sql.statement import EngineStatement


def bind_parameters(statement: EngineStatement, given: Sequence[Any] | Mapping[str, Any]) -> Mapping[str, Any]:
    """Match the values that the client gave with the markers of its statement; both must fit exactly."""
    markers = tuple(dict.fromkeys(statement.parameters))
    if isinstance(given, Mapping):
        if statement.positional and given:
            raise _fault("The statement has ? markers", "give the values as a list")
        missing = [name for name in markers if name not in given]
        unknown = [name for name in given if name not in markers]
        if missing or unknown:
            raise _fault(
                "; ".join(
                    f"{what} parameter {', '.join(names)}"
                    for what, names in (("missing", missing), ("unknown", unknown))
                    if names
                ).capitalize(),
                f"the statement names {', '.join(markers) or 'no parameters'}",
            )
        return {name: given[name] for name in markers}
    require_columns(markers, len(given))
    if markers and not statement.positional:
        raise _fault("The statement names its parameters", "give the values by name")
    return dict(zip(markers, given, strict=True))


def require_columns(markers: Sequence[str], given: int) -> None:
    """Raise unless rows of parameters have a column for each marker."""
    if given != len(markers):
        raise _fault(
            f"The statement has {len(markers)} parameter{'s' * (len(markers) != 1)}, {given} given",
            "give a value for each marker",
        )


def _fault(message: str, hint: str) -> UserError:
    return UserError(message, code=ErrorCode.INVALID_ARGUMENTS, hint=hint, condition="INVALID_PARAMETER_USAGE")
