import java.math.BigDecimal;
import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.Date;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.sql.Statement;
import java.sql.Timestamp;
import java.sql.Types;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;

/** Asks the Flight SQL JDBC driver what tools ask it, and prints one line "name = answer" for each question. */
public final class JdbcCheck {
    private interface Question {
        Object ask() throws Exception;
    }

    private static void say(String name, Question question) {
        String answer;
        try {
            answer = String.valueOf(question.ask());
        } catch (SQLException error) {
            answer = "SQLException: " + error.getMessage();
        } catch (Throwable error) {
            answer = "FAILED: " + error;
        }
        System.out.println(name + " = " + answer.replace('\n', ' '));
    }

    private static List<List<String>> rows(ResultSet results) throws SQLException {
        try (results) {
            List<List<String>> rows = new ArrayList<>();
            int columns = results.getMetaData().getColumnCount();
            while (results.next()) {
                List<String> row = new ArrayList<>();
                for (int column = 1; column <= columns; column++) {
                    row.add(results.getString(column));
                }
                rows.add(row);
            }
            return rows;
        }
    }

    private static List<String> column(ResultSet results, String... names) throws SQLException {
        try (results) {
            List<String> found = new ArrayList<>();
            while (results.next()) {
                StringBuilder text = new StringBuilder();
                for (String name : names) {
                    text.append(text.length() == 0 ? "" : ":").append(results.getString(name));
                }
                found.add(text.toString());
            }
            return found;
        }
    }

    private static List<List<String>> query(Connection connection, String sql) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            return rows(statement.executeQuery(sql));
        }
    }

    public static void main(String[] arguments) throws Exception {
        Properties login = new Properties();
        if (arguments.length > 4) {
            login.put("user", arguments[3]);
            login.put("password", arguments[4]);
        } else if (arguments.length > 3) {
            login.put("token", arguments[3]);
        }
        String table = arguments[2];
        String url = arguments[1];
        switch (arguments[0]) {
            case "login" -> {
                try (Connection connection = DriverManager.getConnection(url, login)) {
                    say("user", () -> query(connection, "SELECT current_user"));
                } catch (SQLException error) {
                    System.out.println("user = SQLException: " + error.getMessage());
                }
            }
            case "metadata" -> metadata(url, login, table);
            case "statements" -> statements(url, login, table);
            default -> throw new IllegalArgumentException(arguments[0]);
        }
    }

    private static void metadata(String url, Properties login, String table) throws Exception {
        try (Connection connection = DriverManager.getConnection(url, login)) {
            DatabaseMetaData data = connection.getMetaData();
            say("product", () -> data.getDatabaseProductName() + " " + data.getDatabaseProductVersion());
            say("quote", data::getIdentifierQuoteString);
            say("read only", data::isReadOnly);
            say("transactions", data::supportsTransactions);
            say("max columns", data::getMaxColumnsInTable);
            say("max statement", data::getMaxStatementLength);
            say("keywords", data::getSQLKeywords);
            say("nulls at end", data::nullsAreSortedAtEnd);
            say("outer joins", data::supportsFullOuterJoins);
            say("escape", data::getSearchStringEscape);
            say("catalogs", () -> column(data.getCatalogs(), "TABLE_CAT"));
            say("schemas", () -> column(data.getSchemas(), "TABLE_CATALOG", "TABLE_SCHEM"));
            say("schemas like", () -> column(data.getSchemas("iceberg", "def%"), "TABLE_SCHEM"));
            say("tables", () -> column(data.getTables(null, null, table, null), "TABLE_CAT", "TABLE_SCHEM", "TABLE_NAME", "TABLE_TYPE"));
            say("tables of no schema", () -> column(data.getTables("iceberg", "nope", "%", null), "TABLE_NAME"));
            say("views", () -> column(data.getTables("iceberg", "default", table + "%", new String[] {"VIEW"}), "TABLE_NAME"));
            say("table types", () -> column(data.getTableTypes(), "TABLE_TYPE"));
            say("columns", () -> column(data.getColumns("iceberg", "default", table, "%"),
                "COLUMN_NAME", "DATA_TYPE", "TYPE_NAME", "NULLABLE", "ORDINAL_POSITION"));
            say("decimal", () -> column(data.getColumns(null, null, table, "price"), "COLUMN_SIZE", "DECIMAL_DIGITS"));
            say("primary keys", () -> rows(data.getPrimaryKeys("iceberg", "default", table)));
            say("imported keys", () -> rows(data.getImportedKeys("iceberg", "default", table)));
            say("exported keys", () -> rows(data.getExportedKeys("iceberg", "default", table)));
            say("cross reference", () -> rows(data.getCrossReference(null, null, table, null, null, table)));
            say("type info", () -> column(data.getTypeInfo(), "TYPE_NAME", "DATA_TYPE"));
            say("index info", () -> rows(data.getIndexInfo(null, null, table, false, false)));
            say("procedures", () -> rows(data.getProcedures(null, null, "%")));
        }
    }

    private static void statements(String url, Properties login, String table) throws Exception {
        try (Connection connection = DriverManager.getConnection(url, login);
             Statement statement = connection.createStatement()) {
            say("create", () -> statement.executeUpdate(
                "CREATE TABLE " + table + " (id bigint, name varchar, price decimal(38,10), day date, at timestamp,"
                    + " ok boolean, ratio double, small integer, raw varbinary)"));
            say("insert", () -> statement.executeUpdate(
                "INSERT INTO " + table + " (id, name) VALUES (1, 'one'), (2, 'two')"));
            say("execute", () -> statement.execute("SELECT count(*) FROM " + table));
            say("execute update", () -> statement.execute("DELETE FROM " + table + " WHERE id = 2"));
            say("prepared insert", () -> {
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
            say("null parameters", () -> {
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
            say("batch", () -> {
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
            say("prepared query", () -> {
                try (PreparedStatement select = connection.prepareStatement(
                        "SELECT name FROM " + table + " WHERE id = ?")) {
                    List<String> names = new ArrayList<>();
                    for (long id : new long[] {1, 3, 12}) {
                        select.setLong(1, id);
                        names.addAll(column(select.executeQuery(), "name"));
                    }
                    return names;
                }
            });
            say("parameter count", () -> {
                try (PreparedStatement select = connection.prepareStatement("SELECT * FROM " + table + " WHERE id = ? AND name = ?")) {
                    return select.getParameterMetaData().getParameterCount();
                }
            });
            say("values", () -> {
                try (ResultSet results = statement.executeQuery("SELECT * FROM " + table + " WHERE id = 3")) {
                    results.next();
                    return results.getLong(1) + "|" + results.getString(2) + "|" + results.getBigDecimal(3) + "|"
                        + results.getDate(4) + "|" + results.getTimestamp(5) + "|" + results.getBoolean(6) + "|"
                        + results.getDouble(7) + "|" + results.getInt(8) + "|" + results.getBytes(9).length;
                }
            });
            say("nulls", () -> query(connection, "SELECT * FROM " + table + " WHERE id IS NULL"));
            say("result types", () -> {
                try (ResultSet results = statement.executeQuery("SELECT * FROM " + table)) {
                    ResultSetMetaData data = results.getMetaData();
                    List<String> types = new ArrayList<>();
                    for (int column = 1; column <= data.getColumnCount(); column++) {
                        types.add(data.getColumnName(column) + ":" + data.getColumnType(column));
                    }
                    return types;
                }
            });
            say("nested", () -> query(connection,
                "SELECT ARRAY[1, 2] AS l, MAP(ARRAY['a'], ARRAY[1]) AS m, CAST(ROW(1, 'x') AS ROW(a integer, b varchar)) AS r"));
            say("zoned", () -> query(connection, "SELECT TIMESTAMP '2026-01-02 03:04:05.000006 UTC' AS z, TIME '01:02:03' AS t"));
            say("rows", () -> {
                try (ResultSet results = statement.executeQuery("SELECT id FROM range(100000) AS r(id)")) {
                    long sum = 0;
                    while (results.next()) {
                        sum += results.getLong(1);
                    }
                    return sum;
                }
            });
            say("missing", () -> query(connection, "SELECT * FROM nowhere"));
            say("syntax", () -> query(connection, "SELEC 1"));
            say("update of rows", () -> statement.executeUpdate("SELECT 1"));
            say("schema before", connection::getSchema);
            say("autocommit", connection::getAutoCommit);
        }
    }
}
