"""Who carries out which statement: the handlers in every module of this folder. A new statement is a new module."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from sqe_core.query import statements
from sqe_core.query.statements.handler import Handler, Handlers

_MODULES = [each.name for each in iter_modules(statements.__path__, f"{statements.__name__}.") if each.name != __name__]
HANDLERS = Handlers(
    value for name in _MODULES for value in vars(import_module(name)).values() if isinstance(value, Handler)
)
