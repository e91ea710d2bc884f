package sqe.bridge;

import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** What typeof() answers: the names that users of the SQL dialect write. */
final class TypeNames {
  private TypeNames() {}

  static String of(DataType type) {
    if (type instanceof ArrayType) return "array(" + of(((ArrayType) type).elementType()) + ")";
    if (type instanceof MapType)
      return "map(" + of(((MapType) type).keyType()) + ", " + of(((MapType) type).valueType()) + ")";
    if (type instanceof StructType) {
      StringBuilder out = new StringBuilder("row(");
      StructField[] fields = ((StructType) type).fields();
      for (int i = 0; i < fields.length; i++)
        out.append(i == 0 ? "" : ", ").append(fields[i].name().replace("'", "")).append(' ').append(of(fields[i].dataType()));
      return out.append(')').toString();
    }
    if (type instanceof DecimalType)
      return "decimal(" + ((DecimalType) type).precision() + "," + ((DecimalType) type).scale() + ")";
    if (type instanceof FloatType) return "real";
    String word = TypeClasses.of(type);
    if (word.equals("str")) return "varchar";
    if (word.equals("dbl")) return "double";
    if (word.equals("bool")) return "boolean";
    if (word.equals("bin")) return "varbinary";
    if (word.equals("date")) return "date";
    if (word.equals("time")) return "time(6)";
    if (word.equals("ts")) return "timestamp(6)";
    if (word.equals("tsz")) return "timestamp(6) with time zone";
    if (word.equals("var")) return "json";
    if (word.equals("nul")) return "unknown";
    if (word.equals("ivl")) return "interval day to second";
    if (word.equals("ivm")) return "interval year to month";
    String name = type.simpleString();
    return name.equals("int") ? "integer" : name;
  }
}
