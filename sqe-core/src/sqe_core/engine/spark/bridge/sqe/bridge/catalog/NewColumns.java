package sqe.bridge.catalog;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Set;
import org.apache.iceberg.Schema;
import org.apache.iceberg.spark.SparkSchemaUtil;
import org.apache.iceberg.types.Type;
import org.apache.iceberg.types.Types;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.TableInfo;
import org.apache.spark.sql.types.*;
import sqe.bridge.BridgeException;
import sqe.bridge.Json;
import sqe.bridge.time.PlainTypes;
import sqe.bridge.time.TimeTypes;

/** The columns of CREATE TABLE with what Iceberg's Spark catalog does not convert: defaults, times, nanoseconds. */
final class NewColumns {
  /**
   * Names, as a JSON list, the timestamp columns that keep nanoseconds, which Spark's SQL cannot say. It is a word between
   * SQE's own parts and becomes no property of the table.
   */
  static final String NANOSECONDS = "sqe.bridge.nanosecond-columns";

  private NewColumns() {}

  static boolean needed(TableInfo info) {
    return needFormat3(info) || Arrays.stream(info.columns()).anyMatch(each -> TimeTypes.hasTime(each.dataType()));
  }

  static boolean needFormat3(TableInfo info) {
    boolean defaults = Arrays.stream(info.columns()).anyMatch(each -> each.defaultValue() != null);
    return defaults || info.properties().containsKey(NANOSECONDS);
  }

  static Schema schema(TableInfo info) {
    Column[] columns = info.columns();
    Set<String> nanoseconds = new HashSet<>(Json.texts(Json.read(info.properties().getOrDefault(NANOSECONDS, "[]"))));
    StructField[] fields = new StructField[columns.length];
    for (int i = 0; i < columns.length; i++) {
      DataType type = TimeTypes.withIntegers(columns[i].dataType());
      StructField field = new StructField(columns[i].name(), type, columns[i].nullable(), Metadata.empty());
      fields[i] = columns[i].comment() == null ? field : field.withComment(columns[i].comment());
    }
    Schema converted = SparkSchemaUtil.convert(new StructType(fields));
    List<Types.NestedField> all = new ArrayList<>();
    for (Column column : columns) {
      Types.NestedField field = converted.columns().get(all.size());
      Type type = withTimes(field.type(), column.dataType());
      if (nanoseconds.remove(column.name())) type = inNanoseconds(column.name(), type);
      field = Types.NestedField.from(field).ofType(type).build();
      all.add(column.defaultValue() == null ? field : ColumnDefaults.withDefault(field, column));
    }
    if (!nanoseconds.isEmpty()) throw new BridgeException("SQE_NO_SUCH_COLUMN", String.valueOf(nanoseconds));
    return new Schema(all);
  }

  private static Type inNanoseconds(String column, Type type) {
    if (!(type instanceof Types.TimestampType timestamp)) throw new BridgeException("SQE_NO_TIMESTAMP", column);
    return timestamp.shouldAdjustToUTC() ? Types.TimestampNanoType.withZone() : Types.TimestampNanoType.withoutZone();
  }

  /** The converted type with Iceberg's time where Spark's type has one. */
  private static Type withTimes(Type converted, DataType type) {
    List<DataType> parts = new ArrayList<>();
    type.existsRecursively(
        part -> {
          if (!TimeTypes.isNested(part)) parts.add(part);
          return false; // so that it looks at all of them
        });
    Iterator<DataType> next = parts.iterator();
    return PlainTypes.with(converted, part -> next.next() instanceof TimeType ? Types.TimeType.get() : part);
  }
}
