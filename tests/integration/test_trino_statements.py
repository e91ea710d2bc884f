"""Statements of Trino's clients on real tables: zones, statistics, metadata tables, what restricted users learn."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path

import pytest
from testbed.users import ROOT, Rows, Users, granted, rows_of

from sqe_core.engine.spark.engine import SparkEngine
from sqe_core.policy.builtin import AllowAllEnforcer
from sqe_core.spi.errors import ErrorCode
from sqe_core.spi.identity import Identity
from sqe_core.testing import make_identity

ALICE = make_identity("alice", roles=["analyst"])
BOB = make_identity("bob")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("lake")


@pytest.fixture(scope="module")
def made(engine: SparkEngine, folder: Path) -> None:
    lake = Users(granted(engine, folder, enforcers=[AllowAllEnforcer()]))
    lake.root(
        "CREATE TABLE events (id integer, name varchar, at timestamp(6) with time zone, clock timestamp(6))"
        " WITH (partitioning = ARRAY['bucket(id, 2)'], sorted_by = ARRAY['name DESC'], compression_codec = 'ZSTD')",
        "INSERT INTO events VALUES"
        " (1, 'noon', TIMESTAMP '2020-07-01 12:00:00 UTC', TIMESTAMP '2020-07-01 12:00:00'),"
        " (2, 'late', TIMESTAMP '2020-07-01 23:00:00 UTC', TIMESTAMP '2020-07-01 23:00:00')",
    )
    lake.close()


@pytest.fixture
def lake(engine: SparkEngine, folder: Path, made: None) -> Iterator[Users]:
    lake = Users(granted(engine, folder))
    lake.root("GRANT SELECT ON events TO USER alice")
    yield lake
    lake.close()


def ask(lake: Users, sql: str, who: Identity = ALICE) -> Rows:
    return lake.run(who, sql, dialect="trino")


# Time zones


PARTS = (
    "SELECT current_timezone(), CAST(at AS varchar), CAST(at AS date), hour(at), CAST(at AS timestamp),"
    " CAST(at AS time), date_trunc('day', at), CAST(clock AS timestamp with time zone),"
    " hour(at AT TIME ZONE 'Asia/Tokyo')"
    " FROM events WHERE id = 2"
)


def test_a_zone_is_the_sessions(lake: Users) -> None:
    (utc,) = ask(lake, PARTS)
    assert utc[:4] == ("UTC", "2020-07-01 23:00:00 UTC", date(2020, 7, 1), 23)
    ask(lake, "SET TIME ZONE 'Europe/Amsterdam'")
    (there,) = ask(lake, PARTS)
    # A table's column is in UTC, as it is for Trino; what has no zone is read in the session's.
    assert there[:7] == ("Europe/Amsterdam", *utc[1:7])
    assert there[7] == datetime(2020, 7, 1, 21, tzinfo=UTC)
    assert there[8] == utc[8] == 8
    assert ask(
        lake,
        "SELECT hour(now()) = hour(localtimestamp), hour(clock AT TIME ZONE 'UTC'), timezone(now()), timezone(at),"
        " timezone_hour(CAST(DATE '2020-07-01' AS timestamp with time zone)),"
        " from_iso8601_timestamp('2020-07-01T12:00:00'), from_iso8601_timestamp(name || '-07-01T12:00:00')"
        " FROM (SELECT at, clock, '2020' AS name FROM events WHERE id = 2)",
    ) == [(True, 21, "Europe/Amsterdam", "UTC", 2, *[datetime(2020, 7, 1, 10, tzinfo=UTC)] * 2)]
    # It is nobody else's, and of no later statement.
    lake.root("GRANT SELECT ON events TO USER bob")
    assert ask(lake, PARTS, BOB) == [utc]
    ask(lake, "SET TIME ZONE LOCAL")
    assert ask(lake, PARTS) == [utc]


@pytest.mark.parametrize("session", ["UTC", "America/New_York"])
def test_a_value_keeps_the_zone_that_its_expression_names(lake: Users, session: str) -> None:
    ask(lake, f"SET TIME ZONE '{session}'")
    there = "WITH e AS (SELECT id, at AT TIME ZONE 'Asia/Tokyo' AS at FROM events) "
    assert ask(
        lake, there + "SELECT hour(at), CAST(at AS varchar), timezone(at), date_trunc('day', at) FROM e ORDER BY id"
    ) == [
        (21, "2020-07-01 21:00:00 Asia/Tokyo", "Asia/Tokyo", datetime(2020, 6, 30, 15, tzinfo=UTC)),
        (8, "2020-07-02 08:00:00 Asia/Tokyo", "Asia/Tokyo", datetime(2020, 7, 1, 15, tzinfo=UTC)),
    ]
    assert ask(lake, there + "SELECT CAST(at AS date) AS d, count(*) FROM e GROUP BY 1 ORDER BY 1") == [
        (date(2020, 7, 1), 1),
        (date(2020, 7, 2), 1),
    ]
    days = "date_trunc('day', at AT TIME ZONE 'Asia/Tokyo')"
    assert ask(lake, f"SELECT {days}, count(*) FROM events GROUP BY {days} ORDER BY {days}") == [
        (datetime(2020, 6, 30, 15, tzinfo=UTC), 1),
        (datetime(2020, 7, 1, 15, tzinfo=UTC), 1),
    ]


def test_results_say_their_zone(lake: Users) -> None:
    def zones(sql: str) -> list[str | None]:
        result = lake.sqe.service.execute(lake.session(ALICE), sql, dialect="trino")
        schema = result.schema
        rows_of(result)
        assert schema is not None
        return [getattr(field.type, "tz", None) for field in schema]

    ask(lake, "SET TIME ZONE 'America/New_York'")
    there = "SELECT at AT TIME ZONE 'Asia/Tokyo' AS at, at AS stored, now() AS now, clock FROM events"
    assert zones(there) == ["Asia/Tokyo", "UTC", "America/New_York", None]
    assert zones(f"WITH e AS ({there}) SELECT f.*, max(at) FROM e AS f GROUP BY at, stored, now, clock") == [
        *zones(there),
        "Asia/Tokyo",
    ]
    assert zones(f"SELECT at FROM ({there}) UNION ALL SELECT at FROM ({there})") == ["Asia/Tokyo"]
    assert zones(f"SELECT at FROM ({there}) UNION ALL SELECT now FROM ({there})") == ["UTC"]
    assert zones("SELECT lag(at AT TIME ZONE '+02:00') OVER (ORDER BY id), max(now()) OVER () FROM events") == [
        "+02:00",
        "America/New_York",
    ]


def test_clocks_are_the_zones(lake: Users) -> None:
    ask(lake, "SET TIME ZONE '+05:30'")
    assert ask(
        lake,
        "SELECT date_diff('minute', CAST(current_timestamp AT TIME ZONE 'UTC' AS timestamp), localtimestamp),"
        " current_date = CAST(localtimestamp AS date), current_timezone()",
    ) in ([(0, True, "+05:30")], [(330, True, "+05:30")])
    assert ask(lake, "SELECT hour(localtimestamp) = hour(current_timestamp)") == [(True,)]


def test_what_is_written_means_the_zone(lake: Users) -> None:
    lake.root(
        "CREATE TABLE IF NOT EXISTS written (at timestamp(6) with time zone)", "GRANT ALL ON written TO USER alice"
    )
    ask(lake, "SET TIME ZONE 'America/New_York'")
    ask(lake, "INSERT INTO written SELECT CAST(TIMESTAMP '2020-01-01 00:00:00' AS timestamp with time zone)")
    ask(lake, "RESET SESSION time_zone")
    assert ask(lake, "SELECT at FROM written") == [(datetime(2020, 1, 1, 5, tzinfo=UTC),)]
    lake.root("DROP TABLE written")


@pytest.mark.rule("POL-7", "ENF-9")
@pytest.mark.parametrize(
    "condition",
    [
        "CAST(at AS date) = DATE '2020-07-01' AND hour(at) < 20",
        "CAST(CAST(at AS timestamp) AS date) < DATE '2020-07-02' AND date_trunc('day', at) = at - INTERVAL '12' HOUR",
        "hour(at) = 12 OR current_timezone() <> 'UTC'",
        "substr(CAST(at AS varchar), 12, 2) = '12'",
        # Zones that the filter names, which may be the one that the user has chosen.
        "hour(at AT TIME ZONE 'Asia/Tokyo') = 21 AND CAST(at AT TIME ZONE 'Asia/Tokyo' AS date) = DATE '2020-07-01'",
        "substr(CAST(at AT TIME ZONE 'Asia/Tokyo' AS varchar), 12, 2) = '21'",
        "at = from_iso8601_timestamp('2020-07-01T12:00:00')",
        "at = from_iso8601_timestamp(substr('2020-07-01T12:00:00' || name, 1, 19))",
        "at = parse_datetime('2020-07-01 12', 'yyyy-MM-dd HH')",
        "hour(at AT TIME ZONE 'UTC') = 12 AND hour(at_timezone(at, current_timezone())) = 12",
        "to_iso8601(at) LIKE '%T12%' AND format_datetime(at, 'HH') = '12' AND date_diff('hour', at, clock) = 0",
    ],
)
@pytest.mark.parametrize("dialect", ["sqe", "trino"])
@pytest.mark.parametrize("zone", ["Asia/Tokyo", "-11:00", "Europe/Amsterdam"])
def test_nobody_moves_the_time_of_a_row_filter(lake: Users, condition: str, zone: str, dialect: str) -> None:
    lake.run(ROOT, f"GRANT SELECT ON events TO USER alice ROWS WHERE {condition}", dialect=dialect)
    assert ask(lake, "SELECT name FROM events") == [("noon",)]
    ask(lake, f"SET TIME ZONE '{zone}'")
    assert ask(lake, "SELECT name FROM events") == [("noon",)]
    assert ask(lake, "SELECT e.name FROM events e JOIN (SELECT id FROM events) f ON e.id = f.id") == [("noon",)]
    assert ask(lake, "SELECT count(*) FROM events WHERE id IN (SELECT id FROM events)") == [(1,)]


@pytest.mark.rule("POL-7", "ENF-9")
@pytest.mark.parametrize(
    "condition",
    [
        "timezone(at) = 'UTC' AND timezone(now()) = 'UTC' AND timezone_hour(now()) = 0 AND hour(at) = 12",
        "date_trunc('day', at AT TIME ZONE 'Asia/Tokyo') = TIMESTAMP '2020-07-01 00:00:00 Asia/Tokyo'",
        "date_add('day', 1, date_add('hour', 1, at)) = TIMESTAMP '2020-07-02 22:00:00 Asia/Tokyo'",
        "at + INTERVAL '1' MONTH = TIMESTAMP '2020-08-01 21:00:00 Asia/Tokyo'",
        "hour(CAST(clock AS timestamp with time zone)) = 12 AND timezone(clock) = 'UTC'",
        "format_datetime(at AT TIME ZONE 'Asia/Tokyo', 'HH ZZZ') = '21 Asia/Tokyo'",
    ],
)
@pytest.mark.parametrize("zone", ["Asia/Tokyo", "-11:00"])
def test_nobody_moves_the_zone_of_a_row_filter(lake: Users, condition: str, zone: str) -> None:
    """Nor with what a statement says of zones around the table."""
    ask(lake, f"GRANT SELECT ON events TO USER alice ROWS WHERE {condition}", ROOT)
    assert ask(lake, "SELECT name FROM events") == [("noon",)]
    ask(lake, f"SET TIME ZONE '{zone}'")
    assert ask(lake, "SELECT name FROM events") == [("noon",)]
    moved = f"WITH events AS (SELECT name, at AT TIME ZONE '{zone}' AS at FROM events) "
    assert ask(lake, moved + f"SELECT name FROM events WHERE hour(at AT TIME ZONE '{zone}') >= 0") == [("noon",)]
    assert ask(lake, moved + "SELECT count(*) FROM events GROUP BY date_trunc('day', at)") == [(1,)]


@pytest.mark.rule("POL-7")
def test_nobody_moves_the_time_of_a_mask(lake: Users) -> None:
    lake.root("GRANT SELECT (id, name MASKED WITH (CAST(hour(at) AS varchar))) ON events TO USER alice")
    shown = ask(lake, "SELECT id, name FROM events ORDER BY id")
    assert shown == [(1, "12"), (2, "23")]
    ask(lake, "SET TIME ZONE 'Asia/Tokyo'")
    assert ask(lake, "SELECT id, name FROM events ORDER BY id") == shown


# Statistics, metadata tables, SHOW CREATE


def test_statistics(lake: Users) -> None:
    rows = ask(lake, "SHOW STATS FOR events")
    assert rows[0] == ("id", None, None, 0.0, None, "1", "2")
    assert rows[1][0] == "name"
    assert rows[1][1] > 0
    assert rows[-1] == (None, None, None, None, 2.0, None, None)


@pytest.mark.rule("META-5", "ENF-17")
@pytest.mark.parametrize(
    "restriction", ["ROWS WHERE id = 1", "(id, at, clock)", "(id, name MASKED WITH 'NULL', at, clock)"]
)
def test_whoever_sees_a_part_is_told_no_number(lake: Users, restriction: str) -> None:
    granted = f"SELECT ON events TO USER bob {restriction}"
    if restriction.startswith("("):
        granted = f"SELECT {restriction} ON events TO USER bob"
    lake.root(f"GRANT {granted}")
    rows = ask(lake, "SHOW STATS FOR events", BOB)
    assert {value for row in rows for value in row[1:]} == {None}
    for table in (
        "snapshots",
        "files",
        "properties",
        "entries",
        "all_entries",
        "all_manifests",
        "metadata_log_entries",
    ):
        with pytest.raises(Exception, match="does not exist or you may not see it"):
            ask(lake, f'SELECT * FROM "events${table}"', BOB)


def test_a_table_that_is_hidden_has_no_statistics(lake: Users) -> None:
    error = lake.refusal(BOB, "SHOW STATS FOR events")
    missing = lake.refusal(BOB, "SHOW STATS FOR nothing")
    assert (error.code, missing.code) == (ErrorCode.TABLE_NOT_FOUND, ErrorCode.TABLE_NOT_FOUND)
    assert error.message == missing.message.replace("nothing", "events")


METADATA = {
    "snapshots": ["committed_at", "snapshot_id", "parent_id", "operation", "manifest_list", "summary"],
    "history": ["made_current_at", "snapshot_id", "parent_id", "is_current_ancestor"],
    "refs": [
        *("name", "type", "snapshot_id", "max_reference_age_in_ms", "min_snapshots_to_keep"),
        "max_snapshot_age_in_ms",
    ],
    "metadata_log_entries": [
        *("timestamp", "file", "latest_snapshot_id", "latest_schema_id", "latest_sequence_number"),
    ],
    "manifests": [
        *("path", "length", "partition_spec_id", "added_snapshot_id", "added_data_files_count", "added_rows_count"),
        *("existing_data_files_count", "existing_rows_count", "deleted_data_files_count", "deleted_rows_count"),
        "partition_summaries",
    ],
    "all_manifests": [
        *("path", "length", "partition_spec_id", "added_snapshot_id", "added_data_files_count"),
        *("existing_data_files_count", "deleted_data_files_count", "added_delete_files_count"),
        *("existing_delete_files_count", "deleted_delete_files_count", "partition_summaries"),
        "reference_snapshot_id",
    ],
    "files": [
        *("content", "file_path", "file_format", "spec_id", "partition", "record_count", "file_size_in_bytes"),
        *("column_sizes", "value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds"),
        *("key_metadata", "split_offsets", "equality_ids", "sort_order_id", "readable_metrics"),
    ],
    "partitions": ["partition", "record_count", "file_count", "total_size"],
    "entries": [
        *("status", "snapshot_id", "sequence_number", "file_sequence_number", "data_file", "readable_metrics"),
    ],
    "all_entries": [
        *("status", "snapshot_id", "sequence_number", "file_sequence_number", "data_file", "readable_metrics"),
    ],
    "properties": ["key", "value"],
}


@pytest.mark.parametrize("table", METADATA)
def test_metadata_tables(lake: Users, table: str) -> None:
    result = lake.sqe.service.execute(
        lake.session(ALICE), f'SELECT * FROM "events${table}"', dialect="trino"
    ).read_all()
    assert result.schema.names == METADATA[table]
    assert result.num_rows > 0


def test_what_show_create_prints_makes_the_same_table(lake: Users) -> None:
    ((text,),) = ask(lake, "SHOW CREATE TABLE events")
    assert "partitioning = ARRAY['bucket(id, 2)']" in text
    assert "sorted_by = ARRAY['name DESC NULLS LAST']" in text
    ask(lake, text.replace("events", "again"), ROOT)
    lake.root("GRANT SELECT ON again TO USER alice")
    assert ask(lake, "SHOW CREATE TABLE again") == [(text.replace("events", "again"),)]
    lake.root("DROP TABLE again")


def test_sorted_by_a_column_that_is_none(lake: Users) -> None:
    error = lake.refusal(ROOT, "CREATE TABLE bad (a integer) WITH (sorted_by = ARRAY['b'])")
    assert error.kind.value == "USER_ERROR"


def test_what_tools_ask_with_joins(lake: Users) -> None:
    """As dbt-trino lists relations."""
    assert ask(
        lake,
        'SELECT t.table_catalog AS "database", t.table_name AS name, t.table_schema AS "schema",'
        " CASE WHEN mv.name IS NOT NULL THEN 'materialized_view' WHEN t.table_type = 'BASE TABLE' THEN 'table'"
        " WHEN t.table_type = 'VIEW' THEN 'view' ELSE t.table_type END AS table_type"
        " FROM lake.information_schema.tables t LEFT JOIN (SELECT * FROM system.metadata.materialized_views"
        " WHERE catalog_name = 'lake' AND schema_name = lower('DEFAULT')) mv"
        " ON mv.catalog_name = t.table_catalog AND mv.schema_name = t.table_schema AND mv.name = t.table_name"
        " WHERE t.table_schema = lower('DEFAULT') AND (mv.catalog_name IS NULL OR mv.catalog_name = 'lake')",
    ) == [("lake", "events", "default", "table")]


# Maintenance


def test_a_table_is_maintained(lake: Users) -> None:
    lake.root("CREATE TABLE small (id integer, s varchar) WITH (sorted_by = ARRAY['id'])")
    for number in range(4):
        lake.root(f"INSERT INTO small VALUES ({number}, 'x')")
    lake.root("DELETE FROM small WHERE id = 3")
    before = ask(lake, 'SELECT count(*) FROM "small$files"', ROOT)
    ask(lake, "ALTER TABLE small EXECUTE optimize(file_size_threshold => '10MB')", ROOT)
    assert ask(lake, 'SELECT count(*) FROM "small$files"', ROOT) == [(1,)] != before
    assert ask(lake, "SELECT id FROM small ORDER BY id", ROOT) == [(0,), (1,), (2,)]
    snapshots = ask(lake, 'SELECT count(*) FROM "small$snapshots"', ROOT)
    for action in ("optimize_manifests", "expire_snapshots", "remove_orphan_files", "drop_extended_stats"):
        ask(lake, f"ALTER TABLE small EXECUTE {action}", ROOT)
    assert ask(lake, 'SELECT count(*) FROM "small$snapshots"', ROOT) >= snapshots  # they are younger than seven days
    assert ask(lake, "SELECT count(*) FROM small", ROOT) == [(3,)]
    # The session is as it was: its next statements run.
    assert ask(lake, "SHOW TABLES LIKE 'small'", ROOT) == [("small",)]
    lake.root("DROP TABLE small")


@pytest.mark.rule("STMT-6", "DML-4")
def test_nobody_maintains_what_they_see_in_part(lake: Users) -> None:
    lake.root("GRANT SELECT, MODIFY ON events TO USER bob ROWS WHERE id = 1")
    for action in ("optimize", "expire_snapshots", "remove_orphan_files"):
        assert lake.refusal(BOB, f"ALTER TABLE events EXECUTE {action}").code is ErrorCode.NOT_SUPPORTED
        assert lake.refusal(ALICE, f"ALTER TABLE events EXECUTE {action}").code is ErrorCode.ACCESS_DENIED


def test_partitioning_changes(lake: Users) -> None:
    lake.root("CREATE TABLE parts (id integer, d date, s varchar) WITH (partitioning = ARRAY['day(d)', 's'])")
    lake.root("INSERT INTO parts VALUES (1, DATE '2020-01-01', 'a')")
    ask(lake, "ALTER TABLE parts SET PROPERTIES partitioning = ARRAY['month(d)', 's'], sorted_by = ARRAY['id']", ROOT)
    lake.root("INSERT INTO parts VALUES (2, DATE '2020-02-01', 'b')")
    ((text,),) = ask(lake, "SHOW CREATE TABLE parts", ROOT)
    assert "ARRAY['s','month(d)']" in text or "ARRAY['month(d)','s']" in text
    assert "sorted_by = ARRAY['id ASC NULLS FIRST']" in text
    assert ask(lake, "SELECT id FROM parts ORDER BY id", ROOT) == [(1,), (2,)]
    for bad in ("partitioning = ARRAY['nothing']", "partitioning = ARRAY['hour(s)']", "sorted_by = ARRAY['nothing']"):
        assert lake.refusal(ROOT, f"ALTER TABLE parts SET PROPERTIES {bad}").kind.value == "USER_ERROR", bad
    lake.root("DROP TABLE parts")
