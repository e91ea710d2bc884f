r"""Commands of the command line itself: `.tables` and its like, and psql's spellings with a backslash."""

from __future__ import annotations

import difflib
import re
import time
from collections.abc import Callable
from dataclasses import dataclass

from sqe_core.cli.arguments import FORMATS
from sqe_core.cli.shell.error_report import Origin
from sqe_core.cli.shell.execution import Executor, Outcome
from sqe_core.cli.shell.names import BadNameError, parse_name, quote_name, quote_text
from sqe_core.spi.errors import ErrorCode, SqeError, UserError


class Leave(Exception):
    """The shell, or the script, ends here."""


def command_error(message: str, *, hint: str | None = None) -> UserError:
    """A command that does not exist, or whose argument makes no sense."""
    return UserError(message, code=ErrorCode.INVALID_ARGUMENTS, hint=hint)


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What a command may use. `read` and `edit` exist only in the interactive shell."""

    executor: Executor
    connection: Callable[[], str] = lambda: "embedded"
    read: Callable[[str], Outcome] | None = None
    edit: Callable[[], Outcome] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    names: tuple[str, ...]
    argument: str
    summary: str
    run: Callable[[Context, str], Outcome]


def is_command(text: str) -> bool:
    """Whether a text, without leading blanks and comments, is a command and no SQL."""
    return text.startswith((".", "\\")) and not re.match(r"\.\d", text)


# Commands of other shells, and how the same is done here.
_ELSEWHERE = {
    ".mode": f"the output format is chosen with .format: {', '.join(FORMATS)}",
    ".headers": ".format csv and tsv always write a header",
    ".open": "another warehouse is opened with sqe-cli --warehouse DIR",
    ".import": "write CREATE TABLE, then INSERT",
    "\\c": "write USE schema, or USE catalog.schema",
    "\\connect": "write USE schema, or USE catalog.schema",
    "\\du": "write SHOW ROLES",
    "\\dp": "write SHOW GRANTS ON t",
    "\\z": "write SHOW GRANTS ON t",
    ".once": "write .output FILE, and .output afterwards",
    "\\copy": "write .format csv and .output FILE, then the query",
    "\\set": "there are no variables; SET name = value changes a setting of the session, SHOW SESSION lists them",
    "\\unset": "settings of the session are changed with RESET name",
    "\\pset": "write .format NAME for the format, .nullvalue TEXT for NULL, .timer on|off",
    "\\a": "the output format is chosen with .format",
    "\\g": "end the statement with a semicolon; .output FILE sends its result to a file",
    "\\gx": "write .format vertical, then the statement",
    "\\copyright": "SQE is licensed under the Apache License 2.0",
}


def run_command(line: str, context: Context, origin: Origin) -> Outcome:
    """Run one line such as `.schema orders`; raises Leave, or prints what is wrong."""
    word, _, argument = line.strip().rstrip(";").strip().partition(" ")
    try:
        command = _BY_NAME.get(word) or _BY_NAME.get(word.lower())
        if command is None:
            close = difflib.get_close_matches(word.lower(), _BY_NAME, n=1)
            hint = f"did you mean {close[0]}?" if close else ".help lists the commands"
            raise command_error(f"unknown command {word}", hint=_ELSEWHERE.get(word.lower(), hint))
        argument = argument.strip()
        if argument and not command.argument:
            raise command_error(f"{word} takes no argument")
        return command.run(context, argument)
    except BadNameError as error:
        context.executor.fail(command_error(str(error)), origin)
    except SqeError as error:
        context.executor.fail(error, origin)
    return Outcome.FAILED


def set_format(context: Context, name: str) -> Outcome:
    """Choose the output format, as `.format x`, `\\format x` and `SET FORMAT x` do."""
    display = context.executor.display
    if not name:
        context.executor.console.tell(f"Format: {display.format}")
        return Outcome.OK
    if name.lower() not in FORMATS:
        raise command_error(f"unknown format {name}", hint=f"formats are {', '.join(FORMATS)}")
    display.format = name.lower()
    return Outcome.OK


def _sql(context: Context, *words: str) -> Outcome:
    # The words are keywords of ours and names that were quoted.
    sql = " ".join(words)
    return context.executor.run(sql, Origin(text=sql))


def _listing(what: str, *, most: int = 0) -> Callable[[Context, str], Outcome]:
    """A SHOW statement that takes a pattern, or where to look: a name of so many parts at `most`."""

    def run(context: Context, argument: str) -> Outcome:
        if not argument:
            return _sql(context, "SHOW", what)
        if not most or "%" in argument or "*" in argument:
            return _sql(context, "SHOW", what, "LIKE", quote_text(argument.strip("'").replace("*", "%")))
        return _sql(context, "SHOW", what, "FROM", quote_name(parse_name(argument, most=most)))

    return run


def _describe(context: Context, argument: str) -> Outcome:
    if not argument:
        raise command_error("which table?", hint="write .schema table, .schema schema.table")
    return _sql(context, "DESCRIBE", quote_name(parse_name(argument)))


def _tables_or_describe(context: Context, argument: str) -> Outcome:
    return _describe(context, argument) if argument else _sql(context, "SHOW TABLES")


def _describe_more(context: Context, argument: str) -> Outcome:
    if not argument:
        return _sql(context, "SHOW TABLES")
    name = quote_name(parse_name(argument))
    outcome = _sql(context, "DESCRIBE", name)
    if outcome is not Outcome.OK:
        return outcome
    written = context.executor.collect(f"SHOW CREATE TABLE {name}", told=False)
    written = written or context.executor.collect(f"SHOW CREATE VIEW {name}")
    if written is None:
        return Outcome.FAILED
    context.executor.show(written)
    return Outcome.OK


def _output(context: Context, argument: str) -> Outcome:
    if argument.startswith("|"):
        raise command_error(
            "results cannot be sent to a command", hint="write them to a file, or sqe-cli -e … | command"
        )
    context.executor.redirect(argument.strip("'\"") or None)
    return Outcome.OK


def _null_value(context: Context, argument: str) -> Outcome:
    quoted = len(argument) >= 2 and argument[0] == argument[-1] and argument[0] in "'\""
    context.executor.display.null = (argument[1:-1] if quoted else argument) if argument else None
    return Outcome.OK


def _watch(context: Context, argument: str) -> Outcome:
    """Run the last statement again and again, as psql does."""
    secs, times = 2.0, None
    for word in argument.split():
        name, _, value = word.rpartition("=")
        try:
            if name == "c":
                times = int(value)
            elif name in ("", "i"):
                secs = float(value)
            else:
                raise ValueError(name)
        except ValueError:
            raise command_error(
                f"{word} is no pause", hint="write \\watch 5, or \\watch i=5 c=3 for three times"
            ) from None
    if not 0.1 <= secs <= 86_400 or (times is not None and times < 1):
        raise command_error("pauses are of 0.1 to 86400 seconds, and it runs once at least")
    executor = context.executor
    if executor.last is None:
        raise command_error("there is no statement yet that could be repeated", hint="run one, and then \\watch")
    sql, origin = executor.last
    paging, executor.paging = executor.paging, False
    try:
        while True:
            executor.console.tell(f"{time.strftime('%Y-%m-%d %H:%M:%S')} (every {secs:g} s)")
            outcome = executor.run(sql, origin)
            times = None if times is None else times - 1
            if outcome is not Outcome.OK or times == 0:
                return outcome
            time.sleep(secs)
    except KeyboardInterrupt:
        return Outcome.INTERRUPTED
    finally:
        executor.paging = paging


def _connection(context: Context, argument: str) -> Outcome:
    catalog, schema = context.executor.backend.current
    context.executor.console.tell(f"Connected to: {context.connection()}\nCatalog {catalog}, schema {schema}")
    return Outcome.OK


def _summarize(context: Context, argument: str) -> Outcome:
    if not argument:
        raise command_error("which table?", hint="write .summarize table")
    from sqe_core.cli.shell.summarize import summarize

    return summarize(context.executor, parse_name(argument))


def _timer(context: Context, argument: str) -> Outcome:
    display = context.executor.display
    if argument.lower() in ("on", "off"):
        display.timer = argument.lower() == "on"
    elif argument:
        raise command_error(f"{argument} is neither on nor off")
    else:
        context.executor.console.tell(f"Timer: {'on' if display.timer else 'off'}")
    return Outcome.OK


def _timing(context: Context, argument: str) -> Outcome:
    if not argument:
        argument = "off" if context.executor.display.timer else "on"
        context.executor.console.tell(f"Timer: {argument}")
    return _timer(context, argument)


def _expanded(context: Context, argument: str) -> Outcome:
    name = "table" if context.executor.display.format == "vertical" else "vertical"
    context.executor.console.tell(f"Format: {name}")
    return set_format(context, name)


def _read(context: Context, argument: str) -> Outcome:
    if context.read is None:
        raise command_error("scripts cannot be read from scripts")
    if not argument:
        raise command_error("which file?", hint="write .read script.sql")
    return context.read(argument.strip("'\""))


def _edit(context: Context, argument: str) -> Outcome:
    if context.edit is None:
        raise command_error("there is no editor in scripts")
    return context.edit()


def _leave(context: Context, argument: str) -> Outcome:
    raise Leave


def _help(context: Context, argument: str) -> Outcome:
    lines = ["Statements end with a semicolon. Commands take one line:"]
    for command in COMMANDS:
        names = " ".join(command.names) + (f" {command.argument}" if command.argument else "")
        lines.append(f"  {names:<44} {command.summary}")
    lines.append("Tab completes names, Ctrl-C cancels a statement or clears the line, Ctrl-D leaves.")
    context.executor.console.tell("\n".join(lines))
    return Outcome.OK


COMMANDS = (
    Command(names=(".help", ".h", ".?", "\\?", "\\h"), argument="", summary="this list", run=_help),
    Command(names=(".exit", ".quit", ".q", "\\q"), argument="", summary="leave; also quit and exit", run=_leave),
    Command(
        names=(".tables", "\\dt"),
        argument="[SCHEMA|%PATTERN%]",
        summary="tables and views",
        run=_listing("TABLES", most=2),
    ),
    Command(names=("\\d",), argument="[TABLE]", summary="tables, or the columns of one", run=_tables_or_describe),
    Command(names=(".schema", ".describe", ".d"), argument="TABLE", summary="columns of a table", run=_describe),
    Command(
        names=("\\d+",), argument="[TABLE]", summary="the columns, and the statement that makes it", run=_describe_more
    ),
    Command(
        names=(".summarize", ".summary"),
        argument="TABLE",
        summary="smallest, largest, distinct and missing values",
        run=_summarize,
    ),
    Command(names=(".catalogs", "\\l"), argument="", summary="catalogs", run=_listing("CATALOGS")),
    Command(names=(".databases",), argument="", summary="what SHOW DATABASES lists", run=_listing("DATABASES")),
    Command(names=("\\dn",), argument="[CATALOG|%PATTERN%]", summary="schemas", run=_listing("SCHEMAS", most=1)),
    Command(names=("\\dv",), argument="[SCHEMA|%PATTERN%]", summary="views", run=_listing("VIEWS", most=2)),
    Command(names=("\\df",), argument="[%PATTERN%]", summary="functions", run=_listing("FUNCTIONS")),
    Command(names=(".read", "\\i"), argument="FILE", summary="run a script (not in scripts)", run=_read),
    Command(names=(".format", "\\format"), argument="[NAME]", summary=", ".join(FORMATS), run=set_format),
    Command(
        names=(".output", "\\o"), argument="[FILE]", summary="results go to a file; alone, here again", run=_output
    ),
    Command(names=(".nullvalue",), argument="[TEXT]", summary="what stands for NULL; alone, as usual", run=_null_value),
    Command(
        names=("\\watch",),
        argument="[SECS] [c=TIMES]",
        summary="run the last statement again and again",
        run=_watch,
    ),
    Command(names=("\\conninfo",), argument="", summary="where the statements run, and as whom", run=_connection),
    Command(names=("\\x",), argument="", summary="table or vertical", run=_expanded),
    Command(names=(".timer",), argument="[on|off]", summary="show how long statements take", run=_timer),
    Command(names=("\\timing",), argument="[on|off]", summary="the same; without an argument it toggles", run=_timing),
    Command(names=("\\e",), argument="", summary="write the last statement anew in $EDITOR", run=_edit),
)

_BY_NAME = {name: command for command in COMMANDS for name in command.names}

COMMAND_NAMES = tuple(sorted(_BY_NAME))
