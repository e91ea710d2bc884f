"""What a statement is, once recognised: the contract between `sql`, which reads text, and `query`, which answers.

A statement is either SQE's own (answered from metadata, without the engine's SQL) or an `EngineStatement`, whose
`spark_sql` is exactly what Spark parses and what is then judged. Names are tuples of 1 to 3 parts, already folded:
unquoted parts are lower case, quoted ones as written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, Protocol, dataclass_transform

from sqe_core.spi.errors import Position
from sqe_core.spi.statement_kinds import StatementKind as StatementKind

if TYPE_CHECKING:
    from sqe_core.sql.simple_query import SimpleQuery

Name = tuple[str, ...]

SESSION_FUNCTIONS = (
    "current_user",
    "session_user",
    "current_catalog",
    "current_schema",
    "current_database",
    "current_role",
    "current_timezone",
    "version",
)
"""Functions that are literals of the server's session (FUNC-2). `spark_sql` holds each as the marker `:_sqe_<name>`,
which `query` binds beside the user's parameters; they are not listed in `EngineStatement.parameters`."""

POLICY_FUNCTIONS = frozenset(
    {"current_available_roles", "current_user_groups", "current_user_attr", "is_role_in_session", "is_group_member"}
)
"""Functions of the expressions of policies alone: values of who sent the statement."""


def session_marker(function: str) -> str:
    """Return the name of the marker that stands for a session function."""
    return f"_sqe_{function}"


def mapping_marker(query: int, place: int) -> str:
    """Return the name of the marker that stands for a value of a query in a row filter."""
    return f"_sqe_mapping_{query}_{place}"


_EMPTY: Mapping[str, str] = MappingProxyType({})


class PositionMap(Protocol):
    """Finds a place of the translated text in the user's own text (ERR-3)."""

    def locate(self, start: int | None, fragment: str | None) -> Position | None:
        """Return where the user wrote what stands at `start` (code points) or reads `fragment`; None if unknown."""


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
@dataclass(frozen=True, kw_only=True)
class Statement:
    """One recognised statement. Each class is a frozen dataclass, and says of which kind its statements are."""

    kind: StatementKind = StatementKind.UTILITY

    def __init_subclass__(cls, *, kind: StatementKind = StatementKind.UTILITY) -> None:
        cls.__annotations__["kind"] = "StatementKind"
        setattr(cls, "kind", kind)  # noqa: B010 - frozen are its instances
        dataclass(frozen=True, kw_only=True)(cls)


class EngineStatement(Statement):
    """A statement that Spark parses, is judged as that plan, rewritten, verified and executed."""

    kind: StatementKind
    text: str
    """The user's, without the final semicolon."""
    spark_sql: str
    positions: PositionMap
    parameters: tuple[str, ...] = ()
    """Names of the `:name` markers in `spark_sql`, in the order of the user's `?`, or the user's own names."""
    positional: bool = False
    """Whether the user wrote `?` markers; then values are given as a sequence."""
    column_names: tuple[str, ...] | None = None
    """Visible names of the result columns when they differ from Spark's, else None."""
    aliased: frozenset[int] = frozenset()
    """The places of columns that the user gave a name with AS; of a query of Trino's clients, if no * stands in it."""
    overwrite_dynamic: bool | None = None
    """For INSERT OVERWRITE: None lets `query` choose by the target's partitioning."""
    if_exists: bool = False
    """ALTER TABLE IF EXISTS and the like, which Spark cannot say: a missing target is no error."""
    simple: SimpleQuery | None = None
    """The same, where it is simple enough to be answered without the engine."""
    narrowed: tuple[SimpleQuery, ...] = ()
    """What it asks of each table that it names with its schema, as far as that can be said of the table alone."""
    exact_writes: bool = False
    """Whether values that would lose digits in their columns are refused; Spark's own dialect cuts them."""


class ShowCatalogs(Statement, kind=StatementKind.SHOW):
    like: str | None = None


class ShowSchemas(Statement, kind=StatementKind.SHOW):
    catalog: str | None = None
    like: str | None = None


class ShowTables(Statement, kind=StatementKind.SHOW):
    """SHOW TABLES lists tables and views, SHOW VIEWS (`views_only`) views."""

    schema: Name | None = None
    like: str | None = None
    views_only: bool = False


class ShowColumns(Statement, kind=StatementKind.SHOW):
    """SHOW COLUMNS FROM t and DESCRIBE t, the same rows."""

    name: Name
    like: str | None = None


class DescribeQuery(Statement, kind=StatementKind.DESCRIBE):
    """DESCRIBE <query>: the columns of its result."""

    query: EngineStatement


class ShowCreate(Statement, kind=StatementKind.SHOW):
    object: Literal["table", "view", "schema"]
    name: Name


class ShowFunctions(Statement, kind=StatementKind.SHOW):
    like: str | None = None


class ShowSession(Statement, kind=StatementKind.SHOW):
    like: str | None = None


class ShowStats(Statement, kind=StatementKind.SHOW):
    name: Name


class Explain(Statement, kind=StatementKind.EXPLAIN):
    mode: Literal["plan", "analyze", "full"]
    inner: Statement


class ExplainPlan(Statement, kind=StatementKind.EXPLAIN):
    """EXPLAIN in Trino's words; IO is what is read and written."""

    inner: EngineStatement
    type: Literal["logical", "distributed", "io"]
    format: Literal["text", "json", "graphviz"]


class ExplainValidate(Statement, kind=StatementKind.EXPLAIN):
    """EXPLAIN (TYPE VALIDATE): whether it would be judged well."""

    inner: EngineStatement


class Use(Statement, kind=StatementKind.USE):
    """USE catalog.schema, USE schema, or USE catalog; `query` decides what one part means."""

    name: Name


class SetSession(Statement, kind=StatementKind.SESSION):
    """SET SESSION name = literal. `value` is the Python value of the literal."""

    name: str
    value: Any


class ResetSession(Statement, kind=StatementKind.SESSION):
    """RESET SESSION name, or all of them."""

    name: str | None = None


class SetTimeZone(Statement, kind=StatementKind.SESSION):
    """SET TIME ZONE; None is LOCAL, the client's own."""

    zone: str | None


class SetPath(Statement, kind=StatementKind.SESSION):
    """SET PATH: where functions are looked for, which are all built in."""

    path: str


class TransactionControl(Statement, kind=StatementKind.TRANSACTION):
    """BEGIN, START TRANSACTION, COMMIT, ROLLBACK; for clients that keep no transaction they do nothing."""

    what: Literal["start", "commit", "rollback"]
    read_only: bool = False
    isolation: str | None = None


class NoOperation(Statement, kind=StatementKind.UTILITY):
    """Accepted and without effect: DROP MATERIALIZED VIEW IF EXISTS. ANALYZE names its table."""

    must_exist: Name | None = None


class CreateView(Statement, kind=StatementKind.CREATE_VIEW):
    name: Name
    query: EngineStatement
    columns: tuple[tuple[str, str | None], ...] = ()  # (name, comment)
    comment: str | None = None
    security: Literal["definer", "invoker"] = "invoker"
    replace: bool = False
    if_not_exists: bool = False
    temporary: bool = False


class DropView(Statement, kind=StatementKind.DROP_VIEW):
    name: Name
    if_exists: bool = False


class RenameTable(Statement, kind=StatementKind.ALTER_TABLE):
    """ALTER TABLE t RENAME TO …: the target has 1 to 3 parts and stays in the same catalog."""

    name: Name
    target: Name
    if_exists: bool = False


class RenameView(Statement, kind=StatementKind.ALTER_VIEW):
    name: Name
    target: Name
    if_exists: bool = False


class SetViewProperties(Statement, kind=StatementKind.ALTER_VIEW):
    name: Name
    properties: Mapping[str, str | None]


class CreateSchema(Statement, kind=StatementKind.CREATE_SCHEMA):
    name: Name
    if_not_exists: bool = False
    location: str | None = None
    properties: Mapping[str, str] = field(default_factory=lambda: _EMPTY)


class DropSchema(Statement, kind=StatementKind.DROP_SCHEMA):
    name: Name
    if_exists: bool = False
    cascade: bool = False


class DropTable(Statement, kind=StatementKind.DROP_TABLE):
    name: Name
    if_exists: bool = False
    purge: bool = False


class CreateTableLike(Statement, kind=StatementKind.CREATE_TABLE):
    name: Name
    source: Name
    if_not_exists: bool = False
    properties: Mapping[str, str] = field(default_factory=lambda: _EMPTY)


class SetTableLayout(Statement, kind=StatementKind.ALTER_TABLE):
    """ALTER TABLE t SET PROPERTIES partitioning = ARRAY[…], sorted_by = ARRAY[…]; None leaves it as it is.

    A partition field is a transform, a column and a number; of the order each entry is a column, `asc` or `desc`, and
    `first` or `last` for its NULLs.
    """

    name: Name
    partitioning: tuple[tuple[str, str, int | None], ...] | None = None
    sort_order: tuple[tuple[str, str, str], ...] | None = None
    if_exists: bool = False


class MaintainTable(Statement, kind=StatementKind.CALL):
    """ALTER TABLE t EXECUTE action(name => value, …)."""

    name: Name
    action: str
    arguments: Mapping[str, Any] = field(default_factory=lambda: _EMPTY)
    if_exists: bool = False


class AddColumnWithDefault(Statement, kind=StatementKind.ALTER_TABLE):
    """ALTER TABLE t ADD COLUMN c type DEFAULT literal. `type` is in Spark's notation."""

    name: Name
    column: str
    type: str
    default: Any
    comment: str | None = None
    if_not_exists: bool = False


class CommentOn(Statement, kind=StatementKind.COMMENT):
    """COMMENT ON VIEW and COMMENT ON SCHEMA; tables and columns go to Spark. None removes the comment."""

    object: Literal["view", "schema"]
    name: Name
    comment: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptStatement:
    """One statement of a script, with where it starts in it."""

    text: str
    offset: int
    terminated: bool  # ended by a semicolon


@dataclass(frozen=True, slots=True, kw_only=True)
class TextLimits:
    """Bounds checked before any parser (LIM-3, LIM-4)."""

    max_bytes: int = 1_048_576
    max_depth: int = 256
    max_tokens: int = 200_000


class SqlReader(Protocol):
    """The whole of `sql`, as `query` and `cli` see it."""

    def read(self, sql: str, *, dialect: str, limits: TextLimits) -> Statement:
        """Recognise and translate one statement; raise UserError with a position in `sql`."""

    def translate_view(self, representations: Mapping[str, str]) -> str:
        """Return the Spark SQL of a stored view, from its `spark` or else its `trino` text (VIEW-4)."""

    def translate_expression(self, text: str, *, dialect: str) -> str:
        """Return the Spark SQL of one expression of a policy; session functions in it are markers, as in statements."""

    def translate_filter(self, text: str, *, dialect: str, sizes: Sequence[int] | None) -> tuple[str, Sequence[str]]:
        """Return the Spark SQL of a row filter that may look into tables, and that of each of its queries.

        The values of the queries are markers (`mapping_marker`), as many for each as `sizes` says.
        """
        ...

    def canonical(self, text: str, *, dialect: str) -> str:
        """Return an expression of a policy without comments and layout, as it is stored (POL-15)."""
        ...

    def split(self, script: str) -> Sequence[ScriptStatement]:
        """Split a script at its semicolons; strings, comments and quoted names are respected."""
