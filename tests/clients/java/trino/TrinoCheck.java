import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.Properties;

/** Asks Trino's JDBC driver what tools ask it: what (several, with commas), URL, table, then properties as name=value. */
public final class TrinoCheck {
    public static void main(String[] arguments) throws Exception {
        Properties login = new Properties();
        for (int number = 3; number < arguments.length; number++) {
            String[] pair = arguments[number].split("=", 2);
            login.put(pair[0], pair[1]);
        }
        try (Connection connection = DriverManager.getConnection(arguments[1], login)) {
            for (String what : arguments[0].split(",")) {
                String table = arguments[2] + "_" + what;
                switch (what) {
                    case "login" -> {
                        Answers.say("user", () -> Answers.query(connection, "SELECT current_user"));
                        Answers.say("valid", () -> connection.isValid(5));
                    }
                    case "metadata" -> {
                        try (Statement statement = connection.createStatement()) {
                            statement.execute("CREATE TABLE " + table + " (id bigint NOT NULL COMMENT 'the key',"
                                + " name varchar, price decimal(38,10), at timestamp(6))");
                            statement.execute("CREATE VIEW " + table + "_view AS SELECT id FROM " + table);
                        }
                        JdbcMetadata.ask(connection, table);
                        TrinoMetadata.ask(connection, table);
                    }
                    case "statements" -> JdbcStatements.ask(connection, table);
                    case "types" -> JdbcTypes.ask(connection, table);
                    case "running" -> JdbcRunning.ask(connection);
                    case "session" -> TrinoSession.ask(connection, table);
                    case "large" -> TrinoLarge.ask(connection);
                    default -> throw new IllegalArgumentException(what);
                }
            }
        } catch (SQLException error) {
            System.out.println("connection = SQLException: " + error.getMessage());
        }
        // The driver's threads stay for a minute.
        System.exit(0);
    }
}
