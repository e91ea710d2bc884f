"""ALTER TABLE t EXECUTE …: Iceberg's own maintenance of a table, in Trino's words (STMT-6)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqe_core.config.values import parse_duration
from sqe_core.query.context import StatementContext
from sqe_core.query.errors.suggestions import did_you_mean
from sqe_core.query.statements.handler import ExistingObject, change
from sqe_core.query.statements.objects import CatalogObjects
from sqe_core.query.statements.shared_folders import shares_its_folder
from sqe_core.query.statements.traits import DDL_IF_EXISTS
from sqe_core.spi.catalog import TableMetadata
from sqe_core.spi.errors import ErrorCode, NotSupportedError, UserError
from sqe_core.spi.policy import Action
from sqe_core.sql.statement import MaintainTable

_SHORTEST_DAYS = 7
_OF_A_FOLDER = "remove_orphan_files"
_SIZE = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*(B|kB|MB|GB|TB)\s*")
_UNITS = ("B", "kB", "MB", "GB", "TB")


def _size(value: Any) -> str:
    found = _SIZE.fullmatch(value) if isinstance(value, str) else None
    if found is None or float(found[1]) == 0:
        raise _fault("file_size_threshold has to be a size such as '128MB'")
    return str(int(float(found[1]) * 1024 ** _UNITS.index(found[2])))


def _retention(value: Any) -> str:
    """What is younger may be read by somebody, or belong to a statement that has not committed yet."""
    try:
        seconds = parse_duration(value) if isinstance(value, str) else None
    except ValueError:
        seconds = None
    if seconds is None:
        raise _fault("retention_threshold has to be a duration such as '7d'")
    if seconds < _SHORTEST_DAYS * 86_400:
        raise _fault(f"retention_threshold is at least {_SHORTEST_DAYS} days")
    return str(int(seconds * 1000))


@dataclass(frozen=True, slots=True)
class _Argument:
    """Trino's name of an argument, ours, its default, and how it is read."""

    name: str
    option: str
    default: str
    read: Callable[[Any], str]


_RETENTION = _Argument("retention_threshold", "retention", f"{_SHORTEST_DAYS}d", _retention)
_ACTIONS: Mapping[str, Sequence[_Argument]] = {
    "optimize": (_Argument("file_size_threshold", "threshold", "100MB", _size),),
    "optimize_manifests": (),
    "expire_snapshots": (_RETENTION,),
    _OF_A_FOLDER: (_RETENTION,),
    "drop_extended_stats": (),
}


def _needs(statement: MaintainTable) -> tuple[ExistingObject]:
    """Whoever maintains a table sees all of it: its files are written anew as they are."""
    actions = (Action.MAINTAIN, Action.SELECT)
    return (ExistingObject(name=statement.name, actions=actions, kind=TableMetadata, if_exists=statement.if_exists),)


@change(MaintainTable, traits=DDL_IF_EXISTS, in_engine=True, needs=_needs)
def maintain(statement: MaintainTable, context: StatementContext) -> None:
    options = _options(statement)
    found = CatalogObjects(context).existing(*_needs(statement))
    if found is None:
        return
    resolved, loaded = found
    name = resolved.name
    assert isinstance(loaded, TableMetadata)
    if statement.action == _OF_A_FOLDER and shares_its_folder(loaded, context.session.metadata(resolved.mount)):
        raise NotSupportedError(
            f"The folder of {name} has files of another table or view, which would be removed",
            hint="make one of them anew with CREATE TABLE … AS under another name",
        )
    table = (context.session.alias_of(resolved.mount), *name.namespace, name.name)
    context.session.engine_session().maintain(table, statement.action, options, tag=context.running.tag)


def _options(statement: MaintainTable) -> Mapping[str, str]:
    known = _ACTIONS.get(statement.action)
    if known is None:
        raise NotSupportedError(
            f"There is no procedure {statement.action} of tables",
            hint=did_you_mean(statement.action, list(_ACTIONS)) or f"there are: {', '.join(_ACTIONS)}",
            condition="PROCEDURE_NOT_FOUND",
        )
    names = {argument.name for argument in known}
    unknown = next((name for name in statement.arguments if name not in names), None)
    if unknown is not None:
        raise _fault(f"{statement.action} has no argument {unknown}", ", ".join(sorted(names)) or None)
    return {
        argument.option: argument.read(statement.arguments.get(argument.name, argument.default)) for argument in known
    }


def _fault(message: str, hint: str | None = None) -> UserError:
    return UserError(message, code=ErrorCode.INVALID_ARGUMENTS, hint=hint, condition="INVALID_PROCEDURE_ARGUMENT")
