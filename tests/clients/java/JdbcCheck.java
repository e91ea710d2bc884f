import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.SQLException;
import java.util.Properties;

/** Asks the Flight SQL JDBC driver what tools ask it: what, URL, table, then properties as name=value. */
public final class JdbcCheck {
    public static void main(String[] arguments) throws Exception {
        String table = arguments[2];
        Properties login = new Properties();
        for (int number = 3; number < arguments.length; number++) {
            String[] pair = arguments[number].split("=", 2);
            login.put(pair[0], pair[1]);
        }
        try (Connection connection = DriverManager.getConnection(arguments[1], login)) {
            switch (arguments[0]) {
                case "login" -> {
                    Answers.say("user", () -> Answers.query(connection, "SELECT current_user"));
                    Answers.say("place", () -> Answers.query(connection, "SELECT current_catalog, current_schema"));
                    Answers.say("valid", () -> connection.isValid(5));
                }
                case "metadata" -> JdbcMetadata.ask(connection, table);
                case "statements" -> JdbcStatements.ask(connection, table);
                case "types" -> JdbcTypes.ask(connection, table);
                case "running" -> JdbcRunning.ask(connection);
                default -> throw new IllegalArgumentException(arguments[0]);
            }
        } catch (SQLException error) {
            System.out.println("connection = SQLException: " + error.getMessage());
        }
    }
}
