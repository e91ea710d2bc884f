import io.trino.jdbc.QueryStats;
import io.trino.jdbc.TrinoConnection;
import io.trino.jdbc.TrinoStatement;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.concurrent.atomic.AtomicReference;

/** What a connection keeps, counts, commits and is told on the way. */
final class TrinoSession {
    private TrinoSession() {}

    static void ask(Connection connection, String table) throws Exception {
        TrinoConnection trino = connection.unwrap(TrinoConnection.class);
        try (Statement statement = connection.createStatement()) {
            Answers.say("progress", () -> {
                AtomicReference<QueryStats> last = new AtomicReference<>();
                statement.unwrap(TrinoStatement.class).setProgressMonitor(last::set);
                long rows = Answers.rows(statement.executeQuery("SELECT id FROM range(50000) AS r(id)")).size();
                QueryStats stats = last.get();
                statement.unwrap(TrinoStatement.class).clearProgressMonitor();
                return rows + ":" + stats.getState() + ":" + stats.getProcessedRows() + ":"
                    + stats.getProgressPercentage().orElse(-1) + ":" + (stats.getElapsedTimeMillis() >= 0) + ":"
                    + !stats.getQueryId().isEmpty();
            });
            statement.execute("CREATE TABLE " + table + " (id bigint, name varchar)");
            Answers.say("counts", () -> {
                boolean rows = statement.execute("INSERT INTO " + table + " VALUES (1, 'a'), (2, 'b')");
                return rows + ":" + statement.getUpdateCount() + ":" + statement.getLargeUpdateCount() + ":"
                    + statement.getMoreResults() + ":" + statement.getUpdateCount();
            });
            Answers.say("large update", () -> statement.executeLargeUpdate("UPDATE " + table + " SET name = 'c'"));
            Answers.say("delete", () -> statement.executeUpdate("DELETE FROM " + table + " WHERE id = 2"));
            Answers.say("merge", () -> statement.executeUpdate("MERGE INTO " + table + " t USING (VALUES (1, 'm'), (5, 'n'))"
                + " AS s(id, name) ON t.id = s.id WHEN MATCHED THEN UPDATE SET name = s.name"
                + " WHEN NOT MATCHED THEN INSERT (id, name) VALUES (s.id, s.name)"));
            Answers.say("create as", () -> statement.executeUpdate("CREATE TABLE " + table + "_2 AS SELECT * FROM " + table));
            Answers.say("warnings", () -> statement.getWarnings() + ":" + connection.getWarnings());
            Answers.say("parameters", () -> {
                try (PreparedStatement select = connection.prepareStatement("SELECT * FROM " + table + " WHERE id = ?")) {
                    return select.getParameterMetaData().getParameterTypeName(1) + ":"
                        + select.getMetaData().getColumnName(2) + ":" + select.getMetaData().getColumnTypeName(1);
                }
            });
            Answers.say("current names", () -> connection.getCatalog() + "." + connection.getSchema());
            statement.execute("CREATE SCHEMA IF NOT EXISTS iceberg." + table);
            statement.execute("USE iceberg." + table);
            Answers.say("place after USE", () -> connection.getCatalog() + "." + connection.getSchema());
            connection.setSchema("default");
            Answers.say("place after setSchema", () -> Answers.query(connection, "SELECT current_catalog, current_schema"));
            Answers.say("property", () -> {
                trino.setSessionProperty("query_max_run_time", "7m");
                return Answers.rows(statement.executeQuery("SHOW SESSION LIKE 'query_max_run_time'")).get(0).get(1);
            });
            Answers.say("unknown property", () -> {
                statement.execute("SET SESSION nope = 1");
                return "was set";
            });
            connection.setClientInfo("ApplicationName", "the check");
            Answers.say("client info", () -> connection.getClientInfo("ApplicationName"));
            Answers.say("max field size", () -> statement.getMaxFieldSize() + ":" + statement.getFetchSize());
        }
        transactions(connection, table);
    }

    private static void transactions(Connection connection, String table) throws SQLException {
        Answers.say("reads in a transaction", () -> {
            connection.setAutoCommit(false);
            Object first = Answers.query(connection, "SELECT count(*) FROM " + table);
            Object second = Answers.query(connection, "SELECT count(*) FROM " + table);
            connection.commit();
            return first + ":" + second + ":" + connection.getAutoCommit();
        });
        Answers.say("a transaction is rolled back", () -> {
            Answers.query(connection, "SELECT 1");
            connection.rollback();
            return "true";
        });
        connection.setAutoCommit(true);
        Answers.say("afterwards", () -> Answers.query(connection, "SELECT 1"));
    }
}
