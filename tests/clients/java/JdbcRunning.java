import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;

/** Statements that run: big results, limits, timeouts, and cancelling. */
final class JdbcRunning {
    private static final String NEVER_ENDS =
        "SELECT count(*) FROM range(40000) AS a(x) JOIN range(900000000) AS b(y) ON x <> y";

    private JdbcRunning() {}

    static void ask(Connection connection) throws Exception {
        Answers.say("a million", () -> {
            try (Statement statement = connection.createStatement()) {
                statement.setFetchSize(1000);
                long count = 0;
                long sum = 0;
                try (ResultSet results = statement.executeQuery(
                        "SELECT id, 'row ' || CAST(id AS varchar) AS name FROM range(1000000) AS r(id)")) {
                    while (results.next()) {
                        count++;
                        sum += results.getLong(1) + (results.getString(2).startsWith("row ") ? 0 : 1);
                    }
                }
                return count + ":" + sum;
            }
        });
        Answers.say("left early", () -> {
            for (int number = 0; number < 25; number++) {
                try (Statement statement = connection.createStatement();
                     ResultSet results = statement.executeQuery("SELECT id FROM range(100000000) AS r(id)")) {
                    results.next();
                }
            }
            return Answers.query(connection, "SELECT 1");
        });
        Answers.say("max rows", () -> {
            try (Statement statement = connection.createStatement()) {
                statement.setMaxRows(7);
                return Answers.rows(statement.executeQuery("SELECT id FROM range(100) AS r(id)")).size();
            }
        });
        Answers.say("large max rows", () -> {
            try (Statement statement = connection.createStatement()) {
                statement.setLargeMaxRows(7);
                return Answers.rows(statement.executeQuery("SELECT id FROM range(100) AS r(id)")).size();
            }
        });
        Answers.say("cancel", () -> {
            try (Statement statement = connection.createStatement()) {
                CompletableFuture<String> running = started(statement);
                Thread.sleep(1500);
                long began = System.nanoTime();
                statement.cancel();
                return running.get(20, TimeUnit.SECONDS) + waited(began);
            }
        });
        Answers.say("cancel while reading", () -> {
            try (Statement statement = connection.createStatement();
                 ResultSet results = statement.executeQuery("SELECT id FROM range(100000000) AS r(id)")) {
                results.next();
                statement.cancel();
                long began = System.nanoTime();
                try {
                    while (results.next()) {
                        results.getLong(1);
                    }
                    return "everything was read";
                } catch (SQLException error) {
                    return error.getMessage() + waited(began);
                }
            }
        });
        Answers.say("timeout", () -> {
            try (Statement statement = connection.createStatement()) {
                statement.setQueryTimeout(2);
                long began = System.nanoTime();
                return started(statement).get(30, TimeUnit.SECONDS) + waited(began);
            }
        });
        Answers.say("afterwards", () -> Answers.query(connection, "SELECT 1"));
    }

    private static CompletableFuture<String> started(Statement statement) {
        return CompletableFuture.supplyAsync(() -> {
            try {
                return Answers.rows(statement.executeQuery(NEVER_ENDS)).toString();
            } catch (SQLException error) {
                return error.getClass().getSimpleName() + " " + error.getMessage();
            }
        });
    }

    private static String waited(long began) {
        return " after " + TimeUnit.NANOSECONDS.toSeconds(System.nanoTime() - began) + " s";
    }
}
