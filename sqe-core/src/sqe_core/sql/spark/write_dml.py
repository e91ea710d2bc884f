"""Rules for INSERT, UPDATE, DELETE and MERGE."""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from sqe_core.sql.grammar.nodes import MergeBranch
from sqe_core.sql.spark.write_queries import write_condition, write_joined, write_with
from sqe_core.sql.spark.writer import Writer, condition, rule


@rule(exp.Insert, "this", "overwrite", "partition", "by_name", "columns", "expression")
def _insert(writer: Writer, node: Any) -> str:
    pieces = ["INSERT OVERWRITE" if node.args.get("overwrite") else "INSERT INTO", f" {writer.write(node.this)}"]
    partition = node.args.get("partition")
    if partition:
        written = (_assignment(writer, one) if isinstance(one, exp.EQ) else writer.write(one) for one in partition)
        pieces.append(f" PARTITION ({', '.join(written)})")
    if node.args.get("by_name"):
        pieces.append(" BY NAME")
    columns = node.args.get("columns")
    if columns:
        pieces.append(f" ({writer.writes(columns)})")
    pieces.append(f" {writer.write(node.expression)}")
    return "".join(pieces)


@rule(exp.Update, "with_", "this", "expressions", "where")
def _update(writer: Writer, node: Any) -> str:
    assignments = ", ".join(_assignment(writer, one) for one in node.expressions)
    where = write_condition(writer, node, "where")
    return f"{write_with(writer, node)}UPDATE {write_joined(writer, node.this)} SET {assignments}{where}"


@rule(exp.Delete, "with_", "this", "where")
def _delete(writer: Writer, node: Any) -> str:
    where = write_condition(writer, node, "where")
    return f"{write_with(writer, node)}DELETE FROM {write_joined(writer, node.this)}{where}"


def _assignment(writer: Writer, node: Any) -> str:
    return f"{writer.write(node.this)} = {writer.write(node.expression)}"


@rule(exp.Merge, "with_", "this", "using", "on", "whens")
def _merge(writer: Writer, node: Any) -> str:
    source = _source(writer, node.args["using"])
    head = f"{write_with(writer, node)}MERGE INTO {write_joined(writer, node.this)} USING {source}"
    branches = " ".join(writer.write(branch) for branch in node.args["whens"])
    return f"{head} ON {condition(writer, node.args['on'])} {branches}"


def _source(writer: Writer, node: Any) -> str:
    """The source of a MERGE; Spark takes no names of columns there, a query in brackets may have them."""
    written = write_joined(writer, node)
    alias = node.args.get("alias")
    if alias is None or not alias.args.get("columns"):
        return written
    return f"(SELECT * FROM {written}) AS {writer.write(alias.this)}"


@rule(MergeBranch, "matched", "by_source", "condition", "action", "all", "assignments", "columns", "values")
def _branch(writer: Writer, node: Any) -> str:
    words = "WHEN MATCHED" if node.args["matched"] else "WHEN NOT MATCHED"
    if node.args.get("by_source"):
        words += " BY SOURCE"
    test = node.args.get("condition")
    if test is not None:
        words += f" AND {condition(writer, test)}"
    return f"{words} THEN {_action(writer, node)}"


def _action(writer: Writer, node: Any) -> str:
    action = node.args["action"]
    if action == "delete":
        return "DELETE"
    if action == "update":
        if node.args.get("all"):
            return "UPDATE SET *"
        return "UPDATE SET " + ", ".join(_assignment(writer, one) for one in node.args["assignments"])
    if node.args.get("all"):
        return "INSERT *"
    columns = node.args.get("columns")
    if not columns:
        writer.refuse("INSERT in a MERGE needs the names of the columns", node, hint="write INSERT (a, b) VALUES (…)")
    return f"INSERT ({writer.writes(columns)}) VALUES ({writer.writes(node.args['values'])})"
