"""What Trino's clients call the columns of a query: names keep the letters in which they were written."""

from __future__ import annotations

from sqlglot import exp


def written_name(name: exp.Expression, source: str) -> str:
    """Return a name as it stands in the text: without quotes too it keeps its case."""
    start, end = name.meta.get("start"), name.meta.get("end")
    folded = str(name.this)
    if start is None or end is None:
        return folded
    text = source[start:end]
    return text if text.lower() == folded else folded


def output_names(tree: exp.Expression, source: str) -> tuple[str, ...] | None:
    """Return the names of a query's columns where they are not those that the engine gives; None else.

    Args:
        tree: as it was read, before anything was lowered.
        source: the user's text.
    """
    while isinstance(tree, exp.SetOperation | exp.Subquery):
        tree = tree.this
    if not isinstance(tree, exp.Select):
        return None
    names: list[str] = []
    changed = False
    for at, projection in enumerate(tree.expressions):
        name = _name(projection)
        if isinstance(projection, exp.Star) or isinstance(name, exp.Star):
            return None
        written = f"_col{at}" if name is None else written_name(name, source)
        changed = changed or (name is not None and written != name.this)
        names.append(written)
    return tuple(names) if changed else None


def aliased(tree: exp.Expression) -> frozenset[int]:
    """Return which columns of a SELECT have a name of their own."""
    columns = tree.expressions if isinstance(tree, exp.Select) else []
    if any(each.is_star for each in columns):
        return frozenset()
    return frozenset(at for at, each in enumerate(columns) if isinstance(each, exp.Alias))


def _name(projection: exp.Expression) -> exp.Expression | None:
    found = None
    if isinstance(projection, exp.Alias):
        found = projection.args["alias"]
    elif isinstance(projection, exp.Column):
        found = projection.this
    elif isinstance(projection, exp.Dot):
        found = projection.expression
    return found if isinstance(found, exp.Identifier | exp.Star) else None
