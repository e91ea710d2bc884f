"""The functions of the sqe and trino dialects."""

from __future__ import annotations


def documented() -> tuple[tuple[str, str, str], ...]:
    """Return (name, kind, signature) of every function, sorted by name."""
    return ()


def template_names() -> frozenset[str]:
    """Return the names of the typed templates that translated text may call."""
    return frozenset()


def spark_names() -> frozenset[str]:
    """Return the names of all Spark functions that translated text may call."""
    return frozenset()
