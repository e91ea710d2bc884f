"""How a failed statement is told: kind, code, message, the line with a caret, the hint."""

from __future__ import annotations

from dataclasses import dataclass

from sqe_core.cli.shell.terminal_text import display_width, escape_unprintable
from sqe_core.spi.errors import ErrorKind, Position, SqeError

_LONGEST_LINE = 160


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where a statement stands: the whole text that the person wrote, and the statement's offset in it."""

    text: str
    offset: int = 0
    name: str | None = None
    """The script's name, None for text that was typed."""


def position_in_script(position: Position, origin: Origin) -> Position:
    """Turn a position in a statement into one in the whole script."""
    before = origin.text[: origin.offset]
    lines = before.count("\n")
    column = position.column
    if position.line == 1:
        column += len(before) - (before.rfind("\n") + 1)
    return Position(line=position.line + lines, column=column)


def raw_report(error: BaseException) -> str:
    """One line, for machines: the code and the message."""
    known = _known(error)
    return f"{known.code.name}: {_one_line(known.message)}"


def report(error: BaseException, origin: Origin | None = None) -> list[str]:
    """Several lines, for people; the first is the error itself."""
    known = _known(error)
    place, excerpt = "", []
    if known.position is not None:
        position = known.position
        if origin is not None:
            position = position_in_script(position, origin)
            excerpt = _excerpt(origin, position)
            place = f"{origin.name}, {position}: " if origin.name else f"{position}: "
        else:
            place = f"{position}: "
    elif origin is not None and origin.name:
        place = f"{origin.name}, line {origin.text.count(chr(10), 0, origin.offset) + 1}: "
    first, *others = known.message.splitlines() or [""]
    lines = [f"{known.kind.value} {known.code.name}: {place}{escape_unprintable(first)}"]
    lines += [f"  {escape_unprintable(other)}" for other in others]
    lines += excerpt
    if known.hint:
        lines.append(f"Hint: {_one_line(known.hint)}")
    if known.query_id and (known.may_be_denial or known.kind in (ErrorKind.INTERNAL, ErrorKind.EXTERNAL)):
        lines.append(f"Query: {known.query_id}")
    return lines


def _known(error: BaseException) -> SqeError:
    if isinstance(error, SqeError):
        return error
    return SqeError(f"unexpected {type(error).__name__}: {error}", hint="this is a fault of SQE; please report it")


def _holds_secret(origin: Origin, lines: list[str], position: Position) -> bool:
    """Whether the line is of a statement with a secret, or holds one: what is printed may end in somebody's log."""
    from sqe_core.sql.text.redact import holds_secret

    begin = sum(len(line) + 1 for line in lines[: position.line - 1])
    end = begin + len(lines[position.line - 1])
    return holds_secret(origin.text[min(origin.offset, begin) : end]) or any(
        holds_secret(part.lstrip()) for part in origin.text[begin:end].split(";")
    )


def _one_line(text: str) -> str:
    return escape_unprintable(" ".join(text.split()))


def _excerpt(origin: Origin, position: Position) -> list[str]:
    lines = origin.text.split("\n")
    if not 1 <= position.line <= len(lines) or _holds_secret(origin, lines, position):
        return []
    line = lines[position.line - 1].rstrip("\r")
    column = min(max(position.column, 1), len(line) + 1) - 1
    # Of a very long line only the part around the place is shown. Tabs become spaces, so that the caret stands right.
    start = max(0, column - _LONGEST_LINE // 2)
    shown = line[start : start + _LONGEST_LINE]
    before = escape_unprintable(line[start:column].replace("\t", " "))
    number = str(position.line)
    return [
        f"  {number} | {escape_unprintable(shown.replace(chr(9), ' '))}",
        f"  {' ' * len(number)} | {' ' * display_width(before)}^",
    ]
