"""A query of one table that is simple enough to be answered where the rows are made, without the engine.

    SELECT [DISTINCT] column | upper(column) | lower(column) | literal [AS name], … | * | count(*)
    FROM table [WHERE conditions over columns and values] [ORDER BY …] [OFFSET n] [LIMIT n]

What drivers ask about tables, schemas and columns is of this form. What is not, is no simple query.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Literal

from sqe_core.sql.statement import Name
from sqe_core.sql.text.like import escaped_pattern, like_filter

Row = Sequence[Any]
Test = Callable[[Row], bool | None]
"""Whether a condition holds for a row; None where that is unknown, as SQL has it."""


class NotSimpleError(Exception):
    """The columns are not of the types that the query compares: the engine says what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Term:
    """A column, or a value, or the parameter of that name, with upper or lower around it."""

    column: str | None = None
    value: Any = None
    parameter: str | None = None
    case: Literal["upper", "lower"] | None = None


@dataclass(frozen=True, slots=True)
class Compared:
    left: Term
    operator: str
    right: Term


@dataclass(frozen=True, slots=True)
class Listed:
    term: Term
    values: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class Alike:
    """LIKE; `escape` None is none."""

    term: Term
    pattern: Term
    escape: str | None


@dataclass(frozen=True, slots=True)
class Missing:
    term: Term


@dataclass(frozen=True, slots=True)
class Joined:
    """AND, or OR where one is `enough`."""

    parts: tuple[Condition, ...]
    enough: bool


@dataclass(frozen=True, slots=True)
class Negated:
    part: Condition


Condition = Compared | Listed | Alike | Missing | Joined | Negated


@dataclass(frozen=True, slots=True)
class Output:
    """A column of the answer; a term None is all of the table's."""

    name: str
    term: Term | None


@dataclass(frozen=True, slots=True)
class Ordering:
    """By an output's place where `output` is one, else by a term."""

    term: Term | None
    output: int | None
    descending: bool
    nulls_first: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SimpleQuery:
    """The whole of it; `counts` is SELECT count(*), whose only output has its name."""

    table: Name
    outputs: tuple[Output, ...]
    condition: Condition | None = None
    ordering: tuple[Ordering, ...] = ()
    limit: int | None = None
    offset: int = 0
    distinct: bool = False
    counts: bool = False


def conjuncts(condition: Condition | None) -> Iterator[Condition]:
    """Return the parts that all have to hold."""
    if isinstance(condition, Joined) and not condition.enough:
        for part in condition.parts:
            yield from conjuncts(part)
    elif condition is not None:
        yield condition


def columns_of(condition: Condition) -> frozenset[str]:
    """Return the columns that a condition looks at."""
    match condition:
        case Compared(left, _, right):
            return _columns(left, right)
        case Listed(term, values):
            return _columns(term, *values)
        case Alike(term, pattern, _):
            return _columns(term, pattern)
        case Missing(term):
            return _columns(term)
        case Joined(parts, _):
            return frozenset[str]().union(*map(columns_of, parts))
        case Negated(part):
            return columns_of(part)


def _columns(*terms: Term) -> frozenset[str]:
    return frozenset(term.column for term in terms if term.column is not None)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a query asks of single columns of a table: a row that does not fit there is not made."""

    tests: Mapping[str, Sequence[Test]]
    values: Mapping[str, frozenset[Any]]

    def takes(self, column: str, value: Any) -> bool:
        return all(test((value,)) for test in self.tests.get(column, ()))

    def only(self, column: str) -> frozenset[Any] | None:
        """Return the values that a column may have, where the query lists them."""
        return self.values.get(column)


EVERYTHING = Wanted({}, {})


@dataclass(frozen=True, slots=True)
class WantedByAny(Wanted):
    """What one of several parts of a statement asks for."""

    parts: tuple[Wanted, ...] = ()

    def takes(self, column: str, value: Any) -> bool:
        return any(part.takes(column, value) for part in self.parts)

    def only(self, column: str) -> frozenset[Any] | None:
        found = [part.only(column) for part in self.parts]
        return None if None in found else frozenset[Any]().union(*(each for each in found if each is not None))


def wanted_of_table(queries: Sequence[SimpleQuery], types: Mapping[str, type], parameters: Mapping[str, Any]) -> Wanted:
    """Say what a statement asks of a table by all the queries that name it; what cannot be said is everything."""
    parts: list[Wanted] = []
    for query in queries:
        kept = []
        for part in conjuncts(query.condition):
            with suppress(NotSimpleError):
                columns = sorted(columns_of(part))
                Conditions(columns, types, parameters).test(part)
                kept.append(part)
        parts.append(wanted(replace(query, condition=Joined(tuple(kept), enough=False)), types, parameters))
    return WantedByAny({}, {}, tuple(parts)) if parts else EVERYTHING


def wanted(query: SimpleQuery, types: Mapping[str, type], parameters: Mapping[str, Any]) -> Wanted:
    """Say what a query asks of single columns.

    Raises:
        NotSimpleError: it compares what cannot be compared.
    """
    tests: dict[str, list[Test]] = {}
    values: dict[str, frozenset[Any]] = {}
    for part in conjuncts(query.condition):
        columns = columns_of(part)
        if len(columns) != 1:
            continue
        (column,) = columns
        tests.setdefault(column, []).append(Conditions((column,), types, parameters).test(part))
        given = _given(part)
        if given is not None:
            found = frozenset(_value(term, parameters) for term in given)
            values[column] = values.get(column, found) & found
    return Wanted(tests, values)


def _given(part: Condition) -> Sequence[Term] | None:
    """The values of which a plain column has to have one."""
    match part:
        case Compared(Term(column=str(), case=None), "=", Term(column=None) as right):
            return (right,)
        case Compared(Term(column=None) as left, "=", Term(column=str(), case=None)):
            return (left,)
        case Listed(Term(column=str(), case=None), values) if all(term.column is None for term in values):
            return values
    return None


def _value(term: Term, parameters: Mapping[str, Any]) -> Any:
    value = term.value if term.parameter is None else parameters[term.parameter]
    return _cased(value, term.case)


def _cased(value: Any, case: str | None) -> Any:
    if case is None or value is None:
        return value
    return value.upper() if case == "upper" else value.lower()


_COMPARABLE = frozenset((str, int, bool))
_COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": lambda left, right: bool(left == right),
    "<>": lambda left, right: bool(left != right),
    "<": lambda left, right: bool(left < right),
    "<=": lambda left, right: bool(left <= right),
    ">": lambda left, right: bool(left > right),
    ">=": lambda left, right: bool(left >= right),
}


@dataclass(frozen=True, slots=True)
class Conditions:
    """Makes conditions into tests of rows with these columns."""

    columns: Sequence[str]
    types: Mapping[str, type]
    parameters: Mapping[str, Any]

    def term(self, term: Term) -> Callable[[Row], Any]:
        if term.column is not None:
            at, case = self.columns.index(term.column), term.case
            return (lambda row: row[at]) if case is None else (lambda row: _cased(row[at], case))
        value = _value(term, self.parameters)
        return lambda row: value

    def type_of(self, term: Term) -> type | None:
        """Return the type of a term; None is that of NULL."""
        if term.column is not None:
            found = self.types.get(term.column)
            if found is None:
                raise NotSimpleError(term.column)
        else:
            value = term.value if term.parameter is None else self.parameters[term.parameter]
            found = None if value is None else type(value)
        if term.case is not None and found not in (str, None):
            raise NotSimpleError(term.case)
        return found

    def _same(self, *terms: Term) -> None:
        kinds = {kind for kind in map(self.type_of, terms) if kind is not None}
        if len(kinds) > 1 or kinds - _COMPARABLE:
            raise NotSimpleError

    def test(self, condition: Condition) -> Test:
        """Return the test of a condition.

        Raises:
            NotSimpleError: it compares what cannot be compared here.
        """
        match condition:
            case Compared(left, operator, right):
                self._same(left, right)
                return _compared(_COMPARISONS[operator], self.term(left), self.term(right))
            case Listed(term, values):
                self._same(term, *values)
                tests = [self.test(Compared(term, "=", value)) for value in values]
                return _joined(tests, enough=True)
            case Alike(term, pattern, escape):
                if {self.type_of(term), self.type_of(pattern)} - {str, None} or pattern.column is not None:
                    raise NotSimpleError
                return _alike(self.term(term), _value(pattern, self.parameters), escape)
            case Missing(term):
                self.type_of(term)
                found = self.term(term)
                return lambda row: found(row) is None
            case Joined(parts, enough):
                return _joined([self.test(part) for part in parts], enough=enough)
            case Negated(part):
                inner = self.test(part)
                return lambda row: None if (held := inner(row)) is None else not held


def _compared(comparison: Callable[[Any, Any], bool], left: Callable[[Row], Any], right: Callable[[Row], Any]) -> Test:
    def test(row: Row) -> bool | None:
        first, second = left(row), right(row)
        return None if first is None or second is None else comparison(first, second)

    return test


def _joined(tests: Sequence[Test], *, enough: bool) -> Test:
    def test(row: Row) -> bool | None:
        unknown = False
        for each in tests:
            held = each(row)
            if held is enough:
                return enough
            unknown = unknown or held is None
        return None if unknown else not enough

    return test


def _alike(term: Callable[[Row], Any], pattern: str | None, escape: str | None) -> Test:
    if pattern is None:
        return lambda row: None
    matches = like_filter(pattern.replace("\\", "\\\\") if escape is None else escaped_pattern(pattern, escape))

    def test(row: Row) -> bool | None:
        value = term(row)
        return None if value is None else matches(value)

    return test


def rows_of(
    query: SimpleQuery, columns: Sequence[str], types: Mapping[str, type], parameters: Mapping[str, Any]
) -> Callable[[Iterable[Row]], Iterator[tuple[Any, ...]]]:
    """Return what makes the answer of the rows of the table; it holds them only where they have to be sorted.

    Raises:
        NotSimpleError: the query names other columns than these, or compares what cannot be compared.
    """
    conditions = Conditions(columns, types, parameters)
    test = conditions.test(query.condition) if query.condition is not None else None
    shown = [each for output in query.outputs for each in _terms(output, columns)]
    for term in shown:
        conditions.type_of(term)
    outputs = [conditions.term(term) for term in shown]
    keys = [_key(query, ordering, shown, conditions) for ordering in query.ordering]

    def answer(rows: Iterable[Row]) -> Iterator[tuple[Any, ...]]:
        found: Iterable[Row] = rows if test is None else (row for row in rows if test(row))
        if query.counts:
            yield (sum(1 for _ in found),)
            return
        if keys:
            found = _sorted(list(found), keys)
        made: Iterator[tuple[Any, ...]] = (tuple(output(row) for output in outputs) for row in found)
        if query.distinct:
            made = iter(dict.fromkeys(made))
        yield from _cut(made, query.offset, query.limit)

    return answer


def _terms(output: Output, columns: Sequence[str]) -> Sequence[Term]:
    return [Term(column=column) for column in columns] if output.term is None else [output.term]


def _key(
    query: SimpleQuery, ordering: Ordering, shown: Sequence[Term], conditions: Conditions
) -> tuple[Callable[[Row], Any], bool, bool]:
    term = ordering.term
    if ordering.output is not None:
        if not 0 < ordering.output <= len(shown):
            raise NotSimpleError
        term = shown[ordering.output - 1]
    elif query.distinct and term not in shown:
        raise NotSimpleError
    if term is None or conditions.type_of(term) not in _COMPARABLE:
        raise NotSimpleError
    return conditions.term(term), ordering.descending, ordering.nulls_first


def _sorted(rows: list[Row], keys: Sequence[tuple[Callable[[Row], Any], bool, bool]]) -> list[Row]:
    for value, descending, nulls_first in reversed(keys):
        missing = [row for row in rows if value(row) is None]
        present = [row for row in rows if value(row) is not None]
        present.sort(key=value, reverse=descending)
        rows = missing + present if nulls_first else present + missing
    return rows


def _cut(rows: Iterator[tuple[Any, ...]], offset: int, limit: int | None) -> Iterator[tuple[Any, ...]]:
    for at, row in enumerate(rows):
        if limit is not None and at >= offset + limit:
            return
        if at >= offset:
            yield row
