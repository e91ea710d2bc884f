"""What a failure is called, more finely than its code: a matter of the text and of types, never of values."""

from __future__ import annotations

import re

from sqe_core.engine.port import EngineFailure
from sqe_core.query.errors.templates import Template
from sqe_core.spi.errors import ErrorCode

_CAST = re.compile(r"(?:TRY_)?CAST\(", re.IGNORECASE)
_TYPED_LITERAL = re.compile(
    r"(?:TINYINT|SMALLINT|INT|INTEGER|BIGINT|REAL|DOUBLE|DECIMAL|BOOLEAN|DATE|TIME|TIMESTAMP|INTERVAL)\s*'",
    re.IGNORECASE,
)


def condition(failure: EngineFailure, template: Template, written: str) -> str | None:
    """Return the condition; of text that is a policy's or a view's the code is enough.

    Args:
        failure: what the engine said.
        template: what is said of it.
        written: the user's own text, from the place of the failure on.
    """
    given = failure.parameters
    if failure.generated:
        return None
    if template.code is ErrorCode.INVALID_CAST and _TYPED_LITERAL.match(written):
        return "INVALID_LITERAL"
    if is_converted(failure, written):
        return "TYPE_MISMATCH"
    if failure.condition.startswith("CAST_OVERFLOW") and given.get("sourceType", "").startswith('"DECIMAL'):
        return "INVALID_CAST_ARGUMENT"
    # A condition that is none, and a sum of intervals that do not go together, are no wrong calls.
    is_call = given.get("requiredType") != '"BOOLEAN"' and not given.get("inputType", "").startswith('"INTERVAL')
    return template.condition if is_call else None


def is_converted(failure: EngineFailure, written: str) -> bool:
    """Whether a text was read as what a function takes, and nobody wrote a CAST."""
    fragment = failure.fragment or ""
    cast = not fragment or _CAST.match(fragment) or _CAST.match(written) or "::" in fragment
    of_text = failure.parameters.get("sourceType") == '"STRING"'
    return not cast and failure.condition == "CAST_INVALID_INPUT" and of_text
