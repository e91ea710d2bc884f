package sqe.bridge.types;

import java.nio.ByteBuffer;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.ZoneOffset;
import java.time.temporal.ChronoUnit;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.Locale;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.iceberg.spark.SparkSchemaUtil;
import org.apache.iceberg.types.Type;
import org.apache.iceberg.types.Types;
import org.apache.iceberg.util.ByteBuffers;
import org.apache.spark.sql.catalyst.parser.CatalystSqlParser$;
import org.apache.spark.sql.types.*;
import sqe.bridge.BridgeException;

/**
 * Iceberg's types in the notation of SQE: Spark's words, Iceberg's where Spark has none. Both timestamps are written with
 * their suffix, since the plain word means one or the other by a setting.
 */
public final class IcebergTypes {
  private static final Pattern PLAIN = Pattern.compile("(?:[A-Za-z_][A-Za-z0-9_]*)?");

  private IcebergTypes() {}

  public static String text(Type type) {
    if (type instanceof Types.StructType row)
      return row(row.fields().stream().map(each -> name(each.name()) + ":" + text(each.type())));
    if (type instanceof Types.ListType listType) return "array<" + text(listType.elementType()) + ">";
    if (type instanceof Types.MapType mapType)
      return "map<" + text(mapType.keyType()) + "," + text(mapType.valueType()) + ">";
    if (type instanceof Types.LongType) return "bigint";
    if (type instanceof Types.DecimalType decimalType)
      return "decimal(" + decimalType.precision() + "," + decimalType.scale() + ")";
    if (type instanceof Types.FixedType fixedType) return "fixed(" + fixedType.length() + ")";
    if (type instanceof Types.TimestampType timestampType)
      return timestampType.shouldAdjustToUTC() ? "timestamp_ltz" : "timestamp_ntz";
    if (type instanceof Types.UnknownType) return "void";
    return type.toString(); // int, string, date, boolean, float, double, binary, time, uuid, timestamp_ns, variant, …
  }

  private static String row(Stream<String> fields) {
    return fields.collect(Collectors.joining(",", "struct<", ">"));
  }

  /** A Spark type in the same notation. */
  public static String text(DataType type) {
    if (type instanceof TimestampType) return "timestamp_ltz";
    if (type instanceof TimeType) return "time";
    if (type instanceof ArrayType arrayType) return "array<" + text(arrayType.elementType()) + ">";
    if (type instanceof MapType mapType) return "map<" + text(mapType.keyType()) + "," + text(mapType.valueType()) + ">";
    if (!(type instanceof StructType row)) return type.catalogString();
    return row(Arrays.stream(row.fields()).map(each -> name(each.name()) + ":" + text(each.dataType())));
  }

  private static String name(String name) {
    return PLAIN.matcher(name).matches() ? name : "`" + name.replace("`", "``") + "`";
  }

  /** The Iceberg type of a text in the same notation. */
  public static Type parse(String text) {
    String word = text.trim().toLowerCase(Locale.ROOT);
    if (word.equals("time") || word.startsWith("time(")) return Types.TimeType.get();
    if (word.equals("uuid")) return Types.UUIDType.get();
    if (word.startsWith("fixed("))
      return Types.FixedType.ofLength(Integer.parseInt(word.substring(6, word.length() - 1).trim()));
    if (word.equals("timestamp_ns")) return Types.TimestampNanoType.withoutZone();
    if (word.equals("timestamptz_ns")) return Types.TimestampNanoType.withZone();
    DataType type = CatalystSqlParser$.MODULE$.parseDataType(text);
    try {
      return SparkSchemaUtil.convert(type);
    } catch (UnsupportedOperationException unknown) {
      throw new BridgeException("SQE_NO_ICEBERG_TYPE", type.catalogString());
    }
  }

  /** A default value as SQL. */
  public static String sql(Object value, Type type) {
    if (value == null) return null;
    if (value instanceof CharSequence) return "'" + value.toString().replace("\\", "\\\\").replace("'", "\\'") + "'";
    if (value instanceof ByteBuffer buffer)
      return "X'" + HexFormat.of().withUpperCase().formatHex(ByteBuffers.toByteArray(buffer)) + "'";
    if (type instanceof Types.DateType) return "DATE '" + LocalDate.ofEpochDay(((Number) value).longValue()) + "'";
    if (type instanceof Types.TimestampType timestampType) {
      Instant moment = Instant.EPOCH.plus(((Number) value).longValue(), ChronoUnit.MICROS);
      String word = timestampType.shouldAdjustToUTC() ? "TIMESTAMP_LTZ" : "TIMESTAMP_NTZ";
      return word + " '" + LocalDateTime.ofInstant(moment, ZoneOffset.UTC).toString().replace('T', ' ') + "'";
    }
    return value.toString();
  }
}
