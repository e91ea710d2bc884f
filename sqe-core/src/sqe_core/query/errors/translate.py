"""What a client reads about a failure in the engine: our text, the user's own words, a place in his own statement.

Nothing of the engine's message passes: it holds plans, hidden columns, policy literals, file and host names (ERR-1). A
message is rebuilt from the condition with a template of templates.toml; what has none is "Query failed" and the
query id, by which the operator finds the rest in the log.
"""

from __future__ import annotations

import logging
import re
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from string import Formatter
from types import MappingProxyType

from sqe_core.catalog.types import display_type
from sqe_core.engine.port import ROW_REFUSED, EngineExecutionError, EngineFailure
from sqe_core.query.errors.conditions import condition, is_converted
from sqe_core.query.errors.scrubber import Scrubber
from sqe_core.query.errors.suggestions import did_you_mean
from sqe_core.query.errors.templates import Template, templates
from sqe_core.query.errors.wording import shown
from sqe_core.query.judge import allowed
from sqe_core.spi.errors import (
    AccessDeniedError,
    ErrorCode,
    ErrorKind,
    InternalError,
    NotSupportedError,
    Position,
    SqeError,
    UserError,
)
from sqe_core.sql.statement import PositionMap, StatementKind
from sqe_core.sql.text.positions import Marks

_log = logging.getLogger(__name__)

_EMPTY: Mapping[str, str] = MappingProxyType({})
_HIDDEN = "…"
_MOST = 100
_MOST_CAUSES = 10
_MOST_OF_CAUSE = 1000
_NOT_THE_USERS = frozenset({ErrorKind.EXTERNAL, ErrorKind.INTERNAL})
ASK_OPERATOR = "ask who runs this server: its log has the cause under the query id"
# In these the engine sees relations in their secured form only, so that what it proposes is visible to the user.
_SEES_SECURED_ONLY = frozenset({StatementKind.QUERY, StatementKind.CREATE_TABLE_AS, StatementKind.DESCRIBE})
_without_internal = Scrubber(()).visible_text
_INTERNAL_PART = re.compile(r"_sqe_[a-z]_[0-9a-f]{8,}|spark_catalog", re.IGNORECASE)
_PREFIX = re.compile(r"__?sqe_", re.IGNORECASE)
_QUOTED_PART = re.compile(r"`((?:[^`]|``)*)`")
_QUOTED_NAME = re.compile(r"`(?:[^`]|``)*`(?:\.`(?:[^`]|``)*`)*")
_COLUMN = re.compile(r"[A-Za-z][A-Za-z0-9_]*(?:\.[A-Za-z][A-Za-z0-9_]*)*")
_QUOTED_TYPE = re.compile(r'"((?:[^"]|"")*)"')
_TYPE = re.compile(r"[A-Za-z_][A-Za-z0-9_ <>(),:`]*")
_NUMBER = re.compile(r"[\d\s.,\[\]()<>=-]+")
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_ ]*")
# Names in text that is not the statement's own are those of a view, which this user may not know (VIEW-4).
_NAMES = re.compile(r"\{\w+:(?:name|names|token)\}")
_TYPED_NUMBER = re.compile(r"(-?\d[\d.]*(?:E-?\d+)?)(?:BD|[LSYDFB])")
_VARIANT = re.compile(r"\bvariant\b")  # JSON that is computed


@dataclass(frozen=True, slots=True, kw_only=True)
class MentionableNames:
    """What a translation may tell about names; everything in it is visible to this user.

    Without `columns` those are suggested that the engine proposes where it sees visible names only; `catalogs` are the
    users' names, by the random ones under which they are mounted.
    """

    columns: Callable[[], Iterable[str]] | None = None
    functions: Callable[[], Iterable[str]] = field(default=lambda: sorted(allowed.functions().callable))
    catalogs: Mapping[str, str] = field(default_factory=lambda: _EMPTY)


def translate(
    failure: EngineFailure,
    *,
    kind: StatementKind,
    positions: PositionMap | None = None,
    query_id: str | None = None,
    names: MentionableNames | None = None,
    echo_values: bool = True,
) -> SqeError:
    """Return the error that a client may read for a failure of the engine: the query id where nothing else may.

    `echo_values` says whether a value that failed may be repeated (ERR-4); never in the strict mode.
    """
    translation = _Translation(failure, kind, names or MentionableNames(), echo_values and not failure.generated)
    position = _locate(failure, kind, positions)
    if failure.condition == "USER_RAISED_EXCEPTION" and failure.parameters.get("errorMessage") == ROW_REFUSED:
        return AccessDeniedError("A policy does not allow a row that the statement writes")
    template, parameters = translation.find_template()
    if template is None:
        return _unlisted(failure, position, query_id)
    if template.locate is not None:
        # Only a column that the user wrote himself is named.
        name = "" if position is not None or failure.generated else _bare(parameters.get(template.locate, ""))
        position = position or (positions.locate(None, f"`{name}`") if positions is not None and name else None)
        parameters = {template.locate: name if position is not None else ""}
    if failure.generated and _NAMES.search(template.text):
        return UserError("A view of the statement is out of date, or needs what you may not see")
    written = positions.written(position) if position is not None and isinstance(positions, Marks) else ""
    error = template.error(
        translation.write(template, parameters),
        code=template.code,
        hint=translation.suggestion(template, parameters)
        or translation.of_conversions(template, written)
        or _of_quotes(template, written),
        position=position,
        condition=condition(failure, template, written),
    )
    if not isinstance(error, UserError):
        _log.warning("Query %s failed with %s", query_id, _causes(failure))
    return _with_hint(error)


def _of_quotes(template: Template, written: str) -> str | None:
    """Whoever comes from another system writes text in double quotes, which are for names here."""
    if template.code is not ErrorCode.COLUMN_NOT_FOUND or not written.startswith('"'):
        return None
    return "text is written in single quotes; double quotes are for names"


def report(error: SqeError, query_id: str) -> SqeError:
    """Log what is behind an error that is not the user's, and tell him whom to ask."""
    if error.kind in _NOT_THE_USERS:
        _log.warning("Query %s failed with %s", query_id, _chain(error))
    return _with_hint(error)


def _with_hint(error: SqeError) -> SqeError:
    if error.kind in _NOT_THE_USERS:
        error.hint = error.hint or ASK_OPERATOR
    return error


def _chain(error: BaseException) -> str:
    """Return what the log may have of the errors behind one: their classes and places, and texts of ours (OBS-2)."""
    found: list[str] = []
    each: BaseException | None = error
    while each is not None and len(found) < _MOST_CAUSES:
        if isinstance(each, EngineExecutionError):
            found.append(_causes(each.failure))
        elif isinstance(each, SqeError):
            found.append(f"{type(each).__name__}: {each.message}")
        else:
            place = traceback.extract_tb(each.__traceback__)[-1:]
            found.append(type(each).__name__ + "".join(f" at {Path(at.filename).name}:{at.lineno}" for at in place))
        each = each.__cause__ or each.__context__
    return ", caused by ".join(found)


def _causes(failure: EngineFailure) -> str:
    told = (shown(cause, _MOST_OF_CAUSE) for cause in failure.causes[:_MOST_CAUSES])
    return ", caused by ".join((failure.condition, *told))


def _locate(failure: EngineFailure, kind: StatementKind, positions: PositionMap | None) -> Position | None:
    # Text of ours or of a view has places too, but none that the user could look at (ERR-3).
    if positions is None or failure.generated:
        return None
    start, fragment = failure.start, failure.fragment
    if kind is StatementKind.INSERT and failure.condition == "COLUMN_ALREADY_EXISTS":
        start, fragment = None, failure.parameters.get("columnName")
    elif start is not None and fragment is not None and fragment.startswith(("INSERT ", "MERGE ")):
        # Of a name in the list of columns the engine knows the clause that it stands in.
        name = failure.parameters.get("objectName", "")
        inside = fragment.find(name, fragment.find(" (" if kind is StatementKind.INSERT else "INSERT (") + 1)
        start, fragment = (start + inside, name) if name and inside > 0 else (start, fragment)
    return positions.locate(start, fragment) if start is not None or fragment else None


def _unlisted(failure: EngineFailure, position: Position | None, query_id: str | None) -> SqeError:
    """ERR-2: only the class of the SQLSTATE tells whose fault it is."""
    _log.error("Query %s failed with SQLSTATE %s: %s", query_id, failure.sql_state, _causes(failure))
    _log.debug("Query %s: %s", query_id, failure.raw)
    text = f"Query failed (query id {query_id})" if query_id else "Query failed"
    state = failure.sql_state or ""
    if state.startswith("0A"):
        return NotSupportedError(text, position=position)
    if state.startswith(("42", "21")):
        return UserError(text, position=position)
    if state.startswith("22"):
        return UserError(text, code=ErrorCode.INVALID_ARGUMENTS, position=position)
    return InternalError(text, code=ErrorCode.EXECUTION_FAILED, hint=ASK_OPERATOR)


@dataclass(frozen=True, slots=True)
class _Translation:
    failure: EngineFailure
    kind: StatementKind
    names: MentionableNames
    echo_values: bool

    def find_template(self) -> tuple[Template | None, Mapping[str, str]]:
        known, condition = templates(), self.failure.condition
        template = known.spark.get(condition) or known.spark.get(condition.partition(".")[0])
        if template is not None:
            return template, self.failure.parameters
        for pattern, candidate in known.texts:
            match = pattern.search(self.failure.raw)
            if match is not None:
                return candidate, {name: text or "" for name, text in match.groupdict().items()}
        return known.java.get(condition), self.failure.parameters

    def write(self, template: Template, parameters: Mapping[str, str]) -> str:
        """Fill in a template; a parameter that the engine did not give is left out."""
        pieces = []
        for literal, name, kind, _ in Formatter().parse(template.text):
            pieces.append(literal)
            if name is not None:
                pieces.append(self._render(parameters.get(name, ""), kind or "token"))
        return " ".join("".join(pieces).split())

    def suggestion(self, template: Template, parameters: Mapping[str, str]) -> str | None:
        """ERR-5: a similar name among the visible ones, or nothing."""
        if template.suggest is None or self.failure.generated:
            return None
        parts = _parts(parameters.get(template.suggest, ""))
        if not parts:
            return None
        of_functions = template.code is ErrorCode.FUNCTION_NOT_FOUND
        candidates = self.names.functions() if of_functions else self._columns(parameters)
        return did_you_mean(parts[-1], candidates)

    def of_conversions(self, template: Template, written: str) -> str | None:
        """Whoever wrote no CAST is not helped by the advice on one."""
        if not is_converted(self.failure, written):
            return template.hint
        type_ = self._render(self.failure.parameters.get("targetType", ""), "type")
        return f"varchar is read as {type_} here; TRY_CAST(… AS {type_}) gives NULL for what cannot be"

    def _columns(self, parameters: Mapping[str, str]) -> Iterable[str]:
        proposed: tuple[str, ...] = ()
        if self.kind in _SEES_SECURED_ONLY:
            text = parameters.get("proposal", parameters.get("suggestion", ""))
            proposed = tuple(_parts(match.group())[-1] for match in _QUOTED_NAME.finditer(text))
        if self.names.columns is None:
            return proposed
        return dict.fromkeys((*proposed, *self.names.columns()))

    def _render(self, value: str, kind: str) -> str:
        match kind:
            case "name":
                return self._name(value)
            case "column":
                return f"Column {self._name(value)}" if value else "A column"
            case "names":
                found = [self._name(match.group()) for match in _QUOTED_NAME.finditer(value)]
                return " or ".join(dict.fromkeys(found)) or self._name(value)
            case "count":
                return str(sum(1 for _ in _QUOTED_NAME.finditer(value)))
            case "type":
                return " or ".join(_types(value)) or (_HIDDEN if value else "")
            case "number":
                return _numbers(value) if _NUMBER.fullmatch(value) else _HIDDEN
            case "word":
                return shown(value) if _WORD.fullmatch(value) else _HIDDEN
            case "value":
                return _value(value) if self.echo_values else _HIDDEN
        return shown(_without_internal(value), _MOST)

    def _name(self, value: str) -> str:
        parts = [self.names.catalogs.get(part, part) for part in _parts(value)]
        kept = [_PREFIX.sub("", part, count=1) for part in parts if not _INTERNAL_PART.fullmatch(part)]
        return shown(".".join(kept)) if kept else _HIDDEN


def _parts(value: str) -> list[str]:
    """Return the parts of a name that the engine wrote in backticks."""
    if _QUOTED_NAME.fullmatch(value):
        return [part.replace("``", "`") for part in _QUOTED_PART.findall(value)]
    bare = value.replace("`", "").strip('"')
    return [bare] if bare else []


def _bare(value: str) -> str:
    """Return the name when an expression is a column and nothing else."""
    text = value.strip('"')
    return text.rpartition(".")[2] if _COLUMN.fullmatch(text) else ""


def _types(value: str) -> Iterator[str]:
    for text in _QUOTED_TYPE.findall(value) or [value]:
        if _TYPE.fullmatch(text):
            name = display_type(text.lower().replace(": ", ":").replace(", ", ","))
            yield shown(_VARIANT.sub("json", name), _MOST)


def _numbers(value: str) -> str:
    """Write `[2, 3]`, the engine's list of possible counts, as words."""
    if re.fullmatch(r"\[\d+(?:, \d+)+\]", value):
        return " or ".join(value[1:-1].split(", "))
    return shown(value.strip(), _MOST)


def _value(value: str) -> str:
    typed = _TYPED_NUMBER.fullmatch(value)
    return shown(typed.group(1) if typed else _without_internal(value), _MOST)
