"""A user with restrictions against everything that changes, describes or lists: what is kept from him stays so."""

from __future__ import annotations

from typing import Any

import pytest
from governed import Govern, Governed, allow, own

from sqe_core.bootstrap import EMBEDDED_CATALOG, EmbeddedSqe
from sqe_core.catalog.backends import SqliteBackend
from sqe_core.catalog.registry import Mount
from sqe_core.cli.embedded_backend import visible_columns, visible_names
from sqe_core.spi.errors import ErrorCode, SqeError
from sqe_core.spi.names import ObjectName
from sqe_core.spi.policy import Access, Action, Decision, PolicyEnforcer, PolicyRequest, PolicyResponse

HIDDEN = "salary_canary"
VALUE = "424242"
DENIED = "vault_canary"
FOREIGN = "other_canary"
CANARIES = frozenset({HIDDEN, VALUE, DENIED, FOREIGN})


class HidingEnforcer(PolicyEnforcer):
    """Hides a column of `pay`, and denies what is called `vault…`, with all that is in a catalog."""

    def decide(self, request: PolicyRequest) -> PolicyResponse:
        return PolicyResponse(decisions=tuple(self._decision(access.resource.name) for access in request.accesses))

    @staticmethod
    def _decision(name: Any) -> Decision:
        table = name.name if isinstance(name, ObjectName) else ""
        if table.startswith("vault") or name.catalog == FOREIGN:
            return Decision.deny("a secret")
        return allow(hidden=frozenset({HIDDEN}) if table == "pay" else frozenset())


@pytest.fixture(scope="module")
def analyst(sqe: EmbeddedSqe, govern: Govern, tmp_path_factory: pytest.TempPathFactory) -> Governed:
    for sql in (
        f"CREATE TABLE pay (id integer, {HIDDEN} integer, name varchar) WITH (partitioning = ARRAY['{HIDDEN}'])",
        f"INSERT INTO pay VALUES (1, {VALUE}, 'ann'), (2, 1, 'bob')",
        f"CREATE TABLE {DENIED} (a integer)",
        f"INSERT INTO {DENIED} VALUES ({VALUE})",
        "CREATE TABLE free (a integer)",
        "INSERT INTO free VALUES (7)",
    ):
        sqe.execute(sql).close()
    foreign = Mount(name=FOREIGN, backend=SqliteBackend.at(tmp_path_factory.mktemp("foreign")))
    return govern(HidingEnforcer(), canaries=CANARIES, mounts=[foreign])


# Names


KINDS = (
    *("files", "all_data_files", "all_files", "data_files", "delete_files", "partitions", "snapshots", "history"),
    *("manifests", "all_manifests", "entries", "all_entries", "refs", "metadata_log_entries", "position_deletes"),
    *("branch_main", "changes"),
)


@pytest.mark.rule("NAME-3", "META-4", "POL-10")
@pytest.mark.parametrize("table", [DENIED, "pay", "free"])
def test_a_schema_is_never_a_table(analyst: Governed, table: str) -> None:
    for kind in KINDS:
        for sql in (f'SELECT * FROM "default.{table}".{kind}', f'SELECT * FROM iceberg."default.{table}"."{kind}"'):
            assert analyst.refusal(sql).code is ErrorCode.TABLE_NOT_FOUND
    for sql in (
        f'SELECT readable_metrics FROM "default.{table}".files',
        f'SHOW COLUMNS FROM "default.{table}".files',
        f'DESCRIBE "default.{table}".files',
        f'SHOW CREATE TABLE "default.{table}".files',
        f'CREATE VIEW peek AS SELECT * FROM "default.{table}".files',
        f'CREATE TABLE peek AS SELECT * FROM "default.{table}".files',
        f'INSERT INTO "default.{table}".files VALUES (1)',
        f'DELETE FROM "default.{table}".files',
        f'ALTER TABLE "default.{table}".files ADD COLUMN x integer',
        f'DROP TABLE "default.{table}".files',
    ):
        assert analyst.refusal(sql).code is ErrorCode.TABLE_NOT_FOUND, sql
    for sql in (
        f'CREATE TABLE peek (LIKE "default.{table}".files)',
        f'CREATE TABLE "default.{table}".files (a integer)',
        f'CREATE TABLE "default.{table}".files AS SELECT 1 AS a',
        f'CREATE TABLE "default.{table}".mine (a integer)',
        f'CREATE VIEW "default.{table}".files AS SELECT 1 AS a',
        f'ALTER TABLE free RENAME TO "default.{table}".files',
    ):
        analyst.refusal(sql)
    analyst.refusal(f"SELECT * FROM IDENTIFIER('`default.{table}`.files')", dialect="spark")
    analyst.refusal(f"SELECT * FROM `default.{table}`.files", dialect="spark")
    assert analyst.run("SHOW TABLES") == [["free"], ["pay"]]


@pytest.mark.rule("NAME-3")
def test_metadata_tables_have_a_name_of_their_own(analyst: Governed) -> None:
    assert analyst.run('SELECT record_count FROM "free$files"') == [[1]]
    analyst.refusal('SELECT * FROM "pay$files"')
    analyst.refusal("SELECT * FROM free._sqe_metadata_files")
    analyst.refusal('SELECT * FROM "default.free"._sqe_metadata_files')
    analyst.refusal("SELECT * FROM `default.free`.`_sqe_metadata_files`", dialect="spark")


# Changes


@pytest.mark.rule("DML-4", "STMT-9")
def test_a_restricted_table_is_neither_changed_nor_copied_as_a_whole(sqe: EmbeddedSqe, analyst: Governed) -> None:
    told = {
        str(analyst.refusal(sql))
        for sql in (
            "ALTER TABLE pay RENAME TO pay2",
            "CREATE TABLE copy (LIKE pay)",
            "CREATE TABLE copy (LIKE pay INCLUDING PROPERTIES)",
            "ALTER TABLE pay ADD COLUMN x integer",
            "ALTER TABLE pay ADD COLUMN x integer DEFAULT 5",
            f"ALTER TABLE pay ADD COLUMN {HIDDEN} integer DEFAULT 5",
            f"ALTER TABLE pay ADD COLUMN IF NOT EXISTS {HIDDEN} integer DEFAULT 5",
            "ALTER TABLE pay DROP COLUMN name",
            "ALTER TABLE pay SET PROPERTIES format_version = 3",
            "COMMENT ON TABLE pay IS 'x'",
            "DROP TABLE pay",
            "DROP TABLE IF EXISTS pay",
            "TRUNCATE TABLE pay",
            "CREATE OR REPLACE TABLE pay (a integer)",
            "CREATE OR REPLACE TABLE pay AS SELECT 1 AS a",
            "DELETE FROM pay",
        )
    }
    assert told == {"iceberg.default.pay is restricted for you and cannot be changed or copied"}
    assert own(sqe, f"SELECT id, {HIDDEN}, name FROM pay ORDER BY id") == [[1, int(VALUE), "ann"], [2, 1, "bob"]]
    assert analyst.run("SHOW TABLES") == [["free"], ["pay"]]


@pytest.mark.rule("POL-2")
def test_a_name_under_a_policy_is_taken_or_free(analyst: Governed) -> None:
    assert analyst.refusal("CREATE TABLE pay (a integer)").code is ErrorCode.DUPLICATE_TABLE
    assert analyst.refusal("CREATE TABLE pay AS SELECT 1 AS a").code is ErrorCode.DUPLICATE_TABLE
    analyst.run("CREATE TABLE IF NOT EXISTS pay (a integer)")
    analyst.run("CREATE SCHEMA fresh")
    assert "restricted" in str(analyst.refusal("CREATE TABLE fresh.pay (a integer)"))
    analyst.run("DROP SCHEMA fresh")


@pytest.mark.rule("DML-4")
def test_what_is_denied_is_not_replaced(sqe: EmbeddedSqe, analyst: Governed) -> None:
    for sql in (
        f"CREATE OR REPLACE TABLE {DENIED} (b integer)",
        f"CREATE OR REPLACE TABLE {DENIED} AS SELECT 1 AS b",
        f"CREATE OR REPLACE VIEW {DENIED} AS SELECT 1 AS b",
        f"ALTER TABLE free RENAME TO {DENIED}",
        f"CREATE TABLE {DENIED} (LIKE free)",
    ):
        analyst.refusal(sql)
    assert own(sqe, f"SELECT * FROM {DENIED}") == [[int(VALUE)]]


class Keeper(PolicyEnforcer):
    """Everything but DROP, DROP VIEW and SELECT of what is called `kept…`; reads of `blind…` are denied.

    To what is called `grow…` rows are added, and none is taken away.
    """

    def decide(self, request: PolicyRequest) -> PolicyResponse:
        def decision(access: Access) -> Decision:
            name = access.resource.name
            table = name.name if isinstance(name, ObjectName) else ""
            if table.startswith("kept") and access.action in (Action.DROP, Action.DROP_VIEW):
                return Decision.deny("kept")
            if table.startswith("blind") and access.action is Action.SELECT:
                return Decision.deny("not to be read")
            if table.startswith("grow") and access.action in (Action.DELETE, Action.TRUNCATE):
                return Decision.deny("rows are added only")
            if table.startswith("masked") and access.action is Action.SELECT:
                return allow(hidden=frozenset({"b", "bonus"} & {column.name for column in access.resource.columns}))
            return Decision.allow()

        return PolicyResponse(decisions=tuple(map(decision, request.accesses)))


@pytest.fixture(scope="module")
def keeper(sqe: EmbeddedSqe, govern: Govern) -> Governed:
    for sql in (
        "CREATE SCHEMA held",
        "CREATE TABLE held.kept AS SELECT 1 AS a",
        "CREATE VIEW held.kept_view AS SELECT 1 AS a",
        "CREATE TABLE held.blind AS SELECT 1 AS a, 2 AS b",
        "CREATE TABLE held.masked AS SELECT 1 AS a, 2 AS b",
        "CREATE TABLE held.masked_pay AS SELECT 1 AS ident, 2 AS bonus",
        "CREATE TABLE held.blind_pay AS SELECT 1 AS ident, 2 AS bonus",
        "CREATE TABLE held.grow AS SELECT 1 AS a",
    ):
        own(sqe, sql)
    governed = govern(Keeper(), canaries=CANARIES)
    governed.session.use(governed.session.catalog, ("held",))
    return governed


@pytest.mark.rule("DML-4", "DML-1")
def test_to_replace_is_to_drop(sqe: EmbeddedSqe, keeper: Governed) -> None:
    for sql in (
        "CREATE OR REPLACE TABLE kept (b integer)",
        "CREATE OR REPLACE TABLE kept AS SELECT 2 AS b",
        "CREATE OR REPLACE VIEW kept_view AS SELECT 2 AS b",
        "DROP TABLE kept",
        "DROP VIEW kept_view",
    ):
        keeper.refusal(sql)
    assert own(sqe, "SELECT * FROM held.kept") == [[1]]
    assert own(sqe, "SELECT * FROM held.kept_view") == [[1]]
    keeper.run("CREATE OR REPLACE TABLE loose AS SELECT 1 AS a")
    keeper.run("CREATE OR REPLACE TABLE loose AS SELECT 2 AS a")
    keeper.run("CREATE OR REPLACE VIEW loose_view AS SELECT 2 AS a")
    keeper.run("CREATE OR REPLACE VIEW loose_view AS SELECT 3 AS a")
    assert keeper.run("SELECT loose.a, loose_view.a AS b FROM loose, loose_view") == [[2, 3]]
    keeper.run("DROP TABLE loose")
    keeper.run("DROP VIEW loose_view")


@pytest.mark.rule("ERR-5")
def test_who_writes_what_they_may_not_read_is_suggested_nothing_of_it(keeper: Governed) -> None:
    for table in ("masked_pay", "blind_pay"):
        refused = keeper.refusal(f"INSERT INTO {table} (ident, bonu) VALUES (1, 2)")
        assert (refused.code, refused.hint) == (ErrorCode.COLUMN_NOT_FOUND, None)
    assert keeper.refusal("INSERT INTO masked_pay (idnt) VALUES (1)").hint == 'did you mean "ident"?'


@pytest.mark.rule("DML-1", "DML-4")
def test_to_overwrite_is_to_delete(sqe: EmbeddedSqe, keeper: Governed) -> None:
    keeper.run("INSERT INTO grow VALUES (2)")
    for sql, what in (("INSERT OVERWRITE grow SELECT 3", "DELETE from"), ("TRUNCATE TABLE grow", "TRUNCATE")):
        refusal = keeper.refusal(sql)
        assert refusal.code is ErrorCode.ACCESS_DENIED
        assert refusal.message == f"You may not {what} iceberg.held.grow"
    assert keeper.refusal("INSERT OVERWRITE TABLE grow SELECT 3", dialect="spark").code is ErrorCode.ACCESS_DENIED
    assert own(sqe, "SELECT a FROM held.grow ORDER BY a") == [[1], [2]]


@pytest.mark.rule("DML-8")
@pytest.mark.parametrize(
    "sql",
    [
        "INSERT OVERWRITE blind SELECT 5 AS a, 6 AS b",
        "TRUNCATE TABLE blind",
        "DELETE FROM blind",
        "CREATE OR REPLACE TABLE blind AS SELECT 1 AS a",
        "CREATE OR REPLACE TABLE blind (a integer)",
        "ALTER TABLE blind ADD COLUMN c integer",
        "ALTER TABLE blind ADD COLUMN c integer DEFAULT 3",
        "ALTER TABLE blind DROP COLUMN a",
        "COMMENT ON TABLE blind IS 'x'",
        "DROP TABLE blind",
    ],
)
def test_who_may_not_read_a_table_takes_nothing_of_it_away(sqe: EmbeddedSqe, keeper: Governed, sql: str) -> None:
    before = own(sqe, "SELECT * FROM held.blind")
    assert keeper.refusal(sql).code is ErrorCode.TABLE_NOT_FOUND
    assert own(sqe, "SELECT * FROM held.blind") == before


@pytest.mark.rule("META-5")
def test_who_may_not_read_a_table_sees_nothing_physical_of_it(keeper: Governed) -> None:
    assert [row[0] for row in keeper.run("EXPLAIN INSERT INTO blind VALUES (3, 4)")] == ["logical_plan"]


@pytest.mark.rule("DML-1", "POL-10")
def test_who_may_not_read_a_table_changes_it_blindly_at_most(keeper: Governed) -> None:
    keeper.run("INSERT INTO blind VALUES (3, 4)")
    for sql in (
        "UPDATE blind SET a = 1 WHERE b = 2",
        "DELETE FROM blind WHERE b = 2",
        "MERGE INTO blind USING (SELECT 1 AS x) s ON blind.b = s.x WHEN MATCHED THEN DELETE",
        "ALTER TABLE blind RENAME TO seen",
        "CREATE TABLE seen (LIKE blind)",
    ):
        assert keeper.refusal(sql).code is ErrorCode.TABLE_NOT_FOUND, sql
    assert "needs the names of its columns" in str(keeper.refusal("INSERT INTO masked VALUES (3, 4)"))
    for sql in ("DROP TABLE masked", "UPDATE masked SET a = 2"):
        assert "restricted" in str(keeper.refusal(sql))


@pytest.mark.rule("DML-4", "ERR-5")
def test_a_schema_is_dropped_whole_or_not_at_all(sqe: EmbeddedSqe, analyst: Governed, keeper: Governed) -> None:
    error = analyst.refusal("DROP SCHEMA default CASCADE")
    assert error.code is ErrorCode.ACCESS_DENIED
    assert str(error) == "You may not drop everything that schema iceberg.default holds"
    assert own(sqe, f"SELECT * FROM {DENIED}") == [[int(VALUE)]]
    assert analyst.run("SHOW TABLES") == [["free"], ["pay"]]
    assert str(analyst.refusal("DROP SCHEMA default")) == "Schema iceberg.default is not empty"
    for table in (f"lone.{DENIED}", "lone.pay"):
        own(sqe, "CREATE SCHEMA lone")
        own(sqe, f"CREATE TABLE {table} ({HIDDEN} integer, a integer)")
        assert str(analyst.refusal("DROP SCHEMA lone")) == "Schema iceberg.lone is not empty"
        analyst.refusal("DROP SCHEMA lone CASCADE")
        assert own(sqe, f"SELECT * FROM {table}") == []
        own(sqe, "DROP SCHEMA lone CASCADE")
    keeper.refusal("DROP SCHEMA held CASCADE")
    assert own(sqe, "SHOW TABLES FROM held") == [
        [name] for name in ("blind", "blind_pay", "grow", "kept", "kept_view", "masked", "masked_pay")
    ]
    for sql in ("CREATE SCHEMA mine", "CREATE TABLE mine.a AS SELECT 1 AS x", "CREATE VIEW mine.v AS SELECT 1 AS x"):
        analyst.run(sql)
    analyst.run("DROP SCHEMA mine CASCADE")
    assert ["mine"] not in analyst.run("SHOW SCHEMAS")


# Descriptions


@pytest.mark.rule("VIEW-4")
def test_the_text_of_a_view_is_for_those_who_read_all_of_it(sqe: EmbeddedSqe, analyst: Governed) -> None:
    for sql in (
        f"CREATE VIEW costs AS SELECT id, {HIDDEN} FROM pay",
        f"CREATE VIEW entry AS SELECT a AS vault_canary_column FROM {DENIED}",
        "CREATE VIEW names AS SELECT id, name FROM pay",
        "CREATE VIEW nested AS SELECT * FROM costs",
        "CREATE VIEW open AS SELECT a FROM free",
    ):
        own(sqe, sql)
    for sql in ("SHOW COLUMNS FROM entry", "DESCRIBE entry", "SHOW CREATE VIEW entry"):
        analyst.refusal(sql)
    for view in ("costs", "nested"):
        assert analyst.run(f"SHOW COLUMNS FROM {view}") == [["id", "integer", "YES"]]
        analyst.refusal(f"SHOW CREATE VIEW {view}")
    assert analyst.run("SHOW COLUMNS FROM names") == [["id", "integer", "YES"], ["name", "varchar", "YES"]]
    analyst.refusal("SHOW CREATE VIEW names")
    assert "SELECT a FROM free" in analyst.run("SHOW CREATE VIEW open")[0][0]
    listed = analyst.run(
        "SELECT table_name, view_definition FROM information_schema.views WHERE table_schema = 'default' ORDER BY 1"
    )
    assert listed == [
        *(["costs", None], ["entry", None], ["names", None], ["nested", None], ["open", "SELECT a FROM free"])
    ]
    told = analyst.run(
        "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'default' ORDER BY 1, 2"
    )
    assert told == [
        *(["costs", "id"], ["free", "a"], ["names", "id"], ["names", "name"], ["nested", "id"], ["open", "a"]),
        *(["pay", "id"], ["pay", "name"]),
    ]
    mount = sqe.session.catalogs.find(EMBEDDED_CATALOG)
    assert mount is not None
    service = analyst.sqe.service
    for view, columns in (("costs", ["id"]), ("nested", ["id"]), ("names", ["id", "name"]), ("pay", ["id", "name"])):
        name = ObjectName(catalog=EMBEDDED_CATALOG, namespace=("default",), name=view)
        loaded = service.visible(analyst.session).find(mount, name)
        assert loaded is not None
        assert [column.name for column in service.columns_of(analyst.session)(name, loaded)] == columns
    for view in ("nested", "costs", "entry", "names", "open"):
        assert "SELECT" in own(sqe, f"SHOW CREATE VIEW {view}")[0][0]
        own(sqe, f"DROP VIEW {view}")


@pytest.mark.rule("STMT-9", "META-5")
def test_descriptions_of_a_restricted_table_name_nothing_hidden(sqe: EmbeddedSqe, analyst: Governed) -> None:
    own(sqe, f"ALTER TABLE pay SET TBLPROPERTIES ('write.metadata.metrics.column.{HIDDEN}' = 'full')")
    for sql in ("SHOW CREATE TABLE pay", "DESCRIBE pay", "EXPLAIN SELECT id FROM pay WHERE id = 1"):
        shown = str(analyst.run(sql))
        for word in (HIDDEN, "schemaId", "snapshotId", "file:", "branch"):
            assert word not in shown, shown
    assert HIDDEN in str(own(sqe, "SHOW CREATE TABLE pay"))


@pytest.mark.rule("STMT-9")
def test_a_denied_catalog_does_not_exist(analyst: Governed) -> None:
    assert analyst.run("SHOW CATALOGS") == [["iceberg"]]
    for sql in (
        "SHOW SCHEMAS FROM {c}",
        "SHOW TABLES FROM {c}.default",
        "USE {c}",
        "USE {c}.default",
        "USE {c}.information_schema",
        "SELECT * FROM {c}.default.x",
        "SELECT * FROM {c}.information_schema.tables",
        "SHOW COLUMNS FROM {c}.information_schema.tables",
        "CREATE SCHEMA {c}.mine",
        "DROP SCHEMA {c}.default",
        "CREATE TABLE {c}.default.x (a integer)",
        "CREATE VIEW {c}.default.x AS SELECT 1 AS a",
    ):
        kept, missing = analyst.refusal(sql.format(c=FOREIGN)), analyst.refusal(sql.format(c="missing_canary"))
        assert kept.code is missing.code
        for ours, theirs in ((str(kept), str(missing)), (str(kept.hint), str(missing.hint))):
            assert ours.replace(FOREIGN, "x") == theirs.replace("missing_canary", "x"), sql
    assert analyst.refusal("SELECT * FROM other_canar.default.x").hint is None
    assert analyst.refusal("SHOW SCHEMAS FROM other_canar").hint is None


@pytest.mark.rule("STMT-9")
def test_completion_knows_what_the_user_sees(analyst: Governed) -> None:
    visible = analyst.sqe.service.visible(analyst.session)
    names = visible_names(visible, ready=True)
    assert names.catalogs == ("iceberg",)
    assert visible_columns(visible, ("iceberg", "default", "pay")) == ("id", "name")
    assert visible_columns(visible, ("iceberg", "default", DENIED)) == ()
    assert DENIED not in str(names)
    assert HIDDEN not in str(names)


@pytest.mark.rule("NAME-3")
def test_rows_of_ours_have_no_metadata_tables(analyst: Governed) -> None:
    for sql in (
        'SELECT * FROM information_schema."tables$files"',
        'SHOW COLUMNS FROM information_schema."tables$snapshots"',
        'DESCRIBE information_schema."columns$files"',
    ):
        assert analyst.refusal(sql).code is ErrorCode.TABLE_NOT_FOUND


@pytest.mark.rule("NAME-6", "ERR-6")
def test_reserved_names_are_refused_in_whole_words(analyst: Governed, caplog: pytest.LogCaptureFixture) -> None:
    assert analyst.refusal("SELECT * FROM _sqe_x").message == "Names that begin with _sqe_ are reserved"
    analyst.refusal("SELECT CAST('_sqe_c_deadbeef00 __sqe_x' AS integer)")
    assert "secret" not in caplog.text


@pytest.mark.rule("STMT-7")
def test_a_copy_of_a_table_takes_checked_properties(analyst: Governed) -> None:
    for key, value in (("write.data.path", "/tmp/x"), ("read.split.target-size", "-1"), ("sqe.column-tags", "x")):
        analyst.refusal(f"CREATE TABLE copy (LIKE free) TBLPROPERTIES ('{key}' = '{value}')")
    assert analyst.run("SHOW TABLES") == [["free"], ["pay"]]
    for key in ("location", "Location", "owner", "polaris.base-location", "hive.metastore.database.owner"):
        analyst.refusal(f"CREATE SCHEMA placed WITH DBPROPERTIES ('{key}' = 'file:///tmp/x')", dialect="spark")
    analyst.run("CREATE SCHEMA placed COMMENT 'x'")
    analyst.run("DROP SCHEMA placed")


@pytest.mark.rule("LIM-3")
@pytest.mark.parametrize("value", ["\ud800", ["\ud800"], {"a": "\udfff"}, {"\ud800": 1}])
def test_a_parameter_is_text_or_refused(analyst: Governed, value: object) -> None:
    with pytest.raises(SqeError) as caught:
        analyst.sqe.service.execute(analyst.session, "SELECT ?", parameters=[value])
    assert caught.value.code is ErrorCode.INVALID_ARGUMENTS
