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

  /** The name of a column's type, of which Iceberg may say more than Spark. */
  public static String of(DataType type, Type origin) {
    if (origin instanceof Types.UUIDType) return "uuid";
    if (origin instanceof Types.FixedType fixed) return "fixed(" + fixed.length() + ")";
    if (origin instanceof Types.TimestampNanoType nano)
      return nano.shouldAdjustToUTC() ? "timestamp(9) with time zone" : "timestamp(9)";
    if (type instanceof ArrayType array)
      return "array(" + of(array.elementType(), origin == null ? null : origin.asListType().elementType()) + ")";
    if (type instanceof MapType map) {
      String key = of(map.keyType(), origin == null ? null : origin.asMapType().keyType());
      return "map(" + key + ", " + of(map.valueType(), origin == null ? null : origin.asMapType().valueType()) + ")";
    }
    if (type instanceof StructType row) {
      List<String> fields = new ArrayList<>();
      for (StructField field : row.fields()) {
        Type inner = origin == null ? null : origin.asStructType().fields().get(fields.size()).type();
        String name = origin == null ? field.name().replace("'", "") : field.name();
        fields.add(name + " " + of(field.dataType(), inner));
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
