import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.Set;
import java.util.TreeSet;

/** Every method of DatabaseMetaData, with every result read to its end. */
final class TrinoMetadata {
    private TrinoMetadata() {}

    static void ask(Connection connection, String table) throws Exception {
        DatabaseMetaData data = connection.getMetaData();
        Set<String> refused = new TreeSet<>();
        int answered = 0;
        for (Method method : DatabaseMetaData.class.getMethods()) {
            if (method.getDeclaringClass() == Object.class) {
                continue;
            }
            try {
                Object answer = method.invoke(data, arguments(method, table));
                if (answer instanceof ResultSet results) {
                    Answers.rows(results);
                }
                answered++;
            } catch (InvocationTargetException error) {
                boolean said = error.getCause() instanceof SQLException;
                refused.add(method.getName() + (said ? "" : " FAILED " + error.getCause()));
            }
        }
        System.out.println("answered = " + answered);
        System.out.println("refused = " + refused);
    }

    private static Object[] arguments(Method method, String table) {
        Class<?>[] types = method.getParameterTypes();
        Object[] given = new Object[types.length];
        for (int number = 0; number < types.length; number++) {
            Class<?> type = types[number];
            given[number] = type == int.class ? (Object) 1
                : type == boolean.class ? (Object) true
                : type == String.class && number == 2 ? table
                : type == Class.class ? DatabaseMetaData.class
                : null;
        }
        return given;
    }
}
