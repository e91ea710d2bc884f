import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.ResultSet;
import java.sql.Types;
import java.util.Arrays;
import java.util.Comparator;

/** Everything that DBeaver and its like ask of DatabaseMetaData. */
final class JdbcMetadata {
    private JdbcMetadata() {}

    static void ask(Connection connection, String table) throws Exception {
        DatabaseMetaData data = connection.getMetaData();
        properties(data);
        Answers.say("converts", () -> data.supportsConvert(Types.VARCHAR, Types.INTEGER));
        Answers.say("catalogs", () -> Answers.column(data.getCatalogs(), "TABLE_CAT"));
        Answers.say("schemas", () -> Answers.column(data.getSchemas(), "TABLE_CATALOG", "TABLE_SCHEM"));
        Answers.say("schemas like", () -> Answers.column(data.getSchemas("iceberg", "def%"), "TABLE_SCHEM"));
        Answers.say("schemas of none", () -> Answers.column(data.getSchemas("nope", null), "TABLE_SCHEM"));
        tables(data, table);
        columns(data, table);
        Answers.say("table types", () -> Answers.column(data.getTableTypes(), "TABLE_TYPE"));
        Answers.say("type info", () -> Answers.column(
            data.getTypeInfo(), "TYPE_NAME", "DATA_TYPE", "PRECISION", "LITERAL_PREFIX", "CREATE_PARAMS", "NULLABLE"));
        empty("primary keys", () -> data.getPrimaryKeys("iceberg", "default", table));
        empty("imported keys", () -> data.getImportedKeys("iceberg", "default", table));
        empty("exported keys", () -> data.getExportedKeys("iceberg", "default", table));
        empty("cross reference", () -> data.getCrossReference(null, null, table, null, null, table));
        empty("index info", () -> data.getIndexInfo(null, null, table, false, false));
        empty("best row", () -> data.getBestRowIdentifier(null, null, table, DatabaseMetaData.bestRowSession, true));
        empty("version columns", () -> data.getVersionColumns(null, null, table));
        empty("procedures", () -> data.getProcedures(null, null, "%"));
        empty("procedure columns", () -> data.getProcedureColumns(null, null, "%", "%"));
        empty("functions", () -> data.getFunctions(null, null, "%"));
        empty("function columns", () -> data.getFunctionColumns(null, null, "%", "%"));
        empty("types of users", () -> data.getUDTs(null, null, "%", null));
        empty("attributes", () -> data.getAttributes(null, null, "%", "%"));
        empty("super types", () -> data.getSuperTypes(null, null, "%"));
        empty("super tables", () -> data.getSuperTables(null, null, "%"));
        empty("table privileges", () -> data.getTablePrivileges(null, null, table));
        empty("column privileges", () -> data.getColumnPrivileges(null, null, table, "%"));
        empty("pseudo columns", () -> data.getPseudoColumns(null, null, table, "%"));
        empty("client info", data::getClientInfoProperties);
    }

    /** Each method without arguments: names, limits, and the supports… flags. */
    private static void properties(DatabaseMetaData data) {
        Method[] methods = DatabaseMetaData.class.getMethods();
        Arrays.sort(methods, Comparator.comparing(Method::getName));
        for (Method method : methods) {
            Class<?> type = method.getReturnType();
            if (method.getParameterCount() == 0 && (type.isPrimitive() || type == String.class)) {
                Answers.say(method.getName(), () -> {
                    try {
                        return method.invoke(data);
                    } catch (InvocationTargetException error) {
                        throw (Exception) error.getCause();
                    }
                });
            }
        }
        for (int level : new int[] {0, 1, 2, 4, 8}) {
            Answers.say("isolation " + level, () -> data.supportsTransactionIsolationLevel(level));
        }
        for (int kind = ResultSet.TYPE_FORWARD_ONLY; kind <= ResultSet.TYPE_SCROLL_SENSITIVE; kind++) {
            int type = kind;
            Answers.say("results " + type, () -> data.supportsResultSetType(type) + ":"
                + data.supportsResultSetConcurrency(type, ResultSet.CONCUR_READ_ONLY) + ":"
                + data.supportsResultSetConcurrency(type, ResultSet.CONCUR_UPDATABLE));
        }
    }

    private static void tables(DatabaseMetaData data, String table) {
        Answers.say("tables", () -> Answers.column(
            data.getTables(null, null, table, null), "TABLE_CAT", "TABLE_SCHEM", "TABLE_NAME", "TABLE_TYPE"));
        Answers.say("tables like", () -> Answers.column(
            data.getTables("iceberg", "d_fault", table + "%", new String[] {"TABLE", "VIEW"}), "TABLE_NAME"));
        Answers.say("tables escaped", () -> Answers.column(
            data.getTables("iceberg", "default", table.replace("_", data.getSearchStringEscape() + "_"), null),
            "TABLE_NAME"));
        Answers.say("tables of no schema", () -> Answers.column(
            data.getTables("iceberg", "nope", "%", null), "TABLE_NAME"));
        Answers.say("tables of no catalog", () -> Answers.column(
            data.getTables("nope", null, "%", null), "TABLE_NAME"));
        Answers.say("tables of no type", () -> Answers.column(
            data.getTables(null, null, table, new String[] {"GLOBAL TEMPORARY"}), "TABLE_NAME"));
        Answers.say("views", () -> Answers.column(
            data.getTables("iceberg", "default", table + "%", new String[] {"VIEW"}), "TABLE_NAME"));
        Answers.say("system", () -> Answers.column(
            data.getTables("iceberg", "information_schema", "tables", null), "TABLE_NAME", "TABLE_TYPE"));
    }

    private static void columns(DatabaseMetaData data, String table) {
        Answers.say("columns", () -> Answers.column(
            data.getColumns("iceberg", "default", table, "%"),
            "COLUMN_NAME", "DATA_TYPE", "TYPE_NAME", "NULLABLE", "IS_NULLABLE", "ORDINAL_POSITION"));
        Answers.say("columns like", () -> Answers.column(data.getColumns(null, null, table, "n%"), "COLUMN_NAME"));
        Answers.say("decimal", () -> Answers.column(
            data.getColumns(null, null, table, "price"), "COLUMN_SIZE", "DECIMAL_DIGITS", "NUM_PREC_RADIX"));
        Answers.say("comment", () -> Answers.column(data.getColumns(null, null, table, "id"), "REMARKS"));
        Answers.say("system columns", () -> Answers.column(
            data.getColumns("iceberg", "information_schema", "tables", null), "COLUMN_NAME", "TYPE_NAME"));
        Answers.say("columns of a view", () -> Answers.column(
            data.getColumns(null, null, table + "_view", null), "COLUMN_NAME", "TYPE_NAME"));
    }

    private interface Results {
        ResultSet open() throws Exception;
    }

    /** The rows, and that the columns which JDBC names are there. */
    private static void empty(String name, Results results) {
        Answers.say(name, () -> Answers.rows(results.open()));
        Answers.say(name + " has", () -> Answers.names(results.open()));
    }
}
