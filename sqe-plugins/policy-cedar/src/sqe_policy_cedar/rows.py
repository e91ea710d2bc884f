"""What Cedar leaves of the read_row policies when the row is unknown becomes SQL (POL-14).

Cedar evaluates all that does not depend on the row and returns the rest, the residuals. Cedar has two answers and
errors where SQL has three: for an expression we write when it *holds* and when it *fails*, both without NOT. Where a
column is NULL its comparisons do neither, exactly as Cedar errs on an attribute that is missing. So

    a row is read  =  some permit holds  AND  every forbid fails

and a forbid that errs hides the row. The translation is total: what is not in the tables below raises, and denies.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sqe_core.spi import Column, SqlExpression
from sqe_policy_cedar.names import ROW, EntityUid
from sqe_policy_cedar.policies import Json, Policy

Condition = bool | str
"""SQL, or what is known already."""

Kind = Literal["text", "integer", "boolean"]

MAX_STEPS = 5000
MAX_DEPTH = 100
MAX_CHARACTERS = 32768

_INTEGERS = frozenset({"tinyint", "smallint", "int", "integer", "bigint", "byte", "short", "long"})
_TEXTS = ("string", "varchar", "char")
_LONGS = range(-(2**63) + 1, 2**63)

# The operator, and what holds when it fails.
_COMPARISONS = {
    "==": ("=", "<>"),
    "!=": ("<>", "="),
    "<": ("<", ">="),
    "<=": ("<=", ">"),
    ">": (">", "<="),
    ">=": (">=", "<"),
}
_ORDERS = frozenset({"<", "<=", ">", ">="})
_TURNED = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


class UntranslatableError(Exception):
    """A condition that SQL cannot be made of. The text names no value."""


@dataclass(frozen=True, slots=True)
class _Operand:
    kind: Kind
    sql: str
    column: Column | None = None


class RowTranslator:
    def __init__(self, columns: Sequence[Column], ancestors: Collection[EntityUid]) -> None:
        """Know the table.

        Args:
            columns: its columns.
            ancestors: the table and all that it is in: what a row of it is in, too.
        """
        self._columns = {column.name: column for column in columns}
        self._ancestors = ancestors
        self._steps = 0

    def row_filter(self, residuals: Mapping[str, Json], policies: Mapping[str, Policy]) -> bool | SqlExpression:
        """Return the filter of all policies: an expression, True for all rows, False for none.

        Raises:
            UntranslatableError: a policy cannot be translated.
        """
        if residuals.keys() != policies.keys():
            raise UntranslatableError("Cedar did not answer about every policy")
        permitted: Condition = False
        forbidden_fails: Condition = True
        try:
            for own_id in sorted(residuals):
                policy = policies[own_id]
                body = _body(residuals[own_id])
                if policy.effect == "permit":
                    permitted = _or(permitted, self._permits(body, policy))
                else:
                    forbidden_fails = _and(forbidden_fails, self._spares(body, policy))
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise UntranslatableError("a residual has an unknown form") from error
        condition = _and(permitted, forbidden_fails)
        if isinstance(condition, bool):
            return condition
        if len(condition) > MAX_CHARACTERS:
            raise UntranslatableError("the row filter is too long")
        return SqlExpression(text=condition, reads_tables=True)

    def _permits(self, body: Json, policy: Policy) -> Condition:
        holds = self._judge(body, 0, holds=True)
        return holds if policy.filter is None else _and(holds, f"({policy.filter}\n)")

    def _spares(self, body: Json, policy: Policy) -> Condition:
        """When a forbid leaves a row alone; with `@filter` it forbids only the rows of that filter."""
        fails = self._judge(body, 0, holds=False)
        if policy.filter is None:
            return fails
        return _or(fails, _and(self._judge(body, 0, holds=True), f"(NOT ({policy.filter}\n))"))

    def _judge(self, tree: Json, depth: int, *, holds: bool) -> Condition:
        """Write when an expression holds, or when it fails: each connective is the other one's mirror image."""
        operator, argument = self._step(tree, depth)
        below = depth + 1
        match operator:
            case "!":
                return self._judge(argument["arg"], below, holds=not holds)
            case "&&" | "||":
                left, right = argument["left"], argument["right"]
                first = self._judge(left, below, holds=holds)
                if holds is (operator == "&&"):
                    return False if first is False else _and(first, self._judge(right, below, holds=holds))
                if first is True:
                    return True
                second = self._judge(right, below, holds=holds)
                if not self._is_total(left, below):
                    second = _and(self._judge(left, below, holds=not holds), second)
                return _or(first, second)
            case "if-then-else":
                yes, no = (self._judge(argument["if"], below, holds=each) for each in (True, False))
                then = False if yes is False else _and(yes, self._judge(argument["then"], below, holds=holds))
                otherwise = False if no is False else _and(no, self._judge(argument["else"], below, holds=holds))
                return _or(then, otherwise)
        return self._atom(operator, argument, holds=holds)

    def _step(self, tree: Json, depth: int) -> tuple[str, Json]:
        self._steps += 1
        if self._steps > MAX_STEPS or depth > MAX_DEPTH:
            raise UntranslatableError("the conditions on rows are too large")
        return _node(tree)

    def _is_total(self, tree: Json, depth: int) -> bool:
        """Whether an expression never errs, so that it fails wherever it does not hold."""
        operator, argument = self._step(tree, depth)
        match operator:
            case "Value" | "has" | "is" | "in":
                return True
            case "!":
                return self._is_total(argument["arg"], depth + 1)
            case "&&" | "||":
                return all(self._is_total(argument[side], depth + 1) for side in ("left", "right"))
            case ".":
                return self._never_null(tree)
            case "==" | "!=" | "<" | "<=" | ">" | ">=":
                return all(_is_value(argument[side]) or self._never_null(argument[side]) for side in ("left", "right"))
        return False

    def _never_null(self, tree: Json) -> bool:
        operator, argument = _node(tree)
        column = self._columns.get(argument["attr"]) if operator == "." and _is_row(argument["left"]) else None
        return column is not None and not column.nullable

    def _atom(self, operator: str, argument: Json, *, holds: bool) -> Condition:
        match operator:
            case "Value" if isinstance(argument, bool):
                return argument is holds
            case "has" if _is_row(argument["left"]):
                column = self._columns.get(argument["attr"])
                if column is None:
                    return not holds
                return f"({_name(column)} IS {'NOT NULL' if holds else 'NULL'})"
            case "." if self._kind(self._column(argument)) == "boolean":
                return f"({_name(self._column(argument))} = {'TRUE' if holds else 'FALSE'})"
            case "is" if _is_row(argument["left"]):
                inside = "in" not in argument or self._is_in(argument["in"])
                return (argument["entity_type"] == ROW and inside) is holds
            case "in" if _is_row(argument["left"]):
                return self._is_in(argument["right"]) is holds
            case "like":
                return self._like(argument, holds=holds)
            case "contains":
                return self._contains(argument, holds=holds)
            case "==" | "!=" if _is_row(argument["left"]) or _is_row(argument["right"]):
                other = argument["right" if _is_row(argument["left"]) else "left"]
                (_,) = _entities(other)  # no row is one of the entities that have names
                return (operator == "==") is not holds
            case "==" | "!=" | "<" | "<=" | ">" | ">=":
                return self._comparison(operator, argument, holds=holds)
        raise UntranslatableError(f"the operator {operator!r} on a row has no SQL")

    def _is_in(self, tree: Json) -> bool:
        return any(uid in self._ancestors for uid in _entities(tree))

    def _comparison(self, operator: str, argument: Json, *, holds: bool) -> Condition:
        left, right = self._operand(argument["left"]), self._operand(argument["right"])
        if left.column is None:
            left, right, operator = right, left, _TURNED[operator]
        if left.column is None or left.kind != right.kind or (operator in _ORDERS and left.kind != "integer"):
            raise UntranslatableError(f"the operands of {operator!r} do not fit the table's columns")
        return f"({left.sql} {_COMPARISONS[operator][0 if holds else 1]} {right.sql})"

    def _like(self, argument: Json, *, holds: bool) -> Condition:
        operand = self._operand(argument["left"])
        if operand.column is None or operand.kind != "text":
            raise UntranslatableError("'like' is for columns of text")
        pattern = "".join("%" if each == "Wildcard" else _escaped(each["Literal"]) for each in argument["pattern"])
        return f"({operand.sql} {'' if holds else 'NOT '}LIKE {_text(pattern)} ESCAPE '!')"

    def _contains(self, argument: Json, *, holds: bool) -> Condition:
        operand = self._operand(argument["right"])
        members = [self._value(each) for each in _members(argument["left"])]
        if operand.column is None or any(member.kind != operand.kind for member in members):
            raise UntranslatableError("the members of a set do not fit the table's column")
        if not members:
            return False if holds else f"({operand.sql} IS NOT NULL)"
        return f"({operand.sql} {'' if holds else 'NOT '}IN ({', '.join(member.sql for member in members)}))"

    def _operand(self, tree: Json) -> _Operand:
        operator, argument = _node(tree)
        if operator == "Value":
            return self._value(argument)
        if operator == ".":
            column = self._column(argument)
            return _Operand(self._kind(column), _name(column), column)
        raise UntranslatableError(f"{operator!r} cannot be compared with a column")

    def _column(self, argument: Json) -> Column:
        """Bind an attribute of the row: what is missing denies (POL-6)."""
        if not _is_row(argument["left"]):
            raise UntranslatableError("an attribute of something unknown")
        column = self._columns.get(argument["attr"])
        if column is None:
            raise UntranslatableError("a policy on rows names a column that the table does not have")
        return column

    @staticmethod
    def _kind(column: Column) -> Kind:
        name = column.type.lower()
        if name in _INTEGERS:
            return "integer"
        if name == "boolean":
            return "boolean"
        if name.partition("(")[0].strip() in _TEXTS[:2]:
            return "text"
        raise UntranslatableError("a policy on rows looks at a column of a type that Cedar does not have")

    @staticmethod
    def _value(value: Any) -> _Operand:
        if isinstance(value, bool):
            return _Operand("boolean", "TRUE" if value else "FALSE")
        if isinstance(value, int) and value in _LONGS:
            return _Operand("integer", str(value))
        if isinstance(value, str):
            return _Operand("text", _text(value))
        raise UntranslatableError("a value that SQL is not written for")


def _node(tree: Json) -> tuple[str, Json]:
    if not isinstance(tree, dict) or len(tree) != 1:
        raise UntranslatableError("a residual has an unknown form")
    return next(iter(tree.items()))


def _body(residual: Json) -> Json:
    if any(residual[scope] != {"op": "All"} for scope in ("principal", "action", "resource")):
        raise UntranslatableError("a residual has a scope")
    body: Json = {"Value": True}
    for condition in residual["conditions"]:
        inner = {"when": condition["body"], "unless": {"!": {"arg": condition["body"]}}}[condition["kind"]]
        body = inner if body == {"Value": True} else {"&&": {"left": body, "right": inner}}
    return body


def _is_row(tree: Json) -> bool:
    return tree in ({"unknown": [{"Value": "resource"}]}, {"Var": "resource"})


def _is_value(tree: Json) -> bool:
    return isinstance(tree, dict) and tree.keys() == {"Value"}


def _members(tree: Json) -> list[Any]:
    operator, argument = _node(tree)
    if operator == "Value" and isinstance(argument, list):
        return argument
    if operator == "Set" and all(map(_is_value, argument)):
        return [each["Value"] for each in argument]
    raise UntranslatableError("a set that is not known")


def _entities(tree: Json) -> Iterator[EntityUid]:
    operator, argument = _node(tree)
    values = [argument] if operator == "Value" and isinstance(argument, dict) else _members(tree)
    if any(value.keys() != {"__entity"} for value in values):
        raise UntranslatableError("something that is no entity")
    for value in values:
        if value["__entity"]["type"] == ROW:
            raise UntranslatableError("single rows have no names")
        yield EntityUid(value["__entity"]["type"], value["__entity"]["id"])


def _name(column: Column) -> str:
    return '"' + column.name.replace('"', '""') + '"'


def _text(value: str) -> str:
    # Nothing in it can end it: in SQE's dialect a quote is doubled, and no other character is special.
    if not value.isprintable():
        raise UntranslatableError("a text with unprintable characters is not written in SQL")
    return "'" + value.replace("'", "''") + "'"


def _escaped(char: str) -> str:
    return f"!{char}" if char in "!%_" else char


def _and(left: Condition, right: Condition) -> Condition:
    if isinstance(left, bool):
        return right if left else False
    if isinstance(right, bool):
        return left if right else False
    return _bounded(f"({left} AND {right})")


def _or(left: Condition, right: Condition) -> Condition:
    if isinstance(left, bool):
        return True if left else right
    if isinstance(right, bool):
        return True if right else left
    return left if left == right else _bounded(f"({left} OR {right})")


def _bounded(text: str) -> str:
    if len(text) > 4 * MAX_CHARACTERS:
        raise UntranslatableError("the row filter is too long")
    return text
