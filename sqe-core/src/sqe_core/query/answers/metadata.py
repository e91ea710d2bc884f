"""SHOW and DESCRIBE: answered by SQE from metadata, without the engine's SQL and without a job (STMT-2)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass

import pyarrow as pa

from sqe_core.catalog.information_schema import SCHEMAS, to_table
from sqe_core.catalog.types import display_type
from sqe_core.catalog.visible import INFORMATION_SCHEMA, VisibleCatalogs
from sqe_core.query.answers.like import like_filter
from sqe_core.query.errors.suggestions import did_you_mean
from sqe_core.query.judge.judge import VIEW_SECURITY_PROPERTY, unreadable_view
from sqe_core.query.judge.names import NameContext, NameResolver, ResolvedName, schema_not_found, table_not_found
from sqe_core.session.statement_session import StatementSession
from sqe_core.spi.catalog import Column, ObjectType, TableMetadata, ViewMetadata
from sqe_core.spi.errors import ErrorCode, ObjectNotFoundError, SqeError, UserError
from sqe_core.spi.names import ObjectName, quote_part
from sqe_core.sql.statement import (
    Name,
    ShowCatalogs,
    ShowColumns,
    ShowCreate,
    ShowFunctions,
    ShowSchemas,
    ShowSession,
    ShowTables,
    Statement,
)

# Properties that describe state, not intent: SHOW CREATE TABLE leaves them out.
_STATE_PROPERTIES = ("current-snapshot-id", "format", "sort-order", "created-at", "owner", "write.metadata.path")


def text_table(names: Sequence[str], rows: Iterable[Sequence[str | None]]) -> pa.Table:
    """Return rows of text as a table."""
    return to_table(pa.schema([(name, pa.string()) for name in names]), list(rows))


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataAnswers:
    """Answers metadata statements for one session."""

    session: StatementSession
    visible: VisibleCatalogs
    resolver: NameResolver
    visible_columns: Callable[[ObjectName, TableMetadata | ViewMetadata], tuple[Column, ...]]
    visible_text: Callable[[ObjectName, ViewMetadata], str | None]
    functions: Callable[[], Sequence[tuple[str, str, str]]]
    system_columns: Callable[[ResolvedName], tuple[Column, ...] | None]

    @property
    def context(self) -> NameContext:
        """The session's current names."""
        return NameContext(catalog=self.session.catalog, schema=self.session.schema)

    def answer(self, statement: Statement) -> pa.Table | None:
        """Return the rows of a metadata statement, or None when it is none."""
        match statement:
            case ShowCatalogs():
                return self._catalogs(statement)
            case ShowSchemas():
                return self._schemas(statement)
            case ShowTables():
                return self._tables(statement)
            case ShowColumns():
                return self._columns(statement)
            case ShowCreate():
                return self._create(statement)
            case ShowFunctions():
                return self._functions(statement)
            case ShowSession():
                matches = like_filter(statement.like)
                rows = [row for row in self.session.properties.rows() if matches(row[0])]
                return text_table(("name", "value", "default", "type", "description"), rows)
        return None

    def _catalogs(self, statement: ShowCatalogs) -> pa.Table:
        matches = like_filter(statement.like)
        names = (mount.name for mount in self.visible.mounts())
        return text_table(("catalog",), [(name,) for name in names if matches(name)])

    def _schemas(self, statement: ShowSchemas) -> pa.Table:
        mount = self.resolver.catalog(statement.catalog or self.session.catalog)
        matches = like_filter(statement.like)
        names = sorted(".".join(namespace) for namespace in self.visible.schemas(mount))
        return text_table(("schema",), [(name,) for name in names if matches(name)])

    def _tables(self, statement: ShowTables) -> pa.Table:
        mount, schema = self.resolver.schema(
            statement.schema or (self.session.catalog, ".".join(self.session.schema)), self.context
        )
        if schema.namespace == (INFORMATION_SCHEMA,):
            names = [] if statement.views_only else sorted(SCHEMAS)
        else:
            kinds = (ObjectType.VIEW,) if statement.views_only else (ObjectType.TABLE, ObjectType.VIEW)
            try:
                names = [name.name for name, _ in self.visible.objects(mount, schema.namespace, kinds=kinds)]
            except ObjectNotFoundError:
                known = [".".join(namespace) for namespace in self.visible.schemas(mount)]
                written = ".".join(schema.namespace)
                raise schema_not_found(schema, hint=did_you_mean(written, known)) from None
        if statement.schema is None:
            names = sorted({*names, *(view.name for view in self.session.views())})
        matches = like_filter(statement.like)
        column = "view" if statement.views_only else "table"
        return text_table((column,), [(name,) for name in names if matches(name)])

    def find_columns(self, name: Name) -> tuple[Column, ...]:
        """Return the visible columns of a table, a view, a session view or a system table."""
        if len(name) == 1 and (view := self.session.find_view(name[0])) is not None:
            return tuple(Column(name=column, type=type_text) for column, type_text in view.columns)
        resolved = self.resolver.object(name, self.context)
        system = self.system_columns(resolved)
        if system is not None:
            return system
        loaded = self.load(resolved, name)
        columns = self.visible_columns(resolved.name, loaded)
        if not columns and isinstance(loaded, ViewMetadata):
            raise unreadable_view(str(resolved.name))
        return columns

    def load(self, resolved: ResolvedName, written: Name) -> TableMetadata | ViewMetadata:
        """Load a table or view, or raise the one not-found answer with what the user may have meant."""
        loaded = self.visible.find(resolved.mount, resolved.name)
        if loaded is None:
            raise table_not_found(written, hint=self.suggest(resolved))
        return loaded

    def suggest(self, resolved: ResolvedName) -> str | None:
        """Suggest visible names close to one that was not found."""
        if not self.visible.shows(resolved.mount):
            return self.resolver.suggest(resolved.mount.name)
        # Whoever may not list has no hint, and the same error as everybody else.
        with suppress(SqeError):
            return self._suggest(resolved)
        return None

    def _suggest(self, resolved: ResolvedName) -> str | None:
        try:
            listed = self.visible.objects(resolved.mount, resolved.name.namespace)
        except ObjectNotFoundError:
            known = [".".join(namespace) for namespace in self.visible.schemas(resolved.mount)]
            return did_you_mean(".".join(resolved.name.namespace), known)
        names = [name.name for name, _ in listed] + [view.name for view in self.session.views()]
        return did_you_mean(resolved.name.name, names)

    def _columns(self, statement: ShowColumns) -> pa.Table:
        matches = like_filter(statement.like)
        return text_table(
            ("column_name", "data_type", "is_nullable"),
            [
                (column.name, display_type(column.type), "YES" if column.nullable else "NO")
                for column in self.find_columns(statement.name)
                if matches(column.name)
            ],
        )

    def _functions(self, statement: ShowFunctions) -> pa.Table:
        matches = like_filter(statement.like)
        return text_table(("function", "kind", "description"), [row for row in self.functions() if matches(row[0])])

    def _create(self, statement: ShowCreate) -> pa.Table:
        if statement.object == "schema":
            mount, schema = self.resolver.schema(statement.name, self.context)
            if not self.visible.has_schema(mount, schema.namespace):
                raise schema_not_found(schema)
            return text_table(("create_schema",), [(f"CREATE SCHEMA {schema}",)])
        resolved = self.resolver.object(statement.name, self.context)
        loaded = self.load(resolved, statement.name)
        wanted = ViewMetadata if statement.object == "view" else TableMetadata
        if not isinstance(loaded, wanted):
            other = "view" if statement.object == "table" else "table"
            raise UserError(
                f"{resolved.name} is a {other}", code=ErrorCode.SEMANTIC_ERROR, hint=f"use SHOW CREATE {other.upper()}"
            )
        return text_table((f"create_{statement.object}",), [(self._ddl(resolved.name, loaded),)])

    def _ddl(self, name: ObjectName, loaded: TableMetadata | ViewMetadata) -> str:
        if isinstance(loaded, TableMetadata):
            return _table_ddl(name, loaded, self.visible_columns(name, loaded))
        text = self.visible_text(name, loaded)
        if text is None:
            raise unreadable_view(str(name))
        comment = f"\nCOMMENT {_literal(loaded.comment)}" if loaded.comment else ""
        security = "\nSECURITY DEFINER" if loaded.properties.get(VIEW_SECURITY_PROPERTY) == "definer" else ""
        return f"CREATE VIEW {name}{comment}{security} AS\n{text}"


def _literal(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _column_ddl(column: Column) -> str:
    parts = [quote_part(column.name), display_type(column.type)]
    if not column.nullable:
        parts.append("NOT NULL")
    if column.default is not None:
        parts.append(f"DEFAULT {column.default}")
    if column.comment:
        parts.append(f"COMMENT {_literal(column.comment)}")
    return "  " + " ".join(parts)


def _partition_ddl(transform: str, source: str) -> str:
    name, _, argument = transform.rstrip("]").partition("[")
    if name == "identity":
        return quote_part(source)
    return f"{name}({argument}, {quote_part(source)})" if argument else f"{name}({quote_part(source)})"


def _table_ddl(name: ObjectName, table: TableMetadata, columns: tuple[Column, ...]) -> str:
    lines = [f"CREATE TABLE {name} ("]
    lines.append(",\n".join(_column_ddl(column) for column in columns))
    lines.append(")")
    if table.comment:
        lines.append(f"COMMENT {_literal(table.comment)}")
    visible = {column.name for column in columns}
    fields = [field for field in table.partitioning if field.source.split(".")[0] in visible]
    if fields:
        lines.append(
            "PARTITIONED BY (" + ", ".join(_partition_ddl(field.transform, field.source) for field in fields) + ")"
        )
    # Properties name columns in their keys and values: a table that is seen in part shows none (STMT-9).
    complete = len(columns) == len(table.columns)
    properties = {"format-version": str(table.format_version), **(table.properties if complete else {})}
    shown = {key: value for key, value in properties.items() if key not in _STATE_PROPERTIES and key != "comment"}
    lines.append(
        "TBLPROPERTIES (\n"
        + ",\n".join(f"  {_literal(key)} = {_literal(value)}" for key, value in sorted(shown.items()))
        + "\n)"
    )
    return "\n".join(lines)
