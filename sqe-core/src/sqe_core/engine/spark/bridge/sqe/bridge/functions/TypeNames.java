package sqe.bridge.functions;

import org.apache.iceberg.types.Type;
import org.apache.iceberg.types.Types;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** What typeof() answers: the names that users of the SQL dialect write. */
public final class TypeNames {
  private TypeNames() {}

  /** The name of a column's type, of which Iceberg may say more than Spark. */
  public static String of(DataType type, Type origin) {
    if (origin instanceof Types.UUIDType) return "uuid";
    if (origin instanceof Types.FixedType fixedType) return "fixed(" + fixedType.length() + ")";
    if (origin instanceof Types.TimestampNanoType nanoType)
      return nanoType.shouldAdjustToUTC() ? "timestamp(9) with time zone" : "timestamp(9)";
    if (type instanceof ArrayType arrayType && origin != null)
      return "array(" + of(arrayType.elementType(), origin.asListType().elementType()) + ")";
    if (type instanceof MapType map && origin != null) {
      return "map(" + of(map.keyType(), origin.asMapType().keyType()) + ", " + of(map.valueType(), origin.asMapType().valueType()) + ")";
    }
    if (!(type instanceof StructType) || origin == null) return of(type);
    StringBuilder out = new StringBuilder("row(");
    StructField[] fields = ((StructType) type).fields();
    for (int i = 0; i < fields.length; i++) {
      Type inner = origin.asStructType().fields().get(i).type();
      out.append(i == 0 ? "" : ", ").append(fields[i].name()).append(' ').append(of(fields[i].dataType(), inner));
    }
    return out.append(')').toString();
  }

  public static String of(DataType type) {
    if (type instanceof ArrayType arrayType) return "array(" + of(arrayType.elementType()) + ")";
    if (type instanceof MapType mapType) return "map(" + of(mapType.keyType()) + ", " + of(mapType.valueType()) + ")";
    if (type instanceof StructType structType) {
      StringBuilder out = new StringBuilder("row(");
      StructField[] fields = structType.fields();
      for (int i = 0; i < fields.length; i++)
        out.append(i == 0 ? "" : ", ").append(fields[i].name().replace("'", "")).append(' ').append(of(fields[i].dataType()));
      return out.append(')').toString();
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
