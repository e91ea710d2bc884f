package sqe.bridge.functions;

import java.util.ArrayList;
import java.util.List;
import org.apache.iceberg.types.Type;
import org.apache.iceberg.types.Types;
import org.apache.spark.sql.types.*;

/** What typeof() answers: the names that users of the SQL dialect write. */
public final class TypeNames {
  private TypeNames() {}

  public static String of(DataType type) {
    return of(type, null);
  }

  /** What a type of Iceberg holds: the element, key and value, or the fields; null of null. */
  public static Type inside(Type origin, int place) {
    return origin == null ? null : origin.asNestedType().fields().get(place).type();
  }

  /** The name of a column's type, of which Iceberg may say more than Spark. */
  public static String of(DataType type, Type origin) {
    if (origin instanceof Types.UUIDType) return "uuid";
    if (origin instanceof Types.FixedType fixed) return "fixed(" + fixed.length() + ")";
    if (origin instanceof Types.TimestampNanoType nano)
      return nano.shouldAdjustToUTC() ? "timestamp(9) with time zone" : "timestamp(9)";
    if (type instanceof ArrayType array) return "array(" + of(array.elementType(), inside(origin, 0)) + ")";
    if (type instanceof MapType map)
      return "map(" + of(map.keyType(), inside(origin, 0)) + ", " + of(map.valueType(), inside(origin, 1)) + ")";
    if (type instanceof StructType row) {
      List<String> fields = new ArrayList<>();
      for (StructField field : row.fields()) {
        String name = origin == null ? field.name().replace("'", "") : field.name();
        fields.add(name + " " + of(field.dataType(), inside(origin, fields.size())));
      }
      return "row(" + String.join(", ", fields) + ")";
    }
    if (type instanceof DecimalType decimalType)
      return "decimal(" + decimalType.precision() + "," + decimalType.scale() + ")";
    if (type instanceof FloatType) return "real";
    return switch (TypeClasses.of(type)) {
      case "str" -> "varchar";
      case "dbl" -> "double";
      case "bool" -> "boolean";
      case "bin" -> "varbinary";
      case "date" -> "date";
      case "time" -> "time(6)";
      case "ts" -> "timestamp(6)";
      case "tsz" -> "timestamp(6) with time zone";
      case "var" -> "json";
      case "nul" -> "unknown";
      case "ivl" -> "interval day to second";
      case "ivm" -> "interval year to month";
      default -> type.simpleString().equals("int") ? "integer" : type.simpleString();
    };
  }
}
