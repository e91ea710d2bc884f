import java.math.BigDecimal;
import java.sql.Connection;
import java.sql.Date;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.sql.Statement;
import java.sql.Timestamp;
import java.sql.Types;
import java.util.ArrayList;
import java.util.List;

/** Statements and values, as programs send them. */
final class JdbcStatements {
    private JdbcStatements() {}

    static void ask(Connection connection, String table) throws Exception {
        try (Statement statement = connection.createStatement()) {
            Answers.say("create", () -> statement.executeUpdate(
                "CREATE TABLE " + table + " (id bigint COMMENT 'the key', name varchar, price decimal(38,10), day date, at timestamp,"
                    + " ok boolean, ratio double, small integer, raw varbinary)"));
            Answers.say("insert", () -> statement.executeUpdate(
                "INSERT INTO " + table + " (id, name) VALUES (1, 'one'), (2, 'two')"));
            Answers.say("execute", () -> statement.execute("SELECT count(*) FROM " + table));
            Answers.say("execute update", () -> statement.execute("DELETE FROM " + table + " WHERE id = 2"));
            Answers.say("prepared insert", () -> {
                try (PreparedStatement insert = connection.prepareStatement(
                        "INSERT INTO " + table + " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)")) {
                    insert.setLong(1, 3);
                    insert.setString(2, "thrée €");
                    insert.setBigDecimal(3, new BigDecimal("1234567890123456789012345678.0123456789"));
                    insert.setDate(4, Date.valueOf("2026-02-03"));
                    insert.setTimestamp(5, Timestamp.valueOf("2026-02-03 04:05:06.007"));
                    insert.setBoolean(6, true);
                    insert.setDouble(7, 0.5);
                    insert.setInt(8, 8);
                    insert.setBytes(9, new byte[] {0, (byte) 255});
                    return insert.executeUpdate();
                }
            });
            Answers.say("null parameters", () -> {
                try (PreparedStatement insert = connection.prepareStatement(
                        "INSERT INTO " + table + " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)")) {
                    int[] types = {Types.BIGINT, Types.VARCHAR, Types.DECIMAL, Types.DATE, Types.TIMESTAMP,
                        Types.BOOLEAN, Types.DOUBLE, Types.INTEGER, Types.VARBINARY};
                    for (int number = 1; number <= types.length; number++) {
                        insert.setNull(number, types[number - 1]);
                    }
                    return insert.executeUpdate();
                }
            });
            Answers.say("batch", () -> {
                try (PreparedStatement insert = connection.prepareStatement(
                        "INSERT INTO " + table + " (id, name) VALUES (?, ?)")) {
                    for (int number = 10; number < 13; number++) {
                        insert.setLong(1, number);
                        insert.setString(2, "batch " + number);
                        insert.addBatch();
                    }
                    return insert.executeBatch()[0];
                }
            });
            Answers.say("prepared query", () -> {
                try (PreparedStatement select = connection.prepareStatement(
                        "SELECT name FROM " + table + " WHERE id = ?")) {
                    List<String> names = new ArrayList<>();
                    for (long id : new long[] {1, 3, 12}) {
                        select.setLong(1, id);
                        names.addAll(Answers.column(select.executeQuery(), "name"));
                    }
                    return names;
                }
            });
            Answers.say("parameter count", () -> {
                try (PreparedStatement select = connection.prepareStatement(
                        "SELECT * FROM " + table + " WHERE id = ? AND name = ?")) {
                    return select.getParameterMetaData().getParameterCount();
                }
            });
            Answers.say("values", () -> {
                try (ResultSet results = statement.executeQuery("SELECT * FROM " + table + " WHERE id = 3")) {
                    results.next();
                    return results.getLong("id") + "|" + results.getString(2) + "|" + results.getBigDecimal(3) + "|"
                        + results.getDate(4) + "|" + results.getTimestamp(5) + "|" + results.getBoolean(6) + "|"
                        + results.getDouble(7) + "|" + results.getInt(8) + "|" + results.getBytes(9).length;
                }
            });
            Answers.say("nulls", () -> Answers.query(connection, "SELECT * FROM " + table + " WHERE id IS NULL"));
            Answers.say("result types", () -> {
                try (ResultSet results = statement.executeQuery("SELECT * FROM " + table)) {
                    ResultSetMetaData data = results.getMetaData();
                    List<String> types = new ArrayList<>();
                    for (int column = 1; column <= data.getColumnCount(); column++) {
                        types.add(data.getColumnName(column) + ":" + data.getColumnType(column));
                    }
                    return types;
                }
            });
            Answers.say("result columns", () -> {
                try (ResultSet results = statement.executeQuery("SELECT t.price, t.id + 1, t.name AS n FROM " + table + " AS t")) {
                    ResultSetMetaData data = results.getMetaData();
                    List<String> columns = new ArrayList<>();
                    for (int column = 1; column <= data.getColumnCount(); column++) {
                        columns.add(data.getPrecision(column) + ":" + data.getScale(column) + ":"
                            + data.getCatalogName(column) + ":" + data.getSchemaName(column) + ":"
                            + data.getTableName(column) + ":" + data.isCaseSensitive(column) + ":"
                            + data.isReadOnly(column) + ":" + data.isAutoIncrement(column) + ":"
                            + data.isSearchable(column));
                    }
                    return columns;
                }
            });
            Answers.say("nested", () -> Answers.query(connection,
                "SELECT ARRAY[1, 2] AS l, MAP(ARRAY['a'], ARRAY[1]) AS m,"
                    + " CAST(ROW(1, 'x') AS ROW(a integer, b varchar)) AS r"));
            Answers.say("zoned", () -> Answers.query(connection,
                "SELECT TIMESTAMP '2026-01-02 03:04:05.000006 UTC' AS z, TIME '01:02:03' AS t"));
            Answers.say("rows", () -> {
                try (ResultSet results = statement.executeQuery("SELECT id FROM range(100000) AS r(id)")) {
                    long sum = 0;
                    while (results.next()) {
                        sum += results.getLong(1);
                    }
                    return sum;
                }
            });
            Answers.say("prepare", () -> statement.execute("PREPARE few FROM SELECT id FROM " + table + " WHERE id < ?"));
            Answers.say("execute prepared", () -> Answers.query(connection, "EXECUTE few USING 3"));
            Answers.say("describe input", () -> Answers.query(connection, "DESCRIBE INPUT few"));
            Answers.say("deallocate", () -> statement.execute("DEALLOCATE PREPARE few"));
            Answers.say("forgotten", () -> Answers.query(connection, "EXECUTE few USING 3"));
            Answers.say("call", () -> {
                String first = Answers.query(connection,
                    "SELECT snapshot_id FROM \"" + table + "$snapshots\" ORDER BY committed_at LIMIT 1").get(0).get(0);
                return Answers.query(connection,
                    "CALL iceberg.system.rollback_to_snapshot('default." + table + "', " + first + ")");
            });
            Answers.say("rolled back", () -> Answers.query(connection, "SELECT id FROM " + table + " ORDER BY id"));
            Answers.say("missing", () -> Answers.query(connection, "SELECT * FROM nowhere"));
            Answers.say("syntax", () -> Answers.query(connection, "SELEC 1"));
            Answers.say("update of rows", () -> statement.executeUpdate("SELECT 1"));
            Answers.say("schema before", connection::getSchema);
            Answers.say("autocommit", connection::getAutoCommit);
        }
    }
}
