"""Who carries out which statement: the handlers of every module of this folder. A new statement is a new module."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from inspect import isabstract
from pkgutil import iter_modules
from typing import Any

from sqe_core.query import statements
from sqe_core.query.statements.handler import Handler, Handlers


def _handlers() -> Iterator[Handler[Any]]:
    for found in iter_modules(statements.__path__, f"{statements.__name__}."):
        module = import_module(found.name) if found.name != __name__ else None
        for value in vars(module).values() if module is not None else ():
            own = isinstance(value, type) and value.__module__ == found.name and issubclass(value, Handler)
            if own and hasattr(value, "statement") and not isabstract(value):
                yield value()


HANDLERS = Handlers(_handlers())
