import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.Statement;

/** A result of some megabytes, which is spooled where the connection asks for it. */
final class TrinoLarge {
    private TrinoLarge() {}

    static void ask(Connection connection) throws Exception {
        Answers.say("large", () -> {
            try (Statement statement = connection.createStatement();
                 ResultSet results = statement.executeQuery("SELECT id, 'a row of some length: ' || CAST(id AS varchar) AS t,"
                     + " CAST(id AS decimal(20,2)) AS d FROM range(300000) AS r(id)")) {
                long count = 0;
                long sum = 0;
                long length = 0;
                while (results.next()) {
                    count++;
                    sum += results.getLong(1);
                    length += results.getString(2).length();
                }
                return count + ":" + sum + ":" + length;
            }
        });
        Answers.say("left early", () -> {
            try (Statement statement = connection.createStatement();
                 ResultSet results = statement.executeQuery("SELECT id FROM range(30000000) AS r(id)")) {
                return results.next();
            }
        });
        Answers.say("small", () -> Answers.query(connection, "SELECT 1, 'x'"));
    }
}
