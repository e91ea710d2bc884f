"""Which function makes the rows of which of Trino's tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqe_core import __version__
from sqe_core.catalog.registry import Mount
from sqe_core.catalog.system import SYSTEM
from sqe_core.catalog.trino_tables import RUNTIME
from sqe_core.catalog.visible import INFORMATION_SCHEMA
from sqe_core.query.answers import trino_properties
from sqe_core.query.answers.sessions import RuntimeTables
from sqe_core.query.answers.trino_grants import TrinoGrants
from sqe_core.query.answers.trino_objects import Rows, TrinoObjects
from sqe_core.query.context import StatementContext
from sqe_core.spi.names import ObjectName
from sqe_core.sql.simple_query import Wanted

if TYPE_CHECKING:
    from sqe_core.query.run.judging import Judging


@dataclass(frozen=True, slots=True)
class TrinoTables:
    """Makes the rows of one statement."""

    context: StatementContext
    judging: Judging

    def rows(self, mount: Mount, name: ObjectName, wanted: Wanted) -> Rows:
        """Yield the rows of a table that exists."""
        objects = TrinoObjects(self.context, self.judging, wanted)
        schema = ".".join(name.namespace)
        if schema == INFORMATION_SCHEMA:
            yield from self._standard(objects, mount)[name.name]()
            return
        assert mount is SYSTEM
        if schema == "runtime":
            yield from self._runtime(name)
            return
        # What is not made there is empty: there are no such things here.
        made = self._system(objects).get((schema, name.name))
        yield from made() if made is not None else ()

    def _standard(self, objects: TrinoObjects, mount: Mount) -> Mapping[str, Callable[[], Rows]]:
        grants = TrinoGrants(self.context, objects.wanted)
        return {
            "applicable_roles": grants.applicable_roles,
            "columns": lambda: objects.standard_columns(mount),
            "enabled_roles": grants.enabled_roles,
            "roles": grants.roles,
            "schemata": lambda: objects.schemata(mount),
            "table_privileges": lambda: grants.table_privileges(mount),
            "tables": lambda: objects.tables(mount),
            "views": lambda: objects.views(mount),
        }

    def _system(self, objects: TrinoObjects) -> Mapping[tuple[str, str], Callable[[], Rows]]:
        def of_each_catalog(properties: Sequence[tuple[str, str, str, str]]) -> Callable[[], Rows]:
            mounts = [mount for mount in objects.mounts("catalog_name") if mount is not SYSTEM]
            return lambda: ((mount.name, *each) for mount in mounts for each in properties)

        return {
            ("jdbc", "catalogs"): objects.jdbc_catalogs,
            ("jdbc", "columns"): objects.jdbc_columns,
            ("jdbc", "schemas"): objects.jdbc_schemas,
            ("jdbc", "table_types"): lambda: iter([("TABLE",), ("VIEW",)]),
            ("jdbc", "tables"): objects.jdbc_tables,
            ("jdbc", "types"): objects.jdbc_types,
            ("metadata", "catalogs"): objects.catalogs,
            ("metadata", "schema_properties"): of_each_catalog(trino_properties.SCHEMA_PROPERTIES),
            ("metadata", "table_comments"): objects.table_comments,
            ("metadata", "table_properties"): of_each_catalog(trino_properties.TABLE_PROPERTIES),
        }

    def _runtime(self, name: ObjectName) -> Rows:
        if name.name == "nodes":
            yield "sqe", None, __version__, True, "active"
            return
        known = RuntimeTables(self.context).rows(name)
        if known is None:
            return
        names = RUNTIME[name.name].names
        for row in known.to_pylist():
            yield tuple(_of_trino(column, row) for column in names)


def _of_trino(column: str, row: Mapping[str, Any]) -> Any:
    return ["global"] if column == "resource_group_id" and "query_id" in row else row.get(column)
