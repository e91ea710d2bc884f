"""Statements that change catalogs and that SQE carries out itself, through the catalog's own interface."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pyarrow as pa

from sqe_core.catalog.registry import Mount
from sqe_core.catalog.visible import INFORMATION_SCHEMA, VisibleCatalogs
from sqe_core.engine.port import EngineCatalog, EngineExecutionError
from sqe_core.policy.authorizer import AccessRequest, Authorizer, Circumstances
from sqe_core.query.answers.metadata import MetadataAnswers
from sqe_core.query.judge.judge import VIEW_COLUMNS_PROPERTY, VIEW_SECURITY_PROPERTY, Judgement
from sqe_core.query.judge.names import (
    NameContext,
    NameResolver,
    ResolvedName,
    restricted_error,
    schema_not_found,
    table_not_found,
)
from sqe_core.query.judge.table_clauses import check_table_properties
from sqe_core.query.statements.created_meanwhile import CreatedMeanwhileError, created_by_catalog
from sqe_core.query.statements.lifecycle import ObjectLives, uuid_of
from sqe_core.session.session import SessionView
from sqe_core.session.statement_session import StatementSession
from sqe_core.spi.catalog import Column, TableMetadata, ViewMetadata
from sqe_core.spi.errors import AccessDeniedError, ErrorCode, NotSupportedError, ObjectNotFoundError, UserError
from sqe_core.spi.names import NamespaceName, ObjectName
from sqe_core.spi.policy import Action
from sqe_core.sql.statement import (
    AddColumnWithDefault,
    CommentOn,
    CreateSchema,
    CreateTableLike,
    CreateView,
    DropSchema,
    DropTable,
    DropView,
    EngineStatement,
    Name,
    RenameTable,
    RenameView,
    SetViewProperties,
    Statement,
)

# Of schemas and views.
_PROPERTIES = ("comment",)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Held:
    """What a schema holds for its catalog, whoever may see it."""

    schema: NamespaceName
    tables: tuple[str, ...]
    views: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogChanges:
    """Carries out SQE's own DDL for one session."""

    session: StatementSession
    authorizer: Authorizer
    circumstances: Circumstances
    resolver: NameResolver
    visible: VisibleCatalogs
    answers: MetadataAnswers
    judge: Callable[[EngineStatement], Judgement]
    lives: ObjectLives

    @property
    def _context(self) -> NameContext:
        return NameContext(catalog=self.session.catalog, schema=self.session.schema)

    def apply(self, statement: Statement) -> bool:
        """Carry out a statement; False when it is none of ours."""
        match statement:
            case CreateSchema():
                self._create_schema(statement)
            case DropSchema():
                self._drop_schema(statement)
            case DropTable():
                self._drop_table(statement)
            case RenameTable():
                self._rename(statement, TableMetadata)
            case RenameView():
                self._rename(statement, ViewMetadata)
            case CreateTableLike():
                self._create_table_like(statement)
            case AddColumnWithDefault():
                self._add_column(statement)
            case CreateView(temporary=True):
                self._create_session_view(statement)
            case CreateView():
                self._create_view(statement)
            case DropView():
                self._drop_view(statement)
            case SetViewProperties():
                self._set_view_properties(statement)
            case CommentOn():
                self._comment(statement)
            case _:
                return False
        return True

    def _require(self, name: ObjectName | NamespaceName, action: Action) -> None:
        self.authorizer.require(self.session.identity, name, action, self.circumstances)

    # Schemas

    def _schema(self, name: Name) -> tuple[Mount, NamespaceName]:
        mount, schema = self.resolver.schema(name, self._context)
        self._writable(mount)
        if schema.namespace[0] == INFORMATION_SCHEMA:
            raise NotSupportedError(f"Schema {INFORMATION_SCHEMA} belongs to SQE and cannot be changed")
        return mount, schema

    def _writable(self, mount: Mount) -> EngineCatalog:
        if mount.backend.read_only:
            raise NotSupportedError(f"Catalog {mount.name} is read-only")
        return self.session.metadata(mount)

    def _create_schema(self, statement: CreateSchema) -> None:
        mount, schema = self._schema(statement.name)
        self._require(schema, Action.CREATE_SCHEMA)
        if statement.location is not None:
            # STMT-3: a location of one's own choice is for admins; nobody is one before logins exist.
            raise NotSupportedError("CREATE SCHEMA with a location is not supported", hint="leave the location out")
        _check_properties("Schema", statement.properties)
        exists = UserError(f"Schema {schema} already exists", code=ErrorCode.DUPLICATE_TABLE, hint="add IF NOT EXISTS")
        if self.visible.has_schema(mount, schema.namespace):
            if statement.if_not_exists:
                return
            raise exists
        try:
            self.session.metadata(mount).create_namespace(schema.namespace, statement.properties)
        except (EngineExecutionError, UserError) as error:
            # A catalog in a database knows the error of the database only.
            if not self.visible.has_schema(mount, schema.namespace):
                raise
            raise CreatedMeanwhileError(exists, may_exist=statement.if_not_exists) from error
        self.lives.created(schema)

    def _drop_schema(self, statement: DropSchema) -> None:
        mount, schema = self._schema(statement.name)
        if not self.visible.has_schema(mount, schema.namespace):
            if statement.if_exists:
                return
            raise schema_not_found(schema)
        held = self._held(mount, schema.namespace)
        if not statement.cascade and (len(held) > 1 or held[0].tables or held[0].views):
            raise UserError(f"Schema {schema} is not empty", hint="add CASCADE")
        # Everything is decided before anything is dropped (DML-4).
        for inner in held:
            self._require(inner.schema, Action.DROP_SCHEMA)
        if not all(self._may_drop_all(mount, inner) for inner in held):
            raise AccessDeniedError(f"You may not drop everything that schema {schema} holds")
        metadata = self.session.metadata(mount)
        for inner in reversed(held):
            namespace = inner.schema.namespace
            for name in inner.views:
                metadata.drop_view(namespace, name)
            for name in inner.tables:
                metadata.drop_table(namespace, name, purge=False)
            metadata.drop_namespace(namespace)
            for name in (*inner.views, *inner.tables):
                self.lives.dropped(ObjectName(catalog=mount.name, namespace=namespace, name=name))
            self.lives.dropped(inner.schema)

    def _held(self, mount: Mount, namespace: tuple[str, ...]) -> list[_Held]:
        """Return a schema and those inside of it, with all that they hold, hidden or not; parents come first."""
        metadata = self.session.metadata(mount)
        found = [
            _Held(
                schema=NamespaceName(catalog=mount.name, namespace=namespace),
                tables=tuple(metadata.list_tables(namespace)),
                views=tuple(metadata.list_views(namespace)),
            )
        ]
        for child in metadata.list_namespaces(namespace):
            found += self._held(mount, child)
        return found

    def _may_drop_all(self, mount: Mount, held: _Held) -> bool:
        requests = []
        for names, action in ((held.tables, Action.DROP), (held.views, Action.DROP_VIEW)):
            for name in names:
                full_name = ObjectName(catalog=mount.name, namespace=held.schema.namespace, name=name)
                loaded = self.visible.find(mount, full_name)
                if loaded is None:
                    return False
                requests += [
                    AccessRequest(name=full_name, action=each, loaded=loaded) for each in (action, Action.SELECT)
                ]
        decisions = self.authorizer.decide(self.session.identity, requests, self.circumstances)
        return all(
            not access.restricted and not (access.denied and action is not Action.SELECT)
            for (_, action), access in decisions.items()
        )

    # Tables

    def _existing(
        self,
        name: Name,
        kind: type[TableMetadata] | type[ViewMetadata],
        *needed: Action,
        if_exists: bool = False,
    ) -> tuple[ResolvedName, TableMetadata | ViewMetadata] | None:
        """Resolve, load and authorise an object that a statement changes or copies as a whole."""
        resolved = self.resolver.object(name, self._context)
        loaded = None if resolved.metadata_table else self.visible.find(resolved.mount, resolved.name)
        if loaded is None or not self._may_change(resolved.name, loaded, needed):
            if if_exists:
                return None
            raise table_not_found(
                name,
                hint=self.answers.suggest(resolved),
                code=ErrorCode.VIEW_NOT_FOUND if kind is ViewMetadata else ErrorCode.TABLE_NOT_FOUND,
            )
        if not isinstance(loaded, kind):
            is_view = isinstance(loaded, ViewMetadata)
            raise UserError(
                f"{resolved.name} is a {'view' if is_view else 'table'}",
                hint=f"use the statement for {'views' if is_view else 'tables'}, such as DROP "
                f"{'VIEW' if is_view else 'TABLE'}",
            )
        self._writable(resolved.mount)
        return resolved, loaded

    def _may_change(self, name: ObjectName, loaded: TableMetadata | ViewMetadata, needed: tuple[Action, ...]) -> bool:
        """Whether all that is needed is allowed; what the user sees in part only is refused (DML-4)."""
        requests = [
            AccessRequest(name=name, action=action, loaded=loaded) for action in dict.fromkeys((*needed, Action.SELECT))
        ]
        decisions = self.authorizer.decide(self.session.identity, requests, self.circumstances)
        if any(decisions[name, action].denied for action in needed):
            self.circumstances.refused(name)
            return False
        if any(access.restricted for access in decisions.values()):
            raise restricted_error(name)
        return True

    def _new(self, name: Name, action: Action = Action.CREATE) -> ResolvedName:
        """Resolve and authorise the name of an object to create; its schema must exist."""
        resolved = self.resolver.object(name, self._context)
        if resolved.metadata_table:
            raise UserError(f"{name[-1]} cannot be the name of a table: $ introduces a metadata table")
        if not self.visible.shows(resolved.mount):
            raise table_not_found(name, hint=self.answers.suggest(resolved))
        self._writable(resolved.mount)
        if resolved.name.namespace[0] == INFORMATION_SCHEMA:
            raise NotSupportedError(f"Schema {INFORMATION_SCHEMA} belongs to SQE and cannot be changed")
        if not self.visible.has_schema(resolved.mount, resolved.name.namespace):
            raise schema_not_found(resolved.name.schema, hint=f"create it first: CREATE SCHEMA {resolved.name.schema}")
        self._require(resolved.name, action)
        return resolved

    def _drop_table(self, statement: DropTable) -> None:
        found = self._existing(statement.name, TableMetadata, Action.DROP, if_exists=statement.if_exists)
        if found is None:
            return
        resolved, loaded = found
        metadata = self.session.metadata(resolved.mount)
        # Whether the files go is the engine's default for a managed table: they do, as in Trino.
        metadata.drop_table(resolved.name.namespace, resolved.name.name, purge=True)
        if name_still_there(metadata, resolved.name):
            # Some catalogs answer a forbidden drop with 404, which reads as success (testbed §14).
            raise table_not_found(statement.name)
        self.lives.dropped(resolved.name, loaded.uuid)

    def _rename(self, statement: RenameTable | RenameView, kind: type[TableMetadata] | type[ViewMetadata]) -> None:
        # A new name may have other policies: it takes somebody who may read the object.
        found = self._existing(statement.name, kind, Action.ALTER, Action.SELECT, if_exists=statement.if_exists)
        if found is None:
            return
        source, _ = found
        here = NameContext(catalog=source.name.catalog, schema=source.name.namespace)
        target = self.resolver.object(statement.target, here)
        if target.mount is not source.mount:
            raise NotSupportedError("A table cannot be renamed into another catalog", hint="use CREATE TABLE … AS")
        target = self._new((target.name.catalog, ".".join(target.name.namespace), statement.target[-1]))
        if self.visible.find(target.mount, target.name) is not None:
            raise UserError(f"{target.name} already exists", code=ErrorCode.DUPLICATE_TABLE)
        metadata = self.session.metadata(source.mount)
        rename = metadata.rename_table if kind is TableMetadata else metadata.rename_view
        rename((source.name.namespace, source.name.name), (target.name.namespace, target.name.name))
        self.lives.renamed(source.name, target.name)

    def _create_table_like(self, statement: CreateTableLike) -> None:
        check_table_properties(statement.properties)
        resolved = self._new(statement.name)
        if self.visible.find(resolved.mount, resolved.name) is not None:
            if statement.if_not_exists:
                return
            raise UserError(f"Table {resolved.name} already exists", code=ErrorCode.DUPLICATE_TABLE)
        found = self._existing(statement.source, TableMetadata, Action.SELECT)
        assert found is not None
        source, _ = found
        if source.mount is not resolved.mount:
            raise NotSupportedError("LIKE works within one catalog", hint="use CREATE TABLE … AS SELECT … WITH NO DATA")
        with created_by_catalog("table", may_exist=statement.if_not_exists, or_nothing=statement.if_not_exists):
            self.session.metadata(resolved.mount).create_table_like(
                resolved.name.namespace,
                resolved.name.name,
                (source.name.namespace, source.name.name),
                statement.properties,
            )
        if self.lives.watched:
            self.lives.created(resolved.name, uuid_of(self.session.metadata(resolved.mount), resolved.name))

    def _add_column(self, statement: AddColumnWithDefault) -> None:
        found = self._existing(statement.name, TableMetadata, Action.ALTER)
        assert found is not None
        resolved, loaded = found
        if any(column.name.lower() == statement.column.lower() for column in loaded.columns):
            if statement.if_not_exists:
                return
            raise UserError(
                f"Column {statement.column} of {resolved.name} exists already", code=ErrorCode.DUPLICATE_COLUMN
            )
        self.session.metadata(resolved.mount).add_column(
            resolved.name.namespace,
            resolved.name.name,
            statement.column,
            statement.type,
            default=statement.default,
            comment=statement.comment,
        )

    # Views

    def _view_columns(self, statement: CreateView, schema: pa.Schema) -> tuple[tuple[str, str], ...]:
        """Return (name in the query, visible name) of each column; the visible ones must be unique."""
        names = [name for name, _ in statement.columns] or schema.names
        if len(names) != len(schema.names):
            raise UserError(f"The view names {len(names)} columns, its query returns {len(schema.names)}")
        for listed in (names, schema.names):
            folded = [name.lower() for name in listed]
            twice = sorted({name for name in listed if folded.count(name.lower()) > 1})
            if twice:
                raise UserError(
                    f"Column {twice[0]} occurs twice in the view",
                    code=ErrorCode.DUPLICATE_COLUMN,
                    hint="give the columns of the query different names with AS",
                )
        return tuple(zip(schema.names, names, strict=True))

    def _create_session_view(self, statement: CreateView) -> None:
        if len(statement.name) != 1:
            raise UserError("A temporary view has a name of one part: it belongs to the session, not to a schema")
        name = statement.name[0]
        if statement.if_not_exists and self.session.find_view(name) is not None:
            return
        if name.lower().startswith(("_sqe_", "__sqe")) or "$" in name:
            raise UserError(f"{name} cannot be the name of a view")
        if statement.query.parameters:
            raise UserError("A view cannot keep parameters", hint="write the values into its text")
        judgement = self.judge(statement.query)
        columns = self._view_columns(statement, judgement.plan.schema)
        types = dict(zip(judgement.plan.schema.names, judgement.plan.column_types, strict=True))
        self.session.put_view(
            SessionView(
                name=name,
                spark_sql=statement.query.spark_sql,
                text=statement.query.text,
                columns=tuple((visible, types[inner]) for inner, visible in columns),
                renames=columns,
                catalog=self.session.catalog,
                schema=self.session.schema,
            ),
            replace=statement.replace,
        )

    def _create_view(self, statement: CreateView) -> None:
        resolved = self._new(statement.name, Action.CREATE_VIEW)
        if not resolved.mount.backend.supports_views:
            raise NotSupportedError(f"Catalog {resolved.mount.name} has no views")
        existing = self.visible.find(resolved.mount, resolved.name)
        if existing is not None:
            if statement.if_not_exists:
                return
            if not statement.replace or isinstance(existing, TableMetadata):
                raise UserError(
                    f"{resolved.name} already exists",
                    code=ErrorCode.DUPLICATE_TABLE,
                    hint=None if isinstance(existing, TableMetadata) else "use CREATE OR REPLACE VIEW",
                )
            if not self._may_change(resolved.name, existing, (Action.DROP_VIEW,)):
                raise AccessDeniedError(f"You may not replace {resolved.name}")
        if statement.query.parameters:
            raise UserError("A view cannot keep parameters", hint="write the values into its text")
        judgement = self.judge(statement.query)
        if judgement.uses_session_views:
            raise UserError("A view cannot read a temporary view, which ends with the session")
        if any(entry.resolved is not None and entry.resolved.name == resolved.name for entry in judgement.bound):
            raise UserError(f"View {resolved.name} would read itself")
        columns = self._view_columns(statement, judgement.plan.schema)
        comments = dict(statement.columns)
        described = tuple(
            Column(name=visible, type=type_text, nullable=field.nullable, comment=comments.get(visible))
            for field, type_text, (_, visible) in zip(
                judgement.plan.schema, judgement.plan.column_types, columns, strict=True
            )
        )
        properties = {
            VIEW_COLUMNS_PROPERTY: "\n".join(inner for inner, _ in columns),
            "sqe.view-text": statement.query.text,
            # Kept, since dbt writes DEFINER into every view; whoever reads it reads with their own rights (VIEW-2).
            VIEW_SECURITY_PROPERTY: statement.security,
            "sqe.view-definer": self.session.identity.username,
        }
        if statement.comment is not None:
            properties["comment"] = statement.comment
        may_exist = statement.replace or statement.if_not_exists
        with created_by_catalog(
            "view", may_exist=may_exist, or_nothing=statement.if_not_exists, replaces=existing is not None
        ):
            self.session.metadata(resolved.mount).create_view(
                resolved.name.namespace,
                resolved.name.name,
                columns=described,
                representations={"spark": statement.query.spark_sql},
                default_catalog=self.session.catalog,
                default_namespace=self.session.schema,
                properties=properties,
                # One that the user may not see is not replaced: the catalog refuses a name that is taken.
                replace=existing is not None,
            )
        if existing is None:
            self.lives.created(resolved.name)

    def _drop_view(self, statement: DropView) -> None:
        if len(statement.name) == 1 and self.session.drop_view(statement.name[0]):
            return
        found = self._existing(statement.name, ViewMetadata, Action.DROP_VIEW, if_exists=statement.if_exists)
        if found is not None:
            resolved, loaded = found
            self.session.metadata(resolved.mount).drop_view(resolved.name.namespace, resolved.name.name)
            self.lives.dropped(resolved.name, loaded.uuid)

    def _set_view_properties(self, statement: SetViewProperties) -> None:
        _check_properties("View", statement.properties)
        self._change_view(statement.name, statement.properties)

    def _change_view(self, name: Name, properties: Mapping[str, str | None]) -> None:
        found = self._existing(name, ViewMetadata, Action.ALTER_VIEW)
        assert found is not None
        resolved, _ = found
        self.session.metadata(resolved.mount).set_view_properties(
            resolved.name.namespace, resolved.name.name, properties
        )

    def _comment(self, statement: CommentOn) -> None:
        if statement.object == "view":
            self._change_view(statement.name, {"comment": statement.comment})
            return
        mount, schema = self._schema(statement.name)
        self._require(schema, Action.ALTER_SCHEMA)
        self.session.metadata(mount).set_namespace_properties(schema.namespace, {"comment": statement.comment})


def _check_properties(what: str, properties: Mapping[str, str | None]) -> None:
    """Catalogs give other keys a meaning: where files lie, who owns it (STMT-7)."""
    for key in properties:
        if key not in _PROPERTIES:
            raise NotSupportedError(
                f"{what} property {json.dumps(key)} cannot be set", hint="known: " + ", ".join(_PROPERTIES)
            )


def name_still_there(metadata: EngineCatalog, name: ObjectName) -> bool:
    """Whether a table is still listed after it was dropped."""
    try:
        return name.name in metadata.list_tables(name.namespace)
    except ObjectNotFoundError:
        return False
