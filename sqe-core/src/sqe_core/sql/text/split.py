"""Scripts to statements, for the shell: at semicolons outside strings, comments and quoted names."""

from __future__ import annotations

from sqe_core.sql.statement import ScriptStatement
from sqe_core.sql.text.tokens import PATTERNS, Lexicon, end_of_nested_comment

_OPENERS = ("'", '"', "/*", "$", "`")


def split(script: str, lexicon: Lexicon = Lexicon.ANSI) -> tuple[ScriptStatement, ...]:
    """Return the statements; the last one is not terminated while its text, string or comment goes on.

    Never raises: what no reader accepts is passed on, so that the statement is refused with its position.
    """
    statements: list[ScriptStatement] = []
    match_at = PATTERNS[lexicon].match
    first: int | None = None
    offset, size = 0, len(script)
    while offset < size:
        match = match_at(script, offset)
        group = match.lastgroup if match else None
        end = match.end() if match else offset + 1
        if group == "comment":
            end = end_of_nested_comment(script, offset)
        if (match is None and _goes_on(script, offset, lexicon)) or end < 0:
            first, end = offset if first is None else first, size
        elif group == "symbol" and script[offset] == ";":
            if first is not None:
                statements.append(_statement(script, first, offset, terminated=True))
            first = None
        elif first is None and group not in ("skip", "comment"):
            first = offset
        offset = end
    if first is not None:
        statements.append(_statement(script, first, size, terminated=False))
    return tuple(statements)


def _goes_on(script: str, offset: int, lexicon: Lexicon) -> bool:
    """Whether a string, name or comment begins here whose end was not written yet."""
    if script[offset] == "`":
        return lexicon is Lexicon.SPARK
    if script[offset] == "$":
        return script.startswith("$$", offset)
    return script.startswith(_OPENERS, offset)


def _statement(script: str, start: int, end: int, *, terminated: bool) -> ScriptStatement:
    return ScriptStatement(text=script[start:end].rstrip(), offset=start, terminated=terminated)
