package sqe.bridge.catalog;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.apache.iceberg.Schema;
import org.apache.iceberg.spark.SparkSchemaUtil;
import org.apache.iceberg.types.Type;
import org.apache.iceberg.types.Types;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.TableInfo;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimeType;
import sqe.bridge.BridgeException;
import sqe.bridge.Json;
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
    if (needFormat3(info)) return true;
    Column[] columns = info.columns();
    for (var each : columns) if (TimeTypes.hasTime(each.dataType())) return true;
    return false;
  }

  static boolean needFormat3(TableInfo info) {
    Column[] columns = info.columns();
    for (var each : columns) if (each.defaultValue() != null) return true;
    return info.properties().containsKey(NANOSECONDS);
  }

  static Schema schema(TableInfo info) {
    Column[] columns = info.columns();
    Set nanoseconds = nanoseconds(info);
    StructField[] fields = new StructField[columns.length];
    for (int i = 0; i < columns.length; i++) {
      DataType type = TimeTypes.withIntegers(columns[i].dataType());
      StructField field = new StructField(columns[i].name(), type, columns[i].nullable(), Metadata.empty());
      fields[i] = columns[i].comment() == null ? field : field.withComment(columns[i].comment());
    }
    List converted = SparkSchemaUtil.convert(new StructType(fields)).columns();
    List all = new ArrayList();
    for (int i = 0; i < columns.length; i++) {
      Types.NestedField field = (Types.NestedField) converted.get(i);
      Type type = withTimes(field.type(), columns[i].dataType());
      if (nanoseconds.remove(columns[i].name())) type = inNanoseconds(columns[i].name(), type);
      field = Types.NestedField.of(field.fieldId(), field.isOptional(), field.name(), type, field.doc());
      all.add(columns[i].defaultValue() == null ? field : ColumnDefaults.withDefault(field, columns[i]));
    }
    if (!nanoseconds.isEmpty()) throw new BridgeException("SQE_NO_SUCH_COLUMN", String.valueOf(nanoseconds));
    return new Schema(all);
  }

  private static Set nanoseconds(TableInfo info) {
    Set names = new HashSet();
    String given = info.properties().get(NANOSECONDS);
    if (given == null) return names;
    JsonNode list = Json.read(given);
    for (var each : list) names.add(each.asText());
    return names;
  }

  private static Type inNanoseconds(String column, Type type) {
    if (!(type instanceof Types.TimestampType)) throw new BridgeException("SQE_NO_TIMESTAMP", column);
    boolean zone = ((Types.TimestampType) type).shouldAdjustToUTC();
    return zone ? Types.TimestampNanoType.withZone() : Types.TimestampNanoType.withoutZone();
  }

  /** The converted type with Iceberg's time where Spark's type has one. */
  private static Type withTimes(Type converted, DataType type) {
    if (type instanceof TimeType) return Types.TimeType.get();
    if (type instanceof ArrayType arrayType) {
      Types.ListType list = (Types.ListType) converted;
      Type element = withTimes(list.elementType(), arrayType.elementType());
      return list.isElementOptional()
          ? Types.ListType.ofOptional(list.elementId(), element)
          : Types.ListType.ofRequired(list.elementId(), element);
    }
    if (type instanceof MapType mapType) {
      Types.MapType map = (Types.MapType) converted;
      Type key = withTimes(map.keyType(), mapType.keyType());
      Type value = withTimes(map.valueType(), mapType.valueType());
      return map.isValueOptional()
          ? Types.MapType.ofOptional(map.keyId(), map.valueId(), key, value)
          : Types.MapType.ofRequired(map.keyId(), map.valueId(), key, value);
    }
    if (!(type instanceof StructType)) return converted;
    List before = ((Types.StructType) converted).fields();
    List after = new ArrayList();
    for (int i = 0; i < before.size(); i++) {
      Types.NestedField field = (Types.NestedField) before.get(i);
      Type inner = withTimes(field.type(), ((StructType) type).fields()[i].dataType());
      after.add(Types.NestedField.of(field.fieldId(), field.isOptional(), field.name(), inner, field.doc()));
    }
    return Types.StructType.of(after);
  }
}
