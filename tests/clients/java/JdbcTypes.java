import java.io.ByteArrayInputStream;
import java.io.StringReader;
import java.math.BigDecimal;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.sql.Array;
import java.sql.Connection;
import java.sql.Date;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.sql.Statement;
import java.sql.Time;
import java.sql.Timestamp;
import java.sql.Types;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.OffsetDateTime;
import java.util.Arrays;
import java.util.Calendar;
import java.util.TimeZone;
import java.util.UUID;

/** Each setter of a parameter, and each getter of a value. */
final class JdbcTypes {
    private JdbcTypes() {}

    private interface Setter {
        void set(PreparedStatement statement) throws Exception;
    }

    static void ask(Connection connection, String table) throws Exception {
        setters(connection);
        getters(connection);
        batches(connection, table);
    }

    private static void set(Connection connection, String name, String type, Setter setter) {
        Answers.say(name, () -> {
            try (PreparedStatement statement = connection.prepareStatement("SELECT CAST(? AS " + type + ") AS x")) {
                setter.set(statement);
                return Answers.rows(statement.executeQuery());
            }
        });
    }

    private static void setters(Connection connection) {
        Calendar utc = Calendar.getInstance(TimeZone.getTimeZone("UTC"));
        Instant instant = Instant.parse("2026-02-03T04:05:06.007Z");
        set(connection, "setBoolean", "boolean", s -> s.setBoolean(1, true));
        set(connection, "setByte", "tinyint", s -> s.setByte(1, (byte) -8));
        set(connection, "setShort", "smallint", s -> s.setShort(1, (short) -300));
        set(connection, "setInt", "integer", s -> s.setInt(1, Integer.MIN_VALUE));
        set(connection, "setLong", "bigint", s -> s.setLong(1, Long.MIN_VALUE));
        set(connection, "setFloat", "real", s -> s.setFloat(1, 1.5f));
        set(connection, "setDouble", "double", s -> s.setDouble(1, 0.1));
        set(connection, "setBigDecimal", "decimal(38,10)",
            s -> s.setBigDecimal(1, new BigDecimal("1234567890123456789012345678.0123456789")));
        set(connection, "setString", "varchar", s -> s.setString(1, "o'neil € 😀"));
        set(connection, "setNString", "varchar", s -> s.setNString(1, "ü"));
        set(connection, "setBytes", "varbinary", s -> s.setBytes(1, new byte[] {0, (byte) 255}));
        set(connection, "setDate", "date", s -> s.setDate(1, Date.valueOf("2026-02-03")));
        set(connection, "setDate calendar", "date", s -> s.setDate(1, Date.valueOf("2026-02-03"), utc));
        set(connection, "setTime", "time(6)", s -> s.setTime(1, Time.valueOf("04:05:06")));
        set(connection, "setTimestamp", "timestamp",
            s -> s.setTimestamp(1, Timestamp.valueOf("2026-02-03 04:05:06.007")));
        set(connection, "setTimestamp calendar", "timestamp", s -> s.setTimestamp(1, Timestamp.from(instant), utc));
        set(connection, "setTimestamp zoned", "timestamp with time zone",
            s -> s.setTimestamp(1, Timestamp.from(instant), utc));
        set(connection, "setNull", "bigint", s -> s.setNull(1, Types.BIGINT));
        set(connection, "setURL", "varchar", s -> s.setURL(1, URI.create("https://example.org/").toURL()));
        set(connection, "setCharacterStream", "varchar", s -> s.setCharacterStream(1, new StringReader("text")));
        set(connection, "setBinaryStream", "varbinary",
            s -> s.setBinaryStream(1, new ByteArrayInputStream(new byte[1])));
        set(connection, "setAsciiStream", "varchar",
            s -> s.setAsciiStream(1, new ByteArrayInputStream("text".getBytes(StandardCharsets.US_ASCII))));
        set(connection, "setObject null", "bigint", s -> s.setObject(1, null));
        set(connection, "setObject Long", "bigint", s -> s.setObject(1, 7L));
        set(connection, "setObject Integer to bigint", "bigint", s -> s.setObject(1, 7));
        set(connection, "setObject String to bigint", "bigint", s -> s.setObject(1, "7", Types.BIGINT));
        set(connection, "setObject Boolean", "boolean", s -> s.setObject(1, false));
        set(connection, "setObject Double", "double", s -> s.setObject(1, 0.5));
        set(connection, "setObject BigDecimal", "decimal(5,2)", s -> s.setObject(1, new BigDecimal("1.25")));
        set(connection, "setObject String", "varchar", s -> s.setObject(1, "text"));
        set(connection, "setObject bytes", "varbinary", s -> s.setObject(1, new byte[] {1}));
        set(connection, "setObject Timestamp", "timestamp",
            s -> s.setObject(1, Timestamp.valueOf("2026-02-03 04:05:06")));
        set(connection, "setObject LocalDate", "date", s -> s.setObject(1, LocalDate.of(2026, 2, 3)));
        set(connection, "setObject LocalTime", "time(6)", s -> s.setObject(1, LocalTime.of(4, 5, 6)));
        set(connection, "setObject LocalDateTime", "timestamp",
            s -> s.setObject(1, LocalDateTime.of(2026, 2, 3, 4, 5, 6)));
        set(connection, "setObject OffsetDateTime", "timestamp with time zone",
            s -> s.setObject(1, OffsetDateTime.parse("2026-02-03T04:05:06Z")));
        set(connection, "setObject UUID", "varchar", s -> s.setObject(1, new UUID(1, 2)));
        Answers.say("setString of no type", () -> {
            try (PreparedStatement statement = connection.prepareStatement("SELECT ? AS x")) {
                statement.setString(1, "text");
                return Answers.rows(statement.executeQuery());
            }
        });
        set(connection, "setArray", "array(bigint)",
            s -> s.setArray(1, connection.createArrayOf("BIGINT", new Object[] {1L, 2L})));
    }

    private static final String[] COLUMNS = {
        "true", "CAST(-8 AS tinyint)", "CAST(-300 AS smallint)", "7", "CAST(9223372036854775807 AS bigint)",
        "CAST(1.5 AS real)", "CAST(0.1 AS double)", "CAST('1234567890123456789012345678.0123456789' AS decimal(38,10))",
        "'ü€😀'", "X'00FF'", "DATE '2026-02-03'", "TIME '04:05:06.007'", "TIMESTAMP '2026-02-03 04:05:06.000007'",
        "TIMESTAMP '2026-02-03 04:05:06.000007 UTC'", "INTERVAL '36' HOUR", "INTERVAL '14' MONTH", "ARRAY[1, NULL]",
        "MAP(ARRAY['a'], ARRAY[1])", "CAST(ROW(1, 'x') AS ROW(a integer, b varchar))", "NULL",
    };

    private static String shown(Object value) throws SQLException {
        if (value instanceof byte[] bytes) {
            return Arrays.toString(bytes);
        }
        if (value instanceof Array array) {
            return Arrays.deepToString((Object[]) array.getArray());
        }
        return String.valueOf(value);
    }

    private static void getters(Connection connection) throws SQLException {
        for (String literal : COLUMNS) {
            try (Statement statement = connection.createStatement();
                 ResultSet results = statement.executeQuery("SELECT " + literal + " AS x")) {
                ResultSetMetaData data = results.getMetaData();
                results.next();
                Answers.say("meta " + literal, () -> data.getColumnTypeName(1) + ":" + data.getColumnType(1) + ":"
                    + data.getColumnClassName(1) + ":" + data.getPrecision(1) + ":" + data.getScale(1) + ":"
                    + data.isNullable(1) + ":" + data.getColumnLabel(1));
                Answers.say("getObject " + literal, () -> {
                    Object value = results.getObject("x");
                    return (value == null ? "" : value.getClass().getSimpleName()) + "|" + shown(value);
                });
                Answers.say("getString " + literal, () -> results.getString(1) + "|" + results.wasNull());
            }
        }
        String all = "SELECT " + String.join(", ", COLUMNS);
        try (Statement statement = connection.createStatement(); ResultSet r = statement.executeQuery(all)) {
            r.next();
            Calendar tokyo = Calendar.getInstance(TimeZone.getTimeZone("Asia/Tokyo"));
            Answers.say("getBoolean", () -> r.getBoolean(1));
            Answers.say("getByte", () -> r.getByte(2));
            Answers.say("getShort", () -> r.getShort(3));
            Answers.say("getInt", () -> r.getInt(4));
            Answers.say("getLong", () -> r.getLong(5));
            Answers.say("getInt too big", () -> r.getInt(5));
            Answers.say("getFloat", () -> r.getFloat(6));
            Answers.say("getDouble", () -> r.getDouble(7));
            Answers.say("getBigDecimal", () -> r.getBigDecimal(8));
            Answers.say("getNString", () -> r.getNString(9));
            Answers.say("getCharacterStream", () -> {
                char[] text = new char[20];
                return new String(text, 0, r.getCharacterStream(9).read(text));
            });
            Answers.say("getBytes", () -> Arrays.toString(r.getBytes(10)));
            Answers.say("getBinaryStream", () -> Arrays.toString(r.getBinaryStream(10).readAllBytes()));
            Answers.say("getDate", () -> r.getDate(11));
            Answers.say("getTime", () -> r.getTime(12));
            Answers.say("getTimestamp", () -> r.getTimestamp(13));
            Answers.say("getTimestamp zoned", () -> r.getTimestamp(14).toInstant());
            Answers.say("getTimestamp calendar", () -> r.getTimestamp(13, tokyo).toInstant());
            Answers.say("getArray", () -> shown(r.getArray(17)) + ":" + r.getArray(17).getBaseTypeName());
            Answers.say("getObject LocalDate", () -> r.getObject(11, LocalDate.class));
            Answers.say("getObject LocalTime", () -> r.getObject(12, LocalTime.class));
            Answers.say("getObject LocalDateTime", () -> r.getObject(13, LocalDateTime.class));
            Answers.say("getObject Instant", () -> r.getObject(14, Instant.class));
            Answers.say("getObject OffsetDateTime", () -> r.getObject(14, OffsetDateTime.class));
            Answers.say("getObject Long", () -> r.getObject(5, Long.class));
            Answers.say("getLong of NULL", () -> r.getLong(20) + "|" + r.wasNull());
            Answers.say("findColumn", () -> r.findColumn("nope"));
        }
    }

    private static void batches(Connection connection, String table) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            statement.executeUpdate("CREATE TABLE " + table + " (id bigint, name varchar)");
            Answers.say("batch of statements", () -> {
                statement.addBatch("INSERT INTO " + table + " VALUES (1, 'a'), (2, 'b')");
                try {
                    return Arrays.toString(statement.executeBatch());
                } catch (NullPointerException error) {
                    return "the driver cannot";
                }
            });
        }
        try (PreparedStatement insert = connection.prepareStatement("INSERT INTO " + table + " VALUES (?, ?)")) {
            Answers.say("batch of rows", () -> {
                for (int number = 10; number < 15; number++) {
                    insert.setLong(1, number);
                    if (number % 2 == 0) {
                        insert.setString(2, "even");
                    } else {
                        insert.setNull(2, Types.VARCHAR);
                    }
                    insert.addBatch();
                }
                return Arrays.toString(insert.executeBatch());
            });
            Answers.say("next batch", () -> {
                insert.setLong(1, 20);
                insert.setString(2, "next");
                insert.addBatch();
                return Arrays.toString(insert.executeBatch());
            });
        }
        Answers.say("after batches", () -> Answers.query(connection, "SELECT * FROM " + table + " ORDER BY id"));
    }
}
