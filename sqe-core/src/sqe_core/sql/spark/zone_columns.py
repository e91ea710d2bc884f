"""What columns stand for: the expressions of a subquery's or a WITH's select list, whose zones are theirs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

from sqlglot import exp

from sqe_core.sql.grammar.nodes import Call

_SETS = (exp.Union, exp.Except, exp.Intersect)
_MOST_SIDES = 100  # of a UNION, and rows of VALUES
_MOST_QUERIES = 16  # from query to query: a longer way is not followed

Z = TypeVar("Z")


class Columns(Generic[Z]):
    """Finds what is known of the columns of one statement.

    Args:
        known: tells it of an expression.
        stored: what it is of a table's column.
    """

    def __init__(self, known: Callable[[Any], Z | None], stored: Z) -> None:
        self._known = known
        self._stored = stored
        self._names: dict[int, tuple[Any, dict[str, int]]] = {}
        self._starred: dict[tuple[int, str], tuple[Z | None, bool]] = {}
        self._queries = 0  # a recursive query is made of itself

    def of(self, column: exp.Column) -> Z | None:
        """Return what is known of a column."""
        if column.args.get("db") is not None:
            return self._stored
        if self._queries >= _MOST_QUERIES:
            return None
        self._queries += 1
        found = self._found(column, column.name.lower(), column.table.lower())
        self._queries -= 1
        return found

    def _found(self, column: exp.Column, name: str, table: str) -> Z | None:
        node: Any = column
        while (above := node.parent) is not None:
            ordering = isinstance(node, exp.Order) and not table
            if ordering and isinstance(above, exp.Select | exp.SetOperation):
                at = self._names_of(above).get(name)
                if at is not None:
                    return self.output(above, at)
            if isinstance(above, exp.Lambda) and any(each.name.lower() == name for each in above.expressions):
                return None
            if isinstance(above, exp.Select):
                found, here = self._among(list(_sources(above)), name, table)
                if here:
                    return found
            elif isinstance(above, exp.Merge | exp.Update | exp.Delete):
                return None
            node = above
        # An expression by itself, as those of policies, is about the columns of a table.
        return None if isinstance(node, exp.Select | exp.SetOperation | exp.Subquery) else self._stored

    def _among(self, sources: list[Any], name: str, table: str) -> tuple[Z | None, bool]:
        """Return what is known of a column of these sources, and whether it is one of theirs."""
        if table:
            named = [source for source in sources if _alias(source) == table]
            return self._in(named[0], name) if named else (None, False)
        found = [each for source in sources for each in (self._in(source, name),) if each[1]]
        certain = [each for each in found if each[0] is not self._stored]
        if len(certain) > 1 or any(_merges(source, name) for source in sources):
            return None, True
        return (certain or found or [(None, False)])[0]

    def _in(self, source: Any, name: str) -> tuple[Z | None, bool]:
        query = source
        if isinstance(source, exp.Table):
            if isinstance(source.this, Call):
                return None, True
            query = _definition(source)
            if query is None:
                return self._stored, True
        elif not isinstance(source, exp.Subquery):
            return None, name in _renamed(source)
        aliases = _renamed(source) or _renamed(query)
        if aliases:
            return (self.output(query, aliases.index(name)), True) if name in aliases else (None, False)
        at = self._names_of(query).get(name)
        if at is not None:
            return self.output(query, at), True
        return self._through_star(query, name)

    def _through_star(self, query: Any, name: str) -> tuple[Z | None, bool]:
        query = _query(query)
        stars = [each for each in query.expressions if _is_star(each)] if isinstance(query, exp.Select) else []
        if not stars:
            return None, False
        key = id(query), name
        if key not in self._starred:
            self._starred[key] = None, True  # of what is made of itself
            table = stars[0].table.lower() if isinstance(stars[0], exp.Column) else ""
            if self._queries < _MOST_QUERIES and len(stars) == 1:
                self._queries += 1
                self._starred[key] = self._among(list(_sources(query)), name, table)
                self._queries -= 1
        return self._starred[key]

    def output(self, query: Any, at: int) -> Z | None:
        """Return what is known of a column of a query, by its place; all sides of a UNION and all rows agree on it."""
        query = _query(query)
        sides = list(_sides(query))
        if len(sides) > _MOST_SIDES:
            return None
        if len(sides) > 1:
            found = {self.output(side, at) for side in sides}
            return found.pop() if len(found) == 1 else None
        if isinstance(query, exp.Values):
            rows = query.expressions
            cells = {self._known(_cell(row, at)) for row in rows} if len(rows) <= _MOST_SIDES else {None}
            return cells.pop() if len(cells) == 1 else None
        if not isinstance(query, exp.Select) or not self._placed(query, at):
            return None
        value = query.expressions[at]
        return self._known(value.this if isinstance(value, exp.Alias) else value)

    @staticmethod
    def _placed(query: exp.Select, at: int) -> bool:
        """Whether the expression at this place of a select list makes the column at this place."""
        return at < len(query.expressions) and not any(map(_is_star, query.expressions[: at + 1]))

    def _names_of(self, query: Any) -> dict[str, int]:
        """Return the names of a query's columns with their places, but for those behind a star."""
        query = _query(query)
        while isinstance(query, _SETS):
            query = _query(query.this)
        known = self._names.get(id(query))
        if known is None:
            names: dict[str, int] = {}
            for at, each in enumerate(query.expressions if isinstance(query, exp.Select) else ()):
                if _is_star(each):
                    break
                names.setdefault(each.alias_or_name.lower(), at)
            known = self._names[id(query)] = query, names
        return known[1]


def _is_star(node: Any) -> bool:
    return isinstance(node, exp.Star) or (isinstance(node, exp.Column) and isinstance(node.this, exp.Star))


def _query(node: Any) -> Any:
    while isinstance(node, exp.Subquery | exp.CTE):
        node = node.this
    return node


def _sides(query: Any) -> Iterator[Any]:
    while isinstance(query, _SETS):
        yield query.expression
        query = _query(query.this)
    yield query


def _cell(row: Any, at: int) -> Any:
    if not isinstance(row, exp.Tuple):
        return row
    return row.expressions[at] if at < len(row.expressions) else None


def _sources(select: exp.Select) -> Iterator[Any]:
    """The tables and subqueries behind FROM, also those in brackets."""
    source = select.args.get("from_")
    waiting = [] if source is None else [source.this]
    waiting += [join.this for join in select.args.get("joins") or ()]
    while waiting:
        node = waiting.pop()
        waiting += [join.this for join in node.args.get("joins") or ()]
        if isinstance(node, exp.Paren):
            waiting.append(node.this)
        else:
            yield node


def _merges(source: Any, name: str) -> bool:
    """Whether USING or NATURAL makes one column of two."""
    join = source.parent
    if not isinstance(join, exp.Join):
        return False
    return join.args.get("method") is not None or any(
        each.name.lower() == name for each in join.args.get("using") or ()
    )


def _alias(source: Any) -> str:
    return str(source.alias_or_name).lower()


def _renamed(source: Any) -> list[str]:
    alias = source.args.get("alias")
    return [each.name.lower() for each in alias.args.get("columns") or ()] if isinstance(alias, exp.TableAlias) else []


def _definition(table: exp.Table) -> Any:
    """Return what a name stands for in WITH, with the names that this gives to its columns; None for a table."""
    if table.args.get("db") is not None:
        return None
    name, node, above = table.name.lower(), table, table.parent
    while above is not None:
        if isinstance(above, exp.With):
            before = above.expressions if above.args.get("recursive") else _before(above.expressions, node)
        else:
            with_ = above.args.get("with_")
            before = with_.expressions if with_ is not None and with_ is not node else []
        for each in reversed(before):
            if each.alias.lower() == name:
                return each
        node, above = above, above.parent  # type: ignore[assignment]
    return None


def _before(definitions: list[Any], own: Any) -> list[Any]:
    return definitions[: next(at for at, each in enumerate(definitions) if each is own)]
