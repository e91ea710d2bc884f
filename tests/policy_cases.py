"""Random tables, policies and queries, and what a policy leaves of a table, computed without SQL (TEST-3).

Everything comes from a seed `world.policy.query`. A policy is written twice: as the text that SQE is given, and as a
function of a row here. Neither knows of the other.
"""

from __future__ import annotations

import datetime
import hashlib
import hmac
import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pyarrow as pa

from sqe_core.spi.identity import Identity
from sqe_core.spi.policy import (
    ColumnMask,
    ConstantMask,
    Decision,
    Effect,
    HashMask,
    Mask,
    NullMask,
    PartialMask,
    RangeMask,
    SqlMask,
    YearMask,
)
from sqe_core.spi.sql import SqlExpression

MASK_KEY = "mask key"
ANALYST = Identity(
    issuer="test",
    subject="analyst",
    username="analyst",
    provider="test",
    roles=frozenset({"eng"}),
    groups=frozenset({"staff"}),
    claims={"dept": "eng", "level": 3},
)

Row = Mapping[str, Any]

TYPES: Mapping[str, pa.DataType] = {
    "int": pa.int32(),
    "bigint": pa.int64(),
    "text": pa.string(),
    "decimal": pa.decimal128(12, 2),
    "double": pa.float64(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
    "flag": pa.bool_(),
    "place": pa.struct([pa.field("city", pa.string()), pa.field("zip", pa.int32())]),
    "tags": pa.list_(pa.string()),
}
_COLUMNS = {
    "n": "int",
    "m": "int",
    "big": "bigint",
    "name": "text",
    "code": "text",
    "dept": "text",
    "amount": "decimal",
    "score": "double",
    "born": "date",
    "seen": "timestamp",
    "flag": "flag",
    "place": "place",
    "tags": "tags",
}
_NAMES = (
    "Ann Lee",
    "Bo Ek",
    "",
    "ÉMILE Ö",
    "łódź 12",
    "O'Neil \\ x",
    "eng",
    "a%b_c",
    "😀 Zed",
    "x" * 40,
    "北京 ٣",
    "𝐀𝐛 ǅ½",
)
_CITIES = ("Oslo", "Ghent", "", "Łódź")
_SCALARS = ("int", "bigint", "text", "decimal", "double", "date", "timestamp", "flag")


class Unanswerable(Exception):
    """Where SQL would raise."""


def arrow_schema(columns: Mapping[str, str]) -> pa.Schema:
    """The Arrow schema of columns by their kinds."""
    return pa.schema([pa.field(name, TYPES[kind]) for name, kind in columns.items()])


def arrow_table(columns: Mapping[str, str], rows: Sequence[Row]) -> pa.Table:
    """Rows as Arrow."""
    return pa.Table.from_pylist([{name: row[name] for name in columns} for row in rows], schema=arrow_schema(columns))


@dataclass(frozen=True, kw_only=True)
class CaseTable:
    """A table with the rows of each of its snapshots."""

    name: str
    columns: Mapping[str, str]
    versions: tuple[tuple[Row, ...], ...]
    deletes: bool
    """Whether the last snapshot deletes `id % 4 = 0` instead of adding rows."""


@dataclass(frozen=True, kw_only=True)
class Condition:
    """A row filter as text, and as a function that answers true, false or None, or raises `Unanswerable`."""

    text: str
    holds: Callable[[Row], bool | None]


@dataclass(frozen=True, kw_only=True)
class CaseMask:
    """A mask, and what it makes of a row."""

    mask: Mask
    value: Callable[[Row], Any]


@dataclass(frozen=True, kw_only=True)
class CasePolicy:
    """What a user may see of one table."""

    filters: tuple[Condition, ...] = ()
    masks: Mapping[str, CaseMask] = field(default_factory=dict)
    hidden: frozenset[str] = frozenset()

    @property
    def decision(self) -> Decision:
        return Decision(
            effect=Effect.ALLOW,
            row_filters=tuple(SqlExpression(text=each.text) for each in self.filters),
            column_masks=tuple(ColumnMask(column=name, mask=each.mask) for name, each in self.masks.items()),
            hidden_columns=self.hidden,
        )

    def columns(self, columns: Mapping[str, str]) -> Mapping[str, str]:
        """The visible ones of these."""
        return {name: kind for name, kind in columns.items() if name not in self.hidden}

    def seen(self, rows: Sequence[Row]) -> list[Row]:
        """What is left of these rows."""
        return [self._masked(row) for row in rows if all(_true(each, row) for each in self.filters)]

    def _masked(self, row: Row) -> Row:
        return {
            name: _or_null(self.masks[name].value, row) if name in self.masks else value
            for name, value in row.items()
            if name not in self.hidden
        }

    def __str__(self) -> str:
        return (
            f"filters={[each.text for each in self.filters]} hidden={sorted(self.hidden)}"
            f" masks={ {name: each.mask for name, each in self.masks.items()} }"
        )


def _true(condition: Condition, row: Row) -> bool:
    return _or_null(condition.holds, row) is True


def _or_null(function: Callable[[Row], Any], row: Row) -> Any:
    try:
        return function(row)
    except Unanswerable:
        return None


# Tables


def tables(dice: random.Random) -> list[CaseTable]:
    """Two tables that can be joined."""
    return [_table(dice, name, most) for name, most in (("t", 14), ("u", 6))]


def _table(dice: random.Random, name: str, most: int) -> CaseTable:
    columns = {"id": "bigint", **{column: kind for column, kind in _COLUMNS.items() if dice.random() < 0.8}}
    columns.setdefault("n", "int")
    columns.setdefault("name", "text")
    versions: list[tuple[Row, ...]] = []
    rows: list[Row] = []
    for _ in range(3):
        for _ in range(dice.randint(1, most)):
            row = {column: _value(dice, column, kind) for column, kind in columns.items()}
            rows.append({**row, "id": len(rows) if dice.random() < 0.9 else dice.randint(0, 5)})
        versions.append(tuple(rows))
    deletes = dice.random() < 0.3
    if deletes:
        versions[-1] = tuple(row for row in versions[-2] if row["id"] % 4 != 0)
    return CaseTable(name=name, columns=columns, versions=tuple(versions), deletes=deletes)


def _value(dice: random.Random, column: str, kind: str) -> Any:
    if dice.random() < 0.2:
        return None
    if column == "code":
        return dice.choice(("1", "7", "12", "-3", "x7", "", "0"))
    if column == "dept":
        return dice.choice(("eng", "eng", "hr", "ops"))
    match kind:
        case "int":
            return dice.randint(-5, 9)
        case "bigint":
            return dice.choice((0, 1, -7, 12, 10**12, -(10**15)))
        case "text":
            return dice.choice(_NAMES)
        case "decimal":
            return Decimal(dice.randint(-2000, 2000)) / 4
        case "double":
            return dice.choice((math.nan, math.inf, 0.0, 0.5, -1.25, 100.75, 3.0))
        case "date":
            return datetime.date(1960, 1, 1) + datetime.timedelta(days=dice.randint(0, 25_000))
        case "timestamp":
            return datetime.datetime(1960, 1, 1) + datetime.timedelta(microseconds=dice.randint(0, 2 * 10**15))
        case "flag":
            return dice.random() < 0.5
        case "place":
            return {"city": _or_none(dice, dice.choice(_CITIES)), "zip": _or_none(dice, dice.randint(1, 5))}
        case _:
            return [_or_none(dice, dice.choice("abc")) for _ in range(dice.randint(0, 3))]


def _or_none(dice: random.Random, value: Any) -> Any:
    return None if dice.random() < 0.2 else value


# Policies


def policy(dice: random.Random, columns: Mapping[str, str]) -> CasePolicy:
    """A policy on a table or view of these columns; each part of it may be missing."""
    filters = tuple(_condition(dice, columns, 2) for _ in range(dice.choice((0, 0, 1, 1, 2))))
    hidden = frozenset(name for name in columns if name != "id" and dice.random() < dice.choice((0, 0, 0.2)))
    masks = {
        name: _mask(dice, name, kind, columns)
        for name, kind in columns.items()
        if name not in hidden and dice.random() < dice.choice((0, 0.15, 0.35)) * (0.3 if name == "id" else 1)
    }
    return CasePolicy(filters=filters, masks=masks, hidden=hidden)


def row_policy(dice: random.Random, columns: Mapping[str, str]) -> CasePolicy:
    """A policy of row filters alone, below which rows are changed."""
    return CasePolicy(filters=tuple(_condition(dice, columns, 2) for _ in range(dice.choice((1, 1, 2)))))


def _condition(dice: random.Random, columns: Mapping[str, str], depth: int) -> Condition:
    if depth and dice.random() < 0.45:
        return _compound(dice, [_condition(dice, columns, depth - 1) for _ in range(2)])
    if dice.random() < 0.1:
        return _of_user(dice, columns)
    name = dice.choice(sorted(columns))
    return dice.choice(_FORMS[columns[name]])(dice, name, columns)


def _compound(dice: random.Random, parts: list[Condition]) -> Condition:
    left, right = parts

    def both(row: Row) -> bool | None:
        one = left.holds(row)
        if one is False:
            return False
        other = right.holds(row)
        return False if other is False else None if one is None or other is None else True

    def either(row: Row) -> bool | None:
        one = left.holds(row)
        if one is True:
            return True
        other = right.holds(row)
        return True if other is True else None if one is None or other is None else False

    def negated(row: Row) -> bool | None:
        one = left.holds(row)
        return None if one is None else not one

    return dice.choice(
        (
            Condition(text=f"({left.text}) AND ({right.text})", holds=both),
            Condition(text=f"({left.text}) OR ({right.text})", holds=either),
            Condition(text=f"NOT ({left.text})", holds=negated),
            Condition(
                text=f"CASE WHEN {left.text} THEN true ELSE {right.text} END",
                holds=lambda row: True if left.holds(row) is True else right.holds(row),
            ),
            Condition(text=f"coalesce({left.text}, false)", holds=lambda row: left.holds(row) is True),
        )
    )


def _of_user(dice: random.Random, columns: Mapping[str, str]) -> Condition:
    forms = [
        Condition(text="is_role_in_session('eng')", holds=lambda row: True),
        Condition(text="is_group_member('boss')", holds=lambda row: False),
        Condition(text="current_user = 'analyst'", holds=lambda row: True),
    ]
    if "dept" in columns:
        forms.append(
            Condition(
                text="dept = current_user_attr('dept')",
                holds=lambda row: None if row["dept"] is None else row["dept"] == "eng",
            )
        )
    if "n" in columns:
        forms.append(
            Condition(
                text="n < CAST(current_user_attr('level') AS integer)",
                holds=lambda row: None if row["n"] is None else row["n"] < 3,
            )
        )
    return dice.choice(forms)


Form = Callable[[random.Random, str, Mapping[str, str]], Condition]


def _unless_null(name: str, holds: Callable[[Any], bool]) -> Callable[[Row], bool | None]:
    return lambda row: None if row[name] is None else holds(row[name])


_COMPARE: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def literal(value: Any) -> str:
    """A value as SQL."""
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).lower()
        case list():
            return f"CAST(ARRAY[{', '.join(map(literal, value))}] AS array(varchar))"
        case dict():
            return f"CAST(ROW({literal(value['city'])}, {literal(value['zip'])}) AS row(city varchar, zip integer))"
        case str():
            return "'" + value.replace("'", "''") + "'"
        case datetime.datetime():
            return f"TIMESTAMP '{value.isoformat(sep=' ')}'"
        case datetime.date():
            return f"DATE '{value.isoformat()}'"
        case float():
            return f"{value!r}e0"
    return str(value)


def _plain_value(dice: random.Random, column: str, kind: str) -> Any:
    while True:
        value = _value(dice, column, kind)
        if value is not None and not (isinstance(value, float) and not math.isfinite(value)):
            return value


def _compared(dice: random.Random, name: str, columns: Mapping[str, str]) -> Condition:
    sign, value = dice.choice(sorted(_COMPARE)), _plain_value(dice, name, columns[name])
    return Condition(
        text=f"{name} {sign} {literal(value)}", holds=_unless_null(name, lambda seen: _COMPARE[sign](seen, value))
    )


def _between(dice: random.Random, name: str, columns: Mapping[str, str]) -> Condition:
    low, high = sorted(_plain_value(dice, name, columns[name]) for _ in range(2))
    return Condition(
        text=f"{name} BETWEEN {literal(low)} AND {literal(high)}",
        holds=_unless_null(name, lambda seen: low <= seen <= high),
    )


def _listed(dice: random.Random, name: str, columns: Mapping[str, str]) -> Condition:
    values = [_plain_value(dice, name, columns[name]) for _ in range(dice.randint(1, 4))]
    texts = [literal(value) for value in values]
    if dice.random() < 0.3:
        # NOT IN a list that holds NULL is never true.
        return Condition(
            text=f"{name} NOT IN ({', '.join([*texts, 'NULL'])})",
            holds=_unless_null(name, lambda seen: False if seen in values else None),  # type: ignore[arg-type,return-value]
        )
    return Condition(text=f"{name} IN ({', '.join(texts)})", holds=_unless_null(name, lambda seen: seen in values))


def _null(dice: random.Random, name: str, columns: Mapping[str, str]) -> Condition:
    if dice.random() < 0.5:
        return Condition(text=f"{name} IS NULL", holds=lambda row: row[name] is None)
    return Condition(text=f"{name} IS NOT NULL", holds=lambda row: row[name] is not None)


def _remainder(dice: random.Random, name: str, columns: Mapping[str, str]) -> Condition:
    left = dice.randint(0, 2)
    return Condition(text=f"{name} % 3 = {left}", holds=_unless_null(name, lambda seen: math.fmod(seen, 3) == left))


def _divided(dice: random.Random, name: str, columns: Mapping[str, str]) -> Condition:
    def holds(row: Row) -> bool | None:
        if row[name] is None:
            return None
        if row[name] == 0:
            raise Unanswerable
        return int(Decimal(100) / Decimal(row[name])) > 20

    return Condition(text=f"100 / {name} > 20", holds=holds)


def _other_column(dice: random.Random, name: str, columns: Mapping[str, str]) -> Condition:
    other = dice.choice([each for each, kind in sorted(columns.items()) if kind in ("int", "bigint")])
    return Condition(
        text=f"{name} >= {other}",
        holds=lambda row: None if row[name] is None or row[other] is None else row[name] >= row[other],
    )


def _text_function(dice: random.Random, name: str, columns: Mapping[str, str]) -> Condition:
    value = _plain_value(dice, name, "text")
    return dice.choice(
        (
            Condition(text=f"length({name}) > 2", holds=_unless_null(name, lambda seen: len(seen) > 2)),
            Condition(text=f"reverse({name}) <> 'gne'", holds=_unless_null(name, lambda seen: seen[::-1] != "gne")),
            Condition(
                text=f"upper({name}) = {literal(value.upper())}",
                holds=_unless_null(name, lambda seen: seen.upper() == value.upper()),
            ),
            Condition(text=f"{name} LIKE '%e%'", holds=_unless_null(name, lambda seen: "e" in seen)),
            Condition(text=f"{name} NOT LIKE 'A__ %'", holds=_unless_null(name, lambda seen: seen != "Ann Lee")),
            Condition(
                text=f"substring({name}, 1, 1) || '!' = 'e!'", holds=_unless_null(name, lambda seen: seen[:1] == "e")
            ),
            Condition(text=f"starts_with({name}, 'h')", holds=_unless_null(name, lambda seen: seen.startswith("h"))),
            Condition(text=f"CAST({name} AS integer) > 0", holds=lambda row: _number(row[name], lambda n: n > 0)),
        )
    )


def _number(text: str | None, then: Callable[[int], Any]) -> Any:
    if text is None:
        return None
    try:
        return then(int(text))
    except ValueError:
        raise Unanswerable from None


def _flag(dice: random.Random, name: str, columns: Mapping[str, str]) -> Condition:
    return dice.choice(
        (
            Condition(text=name, holds=lambda row: row[name]),
            Condition(text=f"NOT {name}", holds=_unless_null(name, lambda seen: not seen)),
            Condition(text=f"{name} IS NOT TRUE", holds=lambda row: row[name] is not True),
            Condition(text=dice.choice(("true", "1 = 1")), holds=lambda row: True),
            Condition(text="false", holds=lambda row: False),
        )
    )


def _place(dice: random.Random, name: str, columns: Mapping[str, str]) -> Condition:
    def zip_code(row: Row) -> bool | None:
        inner = row[name] and row[name]["zip"]
        return None if inner is None else inner > 2

    return dice.choice(
        (
            Condition(text=f"{name}.zip > 2", holds=zip_code),
            Condition(
                text=f"{name}.city IS NOT NULL", holds=lambda row: bool(row[name]) and row[name]["city"] is not None
            ),
        )
    )


def _tags(dice: random.Random, name: str, columns: Mapping[str, str]) -> Condition:
    def first(row: Row) -> bool | None:
        if row[name] is None:
            return None
        if not row[name]:
            raise Unanswerable
        return None if row[name][0] is None else row[name][0] == "a"

    def contains(row: Row) -> bool | None:
        if row[name] is None:
            return None
        return True if "a" in row[name] else None if None in row[name] else False

    return dice.choice(
        (
            Condition(text=f"cardinality({name}) > 1", holds=_unless_null(name, lambda seen: len(seen) > 1)),
            Condition(text=f"contains({name}, 'a')", holds=contains),
            Condition(text=f"{name}[1] = 'a'", holds=first),
        )
    )


_FORMS: Mapping[str, Sequence[Form]] = {
    "int": (_compared, _between, _listed, _null, _remainder, _divided, _other_column),
    "bigint": (_compared, _between, _listed, _null, _remainder, _divided, _other_column),
    "text": (_compared, _listed, _null, _text_function, _text_function),
    "decimal": (_compared, _between, _null),
    "double": (_compared, _null),
    "date": (_compared, _between, _listed, _null),
    "timestamp": (_compared, _between, _null),
    "flag": (_flag, _flag, _null),
    "place": (_place, _null),
    "tags": (_tags, _null),
}


def _mask(dice: random.Random, name: str, kind: str, columns: Mapping[str, str]) -> CaseMask:
    choices: list[Callable[[], CaseMask]] = [
        lambda: CaseMask(mask=NullMask(), value=lambda row: None),
        lambda: CaseMask(
            mask=ConstantMask(value="it's \\ ***"), value=lambda row: "it's \\ ***" if kind == "text" else None
        ),
        lambda: CaseMask(mask=HashMask(), value=lambda row: _hash(row[name]) if kind == "text" else None),
        lambda: _partial(dice, name, kind),
        lambda: _range(dice, name, kind),
        lambda: CaseMask(mask=YearMask(), value=lambda row: _year(row[name], kind)),
        lambda: _custom(dice, name, kind, columns),
        lambda: _custom(dice, name, kind, columns),
    ]
    return dice.choice(choices)()


def _hash(value: str | None) -> Any:
    return None if value is None else hmac.new(MASK_KEY.encode(), value.encode(), hashlib.sha256).hexdigest()


def _partial(dice: random.Random, name: str, kind: str) -> CaseMask:
    first, last = dice.randint(0, 2), dice.randint(0, 4)

    def value(row: Row) -> Any:
        text = row[name]
        if kind != "text" or text is None:
            return None
        if len(text) <= first + last:
            return _classes(text)
        end = len(text) - last
        return text[:first] + _classes(text[first:end]) + text[end:]

    return CaseMask(mask=PartialMask(show_first=first, show_last=last), value=value)


def _classes(text: str) -> str:
    return "".join(
        "X" if sign.isupper() else "x" if sign.isalpha() else "n" if sign.isnumeric() else sign for sign in text
    )


def _range(dice: random.Random, name: str, kind: str) -> CaseMask:
    width = dice.choice((2, 5, 10, 1000))

    def value(row: Row) -> Any:
        seen = row[name]
        if seen is None or kind not in ("int", "bigint", "decimal", "double"):
            return None
        if kind == "double":
            return float(math.floor(seen / width) * width) if math.isfinite(seen) else None
        return (seen // width) * width if kind != "decimal" else (seen / width).__floor__() * Decimal(width)

    return CaseMask(mask=RangeMask(width=width), value=value)


def _year(value: Any, kind: str) -> Any:
    if value is None or kind not in ("date", "timestamp"):
        return None
    return datetime.date(value.year, 1, 1) if kind == "date" else datetime.datetime(value.year, 1, 1)


def _custom(dice: random.Random, name: str, kind: str, columns: Mapping[str, str]) -> CaseMask:
    def mask(text: str, value: Callable[[Row], Any]) -> CaseMask:
        return CaseMask(mask=SqlMask(expression=SqlExpression(text=text)), value=value)

    forms = [
        mask("CASE WHEN id % 2 = 0 THEN {col} END", lambda row: row[name] if row["id"] % 2 == 0 else None),
        mask("CAST(NULL AS varchar)" if kind == "text" else "NULL", lambda row: None),
        mask("{col}", lambda row: row[name]),
    ]
    if kind == "text":
        forms += [
            mask("upper({col})", lambda row: None if row[name] is None else row[name].upper()),
            mask("substring({col}, 1, 1) || '…'", lambda row: None if row[name] is None else row[name][:1] + "…"),
        ]
    if kind == "int":
        forms.append(mask("-{col}", lambda row: None if row[name] is None else -row[name]))
        if "code" in columns:
            forms.append(mask("CAST(code AS integer) + 1", lambda row: _number(row["code"], lambda number: number + 1)))
        if "n" in columns:

            def divided(row: Row) -> int | None:
                if row["n"] is None:
                    return None
                if row["n"] == 0:
                    raise Unanswerable
                return int(Decimal(10) / row["n"])

            forms.append(mask("10 / n", divided))
    return dice.choice(forms)


# Queries


@dataclass(frozen=True, kw_only=True)
class CaseView:
    """A view by its text and the kinds of its columns."""

    text: str
    columns: Mapping[str, str]


def view(dice: random.Random, relation: Relation) -> CaseView:
    """A view of some columns and expressions of a relation, `id` among them."""
    writer = QueryWriter(dice=dice, relations=(relation,))
    scope = _scope("a", relation)
    columns = {"id": "bigint"}
    columns.update(
        {name: kind for name, kind in relation.columns.items() if name not in ("label", "yes") and dice.random() < 0.6}
    )
    items = [f"a.{name}" for name in columns]
    for name, kind in (("label", "text"), ("yes", "flag")):
        columns[name] = kind
        items.append(f"{writer.expression(kind, scope)} AS {name}")
    return CaseView(
        text=f"SELECT {', '.join(items)} FROM {relation.text} AS a{writer.condition(scope)}", columns=columns
    )


@dataclass(frozen=True, kw_only=True)
class CaseQuery:
    """A query with `[[t@1]]` for tables at versions; the bare `[[t]]` is the current one."""

    text: str
    ordered: bool = False
    raises: bool = False
    """Whether it is meant to touch values that raise."""
    may_refuse: bool = False
    """Whether the engine may have no way to run it over a secured relation, and then says so."""


@dataclass(frozen=True, kw_only=True)
class Relation:
    """What may stand in a FROM clause, with its visible columns."""

    text: str
    columns: Mapping[str, str]


Scope = Sequence[tuple[str, str]]
"""Names of columns as a query writes them, and their kinds."""


def _scope(alias: str, relation: Relation) -> Scope:
    return [(f"{alias}.{name}", kind) for name, kind in relation.columns.items()]


@dataclass(kw_only=True)
class QueryWriter:
    """Writes one random query over relations."""

    dice: random.Random
    relations: Sequence[Relation]
    hidden: Sequence[str] = ()

    def query(self) -> CaseQuery:
        shapes: Sequence[Callable[[], CaseQuery]] = (
            self._rows,
            self._rows,
            self._everything,
            self._groups,
            self._groups,
            self._aggregates,
            self._join,
            self._join,
            self._using,
            self._scalar_query,
            self._membership,
            self._existence,
            self._sets,
            self._common_table,
            self._first_rows,
            self._window,
            self._window,
            self._derived,
            self._unnested,
            self._rollup,
            self._raising,
            self._hidden,
            self._qualified,
            self._lateral,
        )
        return self.dice.choice(shapes)()

    def expression(self, kind: str, scope: Scope) -> str:
        return self._value(kind, scope)

    def condition(self, scope: Scope) -> str:
        return self._where(scope)

    # Expressions

    def _pick(self) -> Relation:
        return self.dice.choice(self.relations)

    def _column(self, kind: str, scope: Scope) -> str | None:
        names = [name for name, its in scope if its == kind]
        return self.dice.choice(names) if names else None

    def _value(self, kind: str, scope: Scope, depth: int = 2) -> str:
        column = self._column(kind, scope)
        if column is None or self.dice.random() < 0.1:
            return literal(_plain_value(self.dice, "name" if kind == "text" else "", kind))
        if depth == 0 or kind in ("place", "tags") or self.dice.random() < 0.5:
            return column
        inner = depth - 1
        if self.dice.random() < 0.25:
            return (
                f"CASE WHEN {self._condition(scope, inner)} THEN {self._value(kind, scope, inner)}"
                f" ELSE {self._value(kind, scope, inner)} END"
            )
        if self.dice.random() < 0.2:
            return f"coalesce({column}, {literal(_plain_value(self.dice, '', kind))})"
        if self.dice.random() < 0.1:
            return f"nullif({column}, {self._value(kind, scope, inner)})"
        return self.dice.choice(self._functions(kind, column, scope, inner))

    def _functions(self, kind: str, column: str, scope: Scope, depth: int) -> Sequence[str]:
        match kind:
            case "int":
                return (f"abs({column})", f"{column} + 3", f"{column} % 4", f"-{column}", f"{column} / 2")
            case "bigint":
                return (f"{column} + 1", f"length({self._value('text', scope, depth)}) + {column}", f"abs({column})")
            case "text":
                return (
                    f"upper({column})",
                    f"{column} || {self._value('text', scope, depth)}",
                    f"substring({column}, 2, 3)",
                    f"CAST({self._value('int', scope, depth)} AS varchar)",
                    f"replace({column}, 'e', '3')",
                )
            case "decimal":
                return (f"{column} + 1.25", f"{column} * 2", f"abs({column})")
            case "double":
                return (f"{column} * 2e0", f"{column} + 0.25e0")
            case "date":
                return (f"date_add('day', 3, {column})", f"date_trunc('month', {column})")
            case "timestamp":
                return (f"date_trunc('day', {column})", f"date_add('hour', 2, {column})")
        return (f"NOT {column}", f"({self._condition(scope, depth)})")

    def _condition(self, scope: Scope, depth: int = 2) -> str:
        if depth and self.dice.random() < 0.35:
            sign = self.dice.choice(("AND", "OR"))
            return f"({self._condition(scope, depth - 1)} {sign} {self._condition(scope, depth - 1)})"
        name, kind = self.dice.choice(scope)
        if kind in ("place", "tags") or self.dice.random() < 0.15:
            return f"{name} IS {self.dice.choice(('', 'NOT '))}NULL"
        if kind == "flag" and self.dice.random() < 0.5:
            return name
        if kind == "text" and self.dice.random() < 0.3:
            return f"{name} LIKE '%e%'"
        if self.dice.random() < 0.2:
            values = ", ".join(literal(_plain_value(self.dice, "", kind)) for _ in range(3))
            return f"{name} {self.dice.choice(('', 'NOT '))}IN ({values})"
        sign = self.dice.choice((*_COMPARE, "IS NOT DISTINCT FROM"))
        return f"{self._value(kind, scope, depth)} {sign} {self._value(kind, scope, depth)}"

    def _where(self, scope: Scope) -> str:
        return f" WHERE {self._condition(scope)}" if self.dice.random() < 0.6 else ""

    def _list(self, scope: Scope, kinds: Sequence[str] = tuple(TYPES)) -> list[str]:
        found = [kind for _, kind in scope if kind in kinds]
        return [self._value(self.dice.choice(found), scope) for _ in range(self.dice.randint(1, 4))]

    @staticmethod
    def _named(items: Sequence[str]) -> str:
        return ", ".join(f"{item} AS c{place}" for place, item in enumerate(items, 1))

    def _aggregate(self, scope: Scope) -> str:
        number = self.dice.choice([kind for _, kind in scope if kind in ("int", "bigint", "decimal", "double")])
        scalar = self.dice.choice([kind for _, kind in scope if kind in _SCALARS])
        text = self.dice.choice(
            (
                "count(*)",
                f"count({self._value(scalar, scope)})",
                f"count(DISTINCT {self._value(scalar, scope)})",
                f"sum({self._value(number, scope, 1)})",
                f"max({self._value(scalar, scope)})",
                f"min({self._value(scalar, scope)})",
                f"avg({self._value('int', scope, 1)})",
                f"array_sort(array_agg({self._value('text', scope, 1)}))",
                f"bool_or({self._condition(scope, 1)})",
                f"count_if({self._condition(scope, 1)})",
            )
        )
        filtered = self.dice.random() < 0.2 and not text.startswith("array_sort")
        return f"{text} FILTER (WHERE {self._condition(scope, 1)})" if filtered else text

    # Shapes

    def _rows(self) -> CaseQuery:
        relation = self._pick()
        scope = _scope("a", relation)
        distinct = self.dice.choice(("", "", "DISTINCT "))
        items = self._named(self._list(scope, _SCALARS if distinct else tuple(TYPES)))
        return CaseQuery(text=f"SELECT {distinct}{items} FROM {relation.text} AS a{self._where(scope)}")

    def _everything(self) -> CaseQuery:
        relation = self._pick()
        star = self.dice.choice(("*", "a.*"))
        return CaseQuery(text=f"SELECT {star} FROM {relation.text} AS a{self._where(_scope('a', relation))}")

    def _qualified(self) -> CaseQuery:
        bare = [each for each in self.relations if "@" not in each.text]
        relation = self.dice.choice(bare)
        scope = _scope(relation.text.strip("[]"), relation)
        return CaseQuery(text=f"SELECT {self._named(self._list(scope))} FROM {relation.text}{self._where(scope)}")

    def _groups(self) -> CaseQuery:
        relation = self._pick()
        scope = _scope("a", relation)
        keys = self._list(scope, _SCALARS)[:2]
        items = [*keys, *(self._aggregate(scope) for _ in range(self.dice.randint(1, 3)))]
        having = self.dice.choice(("", "", f" HAVING {self._aggregate_condition(scope)}"))
        places = ", ".join(str(place) for place in range(1, len(keys) + 1))
        text = f"SELECT {self._named(items)} FROM {relation.text} AS a{self._where(scope)} GROUP BY {places}{having}"
        return CaseQuery(text=text)

    def _aggregate_condition(self, scope: Scope) -> str:
        return self.dice.choice(("count(*) > 1", f"max({self._value('int', scope, 1)}) > 2", "count(*) % 2 = 1"))

    def _aggregates(self) -> CaseQuery:
        relation = self._pick()
        scope = _scope("a", relation)
        items = [self._aggregate(scope) for _ in range(self.dice.randint(2, 6))]
        return CaseQuery(text=f"SELECT {self._named(items)} FROM {relation.text} AS a{self._where(scope)}")

    def _rollup(self) -> CaseQuery:
        relation = self._pick()
        scope = _scope("a", relation)
        keys = [self._value(kind, scope, 0) for kind in ("text", "int")]
        keys = [key if key.startswith("a.") else "a.id" for key in keys]
        sets = self.dice.choice(("ROLLUP ({0}, {1})", "CUBE ({0}, {1})", "GROUPING SETS (({0}), ({0}, {1}), ({1}))"))
        items = self._named([*keys, "count(*)", self._aggregate(scope)])
        where = self._where(scope)
        return CaseQuery(text=f"SELECT {items} FROM {relation.text} AS a{where} GROUP BY {sets.format(*keys)}")

    def _join(self) -> CaseQuery:
        left, right = self._pick(), self._pick()
        scope = [*_scope("a", left), *_scope("b", right)]
        kind = self.dice.choice(("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "CROSS JOIN", ","))
        condition = ""
        if kind not in ("CROSS JOIN", ","):
            both = [(x, y) for x, p in _scope("a", left) for y, q in _scope("b", right) if p == q and p in _SCALARS]
            on = " = ".join(self.dice.choice(both)) if both and self.dice.random() < 0.8 else self._condition(scope, 1)
            extra = f" AND {self._condition(scope, 1)}" if self.dice.random() < 0.4 and kind != "FULL JOIN" else ""
            condition = f" ON {on}{extra}"
        items = self._list(scope) if self.dice.random() < 0.7 else ["count(*)", self._aggregate(scope)]
        source = f"{left.text} AS a {kind} {right.text} AS b{condition}"
        return CaseQuery(text=f"SELECT {self._named(items)} FROM {source}{self._where(scope)}")

    def _using(self) -> CaseQuery:
        left, right = self._pick(), self._pick()
        shared = [name for name, kind in left.columns.items() if right.columns.get(name) == kind and kind in _SCALARS]
        kind = self.dice.choice(("JOIN", "LEFT JOIN", "FULL JOIN"))
        key = self.dice.choice(shared)
        return CaseQuery(text=f"SELECT * FROM {left.text} AS a {kind} {right.text} AS b USING ({key})")

    def _scalar_query(self) -> CaseQuery:
        left, right = self._pick(), self._pick()
        outer, inner = _scope("a", left), _scope("b", right)
        kind = self.dice.choice([kind for _, kind in inner if kind in ("int", "bigint", "text")])
        correlation = self.dice.choice(("", f" WHERE {self._equal(outer, inner)}"))
        scalar = f"(SELECT {self.dice.choice(('max', 'min'))}({self._value(kind, inner, 1)}) FROM {right.text} AS b"
        scalar += f"{correlation})"
        items = self._named([*self._list(outer), scalar])
        if self.dice.random() < 0.5:
            where = f" WHERE {self._value(kind, outer, 1)} <= {scalar}"
            return CaseQuery(text=f"SELECT {self._named(self._list(outer))} FROM {left.text} AS a{where}")
        return CaseQuery(text=f"SELECT {items} FROM {left.text} AS a{self._where(outer)}")

    def _equal(self, outer: Scope, inner: Scope) -> str:
        both = [f"{x} = {y}" for x, p in outer for y, q in inner if p == q and p in _SCALARS]
        return self.dice.choice(both) if both else "true"

    def _membership(self) -> CaseQuery:
        left, right = self._pick(), self._pick()
        outer, inner = _scope("a", left), _scope("b", right)
        kinds = sorted({kind for _, kind in outer} & {kind for _, kind in inner} & set(_SCALARS))
        kind = self.dice.choice(kinds)
        sign = self.dice.choice(("IN", "IN", "NOT IN"))
        query = f"(SELECT {self._value(kind, inner, 1)} FROM {right.text} AS b{self._where(inner)})"
        text = f"SELECT {self._named(self._list(outer))} FROM {left.text} AS a"
        return CaseQuery(text=f"{text} WHERE {self._value(kind, outer, 1)} {sign} {query}")

    def _existence(self) -> CaseQuery:
        left, right = self._pick(), self._pick()
        outer, inner = _scope("a", left), _scope("b", right)
        sign = self.dice.choice(("EXISTS", "NOT EXISTS"))
        extra = f" AND {self._condition(inner, 1)}" if self.dice.random() < 0.5 else ""
        query = f"(SELECT 1 FROM {right.text} AS b WHERE {self._equal(outer, inner)}{extra})"
        return CaseQuery(text=f"SELECT {self._named(self._list(outer))} FROM {left.text} AS a WHERE {sign} {query}")

    def _sets(self) -> CaseQuery:
        left, right = self._pick(), self._pick()
        outer, inner = _scope("a", left), _scope("b", right)
        kinds = sorted({kind for _, kind in outer} & {kind for _, kind in inner} & set(_SCALARS))
        chosen = [self.dice.choice(kinds) for _ in range(self.dice.randint(1, 3))]
        sign = self.dice.choice(("UNION", "UNION ALL", "INTERSECT", "EXCEPT", "EXCEPT ALL", "INTERSECT ALL"))
        first = self._named([self._value(kind, outer, 1) for kind in chosen])
        second = self._named([self._value(kind, inner, 1) for kind in chosen])
        order = " ORDER BY " + ", ".join(str(place) for place in range(1, len(chosen) + 1))
        order = self.dice.choice(("", order))
        text = f"SELECT {first} FROM {left.text} AS a {sign} SELECT {second} FROM {right.text} AS b{order}"
        return CaseQuery(text=text, ordered=bool(order))

    def _common_table(self) -> CaseQuery:
        relation = self._pick()
        scope = _scope("a", relation)
        items = self._list(scope, _SCALARS)
        body = f"SELECT {self._named(items)} FROM {relation.text} AS a{self._where(scope)}"
        # A name of its own, or one that covers the table's.
        name = self.dice.choice(("q", "t", "u"))
        rest = self.dice.choice(
            (
                f"SELECT x.c1 AS c1, y.c1 AS c2 FROM {name} AS x JOIN {name} AS y ON x.c1 = y.c1",
                f"SELECT count(*) AS c1 FROM {name}",
                f"SELECT c1 FROM {name} WHERE c1 IN (SELECT c1 FROM {name})",
                f"SELECT c1 FROM {name} UNION ALL SELECT c1 FROM {name}",
            )
        )
        return CaseQuery(text=f"WITH {name} AS ({body}) {rest}")

    def _first_rows(self) -> CaseQuery:
        relation = self._pick()
        scope = _scope("a", relation)
        items = self._list(scope, _SCALARS)
        direction = self.dice.choice(("", " DESC", " DESC NULLS LAST", " NULLS FIRST"))
        order = ", ".join(f"{place}{direction}" for place in range(1, len(items) + 1))
        text = f"SELECT {self._named(items)} FROM {relation.text} AS a{self._where(scope)} ORDER BY {order}"
        limit = self.dice.choice(("", " LIMIT 3", " LIMIT 1", " OFFSET 2 LIMIT 4", " FETCH FIRST 2 ROWS WITH TIES"))
        return CaseQuery(text=text + limit, ordered=True)

    def _window(self) -> CaseQuery:
        relation = self._pick()
        scope = _scope("a", relation)
        items = self._list(scope, _SCALARS)
        part, order = (self._value(self.dice.choice(("int", "text", "bigint")), scope, 1) for _ in range(2))
        frame = f"({self.dice.choice(('', f'PARTITION BY {part} '))}ORDER BY {order})"
        whole = f"(PARTITION BY {part})"
        everything = f"(ORDER BY {', '.join(items)})"
        # Functions of the place among equals are determined only where nothing else is told of a row.
        by_place = [f"{name} OVER {everything}" for name in ("row_number()", f"lag({items[0]})", "ntile(3)")]
        by_value = [
            f"rank() OVER {frame}",
            f"dense_rank() OVER {frame}",
            f"count(*) OVER {frame}",
            f"sum({self._value('int', scope, 1)}) OVER {frame}",
            f"max({self._value('text', scope, 1)}) OVER {frame}",
            f"sum({self._value('bigint', scope, 1)}) OVER {whole}",
            f"percent_rank() OVER {frame}",
        ]
        windows = self.dice.choice((by_place, by_value, by_value))
        chosen = self.dice.sample(windows, self.dice.randint(1, 3))
        qualify = self.dice.choice(("", f" QUALIFY rank() OVER {frame} <= 2")) if windows is by_value else ""
        names = self._named([*items, *chosen])
        return CaseQuery(text=f"SELECT {names} FROM {relation.text} AS a{self._where(scope)}{qualify}")

    def _derived(self) -> CaseQuery:
        relation = self._pick()
        scope = _scope("a", relation)
        kinds = [self.dice.choice([kind for _, kind in scope if kind in _SCALARS]) for _ in range(3)]
        items = self._named([self._value(kind, scope) for kind in kinds])
        inner = [(f"d.c{place}", kind) for place, kind in enumerate(kinds, 1)]
        body = f"SELECT {items} FROM {relation.text} AS a{self._where(scope)}"
        outer = self._named(self._list(inner))
        return CaseQuery(text=f"SELECT {outer} FROM ({body}) AS d WHERE {self._condition(inner)}")

    def _unnested(self) -> CaseQuery:
        fitting = [each for each in self.relations if "tags" in each.columns]
        if not fitting:
            return self._rows()
        relation = self.dice.choice(fitting)
        scope = _scope("a", relation)
        items = self._named([*self._list(scope), "x.tag"])
        return CaseQuery(
            text=f"SELECT {items} FROM {relation.text} AS a CROSS JOIN UNNEST(a.tags) AS x(tag){self._where(scope)}"
        )

    def _lateral(self) -> CaseQuery:
        left, right = self._pick(), self._pick()
        outer, inner = _scope("a", left), _scope("b", right)
        query = f"(SELECT count(*) AS c FROM {right.text} AS b WHERE {self._equal(outer, inner)})"
        items = self._named([*self._list(outer), "l.c"])
        text = f"SELECT {items} FROM {left.text} AS a CROSS JOIN LATERAL {query} AS l"
        return CaseQuery(text=text, may_refuse=True)

    def _raising(self) -> CaseQuery:
        """One expression that may raise, for each visible row: whether it does is a matter of visible rows only."""
        relation = self._pick()
        scope = _scope("a", relation)
        number, text = self._value("int", scope, 0), self._value("text", scope, 0)
        expressions = [
            f"10 / {number}",
            f"CAST({text} AS integer)",
            f"CAST({text} AS date)",
            f"{number} + 2147483640",
            f"CAST({number} * 20 AS tinyint)",
        ]
        if "tags" in relation.columns:
            expressions.append("a.tags[2]")
        one = self.dice.choice(expressions)
        return self.dice.choice(
            (
                CaseQuery(text=f"SELECT {one} AS c1 FROM {relation.text} AS a", raises=True),
                CaseQuery(text=f"SELECT a.id FROM {relation.text} AS a WHERE {one} IS NOT NULL", raises=True),
                CaseQuery(text=f"SELECT max({one}) AS c1 FROM {relation.text} AS a", raises=True),
                CaseQuery(text=f"SELECT {one} AS c1, count(*) AS c2 FROM {relation.text} AS a GROUP BY 1", raises=True),
            )
        )

    def _hidden(self) -> CaseQuery:
        """A column that is hidden, or was never there."""
        relation = self._pick()
        name = self.dice.choice((*self.hidden, "nowhere"))
        return self.dice.choice(
            (
                CaseQuery(text=f"SELECT a.{name} FROM {relation.text} AS a"),
                CaseQuery(text=f"SELECT a.id FROM {relation.text} AS a WHERE a.{name} IS NULL"),
                CaseQuery(text=f"SELECT a.id FROM {relation.text} AS a ORDER BY a.{name}"),
                CaseQuery(text=f"SELECT count(*) AS c1 FROM {relation.text} AS a GROUP BY a.{name}"),
                CaseQuery(text=f"SELECT a.id FROM {relation.text} AS a JOIN {relation.text} AS b USING ({name})"),
            )
        )


@dataclass(kw_only=True)
class ChangeWriter:
    """Writes one random UPDATE, DELETE or MERGE of a target, which may read another relation."""

    dice: random.Random
    target: Relation
    source: Relation

    def change(self) -> str:
        return self.dice.choice((self._update, self._update, self._delete, self._merge, self._merge))()

    def _writer(self) -> QueryWriter:
        return QueryWriter(dice=self.dice, relations=(self.source,))

    @property
    def _own(self) -> Scope:
        return _scope("a", self.target)

    def _assignments(self, scope: Scope) -> str:
        names = self.dice.sample(sorted(self.target.columns), self.dice.randint(1, 2))
        values = [f"{name} = {self._writer().expression(self.target.columns[name], scope)}" for name in names]
        return ", ".join(values)

    def _where(self) -> str:
        if self.dice.random() < 0.7:
            return self._writer().condition(self._own) or " WHERE 1 = 1"
        rest = self._writer().condition(_scope("s", self.source))
        form = self.dice.choice(("a.id IN (SELECT s.id", "NOT EXISTS (SELECT 1"))
        rest = rest or " WHERE s.id >= 0"
        return f" WHERE {form} FROM {self.source.text} AS s{rest}{' AND s.id = a.id' if 'EXISTS' in form else ''})"

    def _update(self) -> str:
        return f"UPDATE {self.target.text} AS a SET {self._assignments(self._own)}{self._where()}"

    def _delete(self) -> str:
        return f"DELETE FROM {self.target.text} AS a{self._where()}"

    def _when(self, what: str, scope: Scope) -> str:
        return f" WHEN {what}" + self._writer().condition(scope).replace(" WHERE ", " AND ", 1) + " THEN "

    def _merge(self) -> str:
        theirs = _scope("s", self.source)
        both = [*self._own, *theirs]
        also = self._writer().condition(both).replace(" WHERE ", " AND ", 1)
        text = f"MERGE INTO {self.target.text} AS a USING {self.source.text} AS s ON a.id = s.id{also}"
        parts = []
        if self.dice.random() < 0.8:
            parts.append(self._when("MATCHED", both) + self._deed(both))
        if self.dice.random() < 0.6 or not parts:
            name = self.dice.choice([name for name in sorted(self.target.columns) if name != "id"])
            value = self._writer().expression(self.target.columns[name], theirs)
            parts.append(self._when("NOT MATCHED", theirs) + f"INSERT (id, {name}) VALUES (s.id, {value})")
        if self.dice.random() < 0.4:
            parts.append(self._when("NOT MATCHED BY SOURCE", self._own) + self._deed(self._own))
        return text + "".join(parts)

    def _deed(self, scope: Scope) -> str:
        return self.dice.choice(("DELETE", f"UPDATE SET {self._assignments(scope)}"))
