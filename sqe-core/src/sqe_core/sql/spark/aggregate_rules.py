"""Aggregates that Spark has in another shape: they keep NULLs, an order, or the n greatest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlglot import exp

from sqe_core.sql.spark.write_calls import Calling, argument, copied, named
from sqe_core.sql.spark.writer import operand

_ROW = "`_sqe_r`"
_A, _B = "`_sqe_a`", "`_sqe_b`"
_COPIES = 4  # of the rows that are collected, at most


def _count(calling: Calling) -> str:
    arguments = calling.arguments
    if not arguments or isinstance(arguments[0], exp.Star):
        if calling.node.args.get("distinct"):
            calling.writer.refuse("count(DISTINCT *) is not supported", calling.node, hint="name the columns")
        return calling.aggregate("count(*)")
    distinct = "DISTINCT " if calling.node.args.get("distinct") else ""
    return calling.aggregate(f"count({distinct}{', '.join(argument(calling.writer, one) for one in arguments)})")


def _extreme_by(calling: Calling) -> str:
    calling.count(2, 3)
    least = calling.name in ("min_by", "arg_min")
    few = len(calling.arguments) == 2
    with copied(calling.writer, 1 if few and least else _COPIES, calling.name):
        value, key = calling.written(0), calling.written(1)
    if few and least:
        return calling.aggregate(f"min_by({value}, {key})")
    if few:
        number = f"_sqe_number({key})"
        aggregates = (f"max_by({value}, {number})", f"max_by({value}, {key})", f"max({number})")
        return f"_sqe_maximum_by({', '.join(map(calling.aggregate, aggregates))}, {key})"
    rows = calling.aggregate(f"collect_list(if({key} IS NULL, NULL, {named([('k', key), ('v', value)])}))")
    ascending = _comparison([("k", False, False)]) if least else _comparison([("k", True, False)])
    ordered = f"array_sort({rows}, ({_A}, {_B}) -> {ascending})"
    return f"transform(slice({ordered}, 1, {calling.written(2)}), {_ROW} -> {_ROW}.v)"


def _array_agg(calling: Calling) -> str:
    """NULLs are kept, the order too, and nothing at all gives NULL."""
    calling.count(1)
    value = calling.written(0)
    order = calling.node.args.get("order")
    distinct = bool(calling.node.args.get("distinct"))
    skip = calling.node.args.get("nulls") == "ignore"
    calling.node.args["nulls"] = None
    keys = _order_keys(calling, order)
    if distinct and any(ordered.this != calling.arguments[0] for ordered in (order.expressions if order else ())):
        raise calling.error("With DISTINCT, array_agg can only be ordered by its argument")
    fields = [("v", value)] if distinct else [("v", value), *((f"k{at}", key) for at, (key, _, _) in enumerate(keys))]
    collector = "collect_set" if distinct else "collect_list"
    rows = calling.aggregate(f"{collector}({named(fields)})")
    if skip:
        rows = f"filter({rows}, {_ROW} -> {_ROW}.v IS NOT NULL)"
    if keys:
        sorting = [("v" if distinct else f"k{at}", down, first) for at, (_, down, first) in enumerate(keys)]
        rows = f"array_sort({rows}, ({_A}, {_B}) -> {_comparison(sorting)})"
    values = f"transform({rows}, {_ROW} -> {_ROW}.v)"
    return _unless_empty(calling, values)


def _unless_empty(calling: Calling, written: str) -> str:
    """NULL where there are no rows."""
    return f"if({calling.aggregate('any_value(TRUE)')}, {written}, NULL)"


def _order_keys(calling: Calling, order: Any) -> list[tuple[str, bool, bool]]:
    """Per key its text, whether it goes down, whether NULL comes first."""
    keys = []
    for ordered in order.expressions if order is not None else ():
        key = operand(calling.writer, ordered.this)
        keys.append((key, bool(ordered.args.get("desc")), bool(ordered.args.get("nulls_first"))))
    return keys


def _comparison(keys: list[tuple[str, bool, bool]]) -> str:
    """The body of a lambda that compares two rows by fields: (field, descending, NULLs first)."""
    branches = []
    for field, descending, nulls_first in keys:
        left, right = f"{_A}.{field}", f"{_B}.{field}"
        null_side, value_side = (-1, 1) if nulls_first else (1, -1)
        smaller, greater = (1, -1) if descending else (-1, 1)
        branches += [
            f"WHEN {left} IS NULL AND {right} IS NOT NULL THEN {null_side}",
            f"WHEN {left} IS NOT NULL AND {right} IS NULL THEN {value_side}",
            f"WHEN {left} < {right} THEN {smaller}",
            f"WHEN {left} > {right} THEN {greater}",
        ]
    return f"CASE {' '.join(branches)} ELSE 0 END"


def _listagg(calling: Calling) -> str:
    calling.count(1, 2)
    usual = "','" if calling.name == "group_concat" else "''"
    separator = calling.written(1) if len(calling.arguments) == 2 else usual
    order = calling.node.args.get("within") or calling.node.args.get("order")
    distinct = "DISTINCT " if calling.node.args.get("distinct") else ""
    written = f"listagg({distinct}{calling.written(0)}, {separator})"
    if order is not None:
        written += f" WITHIN GROUP (ORDER BY {calling.writer.write(order)})"
    return calling.aggregate(written)


def _percentile(calling: Calling) -> str:
    calling.count(1)
    within = calling.node.args.get("within")
    if within is None:
        raise calling.error(f"{calling.name} needs WITHIN GROUP (ORDER BY …)")
    ordered = within.expressions[0]
    direction = " DESC" if ordered.args.get("desc") else ""
    order = f"WITHIN GROUP (ORDER BY {calling.writer.write(ordered.this)}{direction})"
    return calling.aggregate(f"{calling.name}({calling.written(0)}) {order}")


def _approx_percentile(calling: Calling) -> str:
    calling.count(2)
    wanted = calling.arguments[1]
    with copied(calling.writer, 2, calling.name):
        if isinstance(wanted, exp.Array):
            fractions = f"array({', '.join(_above(argument(calling.writer, each)) for each in wanted.expressions)})"
        else:
            fractions = _above(calling.written(1))
    return f"_sqe_percentile({calling.aggregate(f'approx_percentile({calling.written(0)}, {fractions})')})"


def _above(fraction: str) -> str:
    """Between two values Trino takes the upper one and Spark the lower one."""
    return f"(CAST({fraction} AS DOUBLE) + if({fraction} = 1, 0D, 1E-12D))"


def _most_frequent(calling: Calling) -> str:
    """The exact ones: the capacity is not needed."""
    calling.count(3)
    more = f"CASE WHEN {_A}.value > {_B}.value THEN -1 WHEN {_A}.value < {_B}.value THEN 1 ELSE 0 END"
    ordered = f"array_sort(map_entries({_counted(calling, 1)}), ({_A}, {_B}) -> {more})"
    return f"map_from_entries(slice({ordered}, 1, CAST({calling.written(0)} AS INT)))"


def _histogram(calling: Calling) -> str:
    calling.count(1)
    return _counted(calling, 0)


def _counted(calling: Calling, at: int) -> str:
    with copied(calling.writer, _COPIES, calling.name):
        values = calling.aggregate(f"collect_list({calling.written(at)})")
    keys = f"array_distinct({values})"
    counts = f"transform({keys}, {_A} -> CAST(size(filter({values}, {_B} -> {_B} = {_A})) AS BIGINT))"
    return _unless_empty(calling, f"map_from_arrays({keys}, {counts})")


def _map_agg(calling: Calling) -> str:
    calling.count(2)
    return _keyed(calling, lambda rows: f"try_element_at({rows}, 1).v")


def _multimap_agg(calling: Calling) -> str:
    calling.count(2)
    return _keyed(calling, lambda rows: f"transform({rows}, {_ROW} -> {_ROW}.v)")


def _keyed(calling: Calling, value: Callable[[str], str]) -> str:
    with copied(calling.writer, _COPIES, calling.name):
        pair = named([("k", calling.written(0)), ("v", calling.written(1))])
        collected = calling.aggregate(f"collect_list({pair})")
    rows = f"filter({collected}, {_ROW} -> {_ROW}.k IS NOT NULL)"
    return _unless_empty(calling, _grouped(rows, value))


def _grouped(rows: str, value: Callable[[str], str], key: str = "k") -> str:
    keys = f"array_distinct(transform({rows}, {_ROW} -> {_ROW}.{key}))"
    same = f"filter({rows}, {_B} -> {_B}.{key} = {_A})"
    return f"map_from_arrays({keys}, transform({keys}, {_A} -> {value(same)}))"


def _map_union(calling: Calling) -> str:
    calling.count(1)
    with copied(calling.writer, _COPIES, calling.name):
        collected = calling.aggregate(f"collect_list({calling.written(0)})")
    entries = f"flatten(transform({collected}, {_A} -> map_entries({_A})))"
    united = _grouped(entries, lambda same: f"try_element_at({same}, 1).value", "key")
    return f"if(size({collected}) = 0, NULL, {united})"


def _grouping(calling: Calling) -> str:
    """One bit for each column, the last one lowest."""
    bits = [f"grouping({calling.written(at)})" for at in range(len(calling.arguments))]
    if not bits:
        calling.wrong_count()
    terms = [f"{bit} * {2 ** (len(bits) - 1 - at)}" for at, bit in enumerate(bits)]
    return f"CAST({' + '.join(terms)} AS INT)"


AGGREGATE_RULES: dict[str, Callable[[Calling], str]] = {
    "count": _count,
    "extreme_by": _extreme_by,
    "array_agg": _array_agg,
    "listagg": _listagg,
    "percentile": _percentile,
    "histogram": _histogram,
    "approx_percentile": _approx_percentile,
    "most_frequent": _most_frequent,
    "map_agg": _map_agg,
    "multimap_agg": _multimap_agg,
    "map_union": _map_union,
    "grouping": _grouping,
}
