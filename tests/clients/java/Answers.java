import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;

/** Prints one line "name = answer" for each question. */
final class Answers {
    interface Question {
        Object ask() throws Exception;
    }

    private Answers() {}

    static void say(String name, Question question) {
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

    static List<List<String>> rows(ResultSet results) throws SQLException {
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

    static List<String> names(ResultSet results) throws SQLException {
        try (results) {
            ResultSetMetaData data = results.getMetaData();
            List<String> names = new ArrayList<>();
            for (int column = 1; column <= data.getColumnCount(); column++) {
                names.add(data.getColumnLabel(column));
            }
            return names;
        }
    }

    static List<String> column(ResultSet results, String... names) throws SQLException {
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

    static List<List<String>> query(Connection connection, String sql) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            return rows(statement.executeQuery(sql));
        }
    }
}
