package sqe.bridge.time;

import org.apache.iceberg.Schema;
import org.apache.iceberg.spark.SparkSchemaUtil;
import org.apache.iceberg.types.Type;
import org.apache.iceberg.types.Types;
import org.apache.spark.sql.types.*;
import sqe.bridge.plan.Trees;

/** Spark's TIME in the place of Iceberg's time, which Spark's side of Iceberg converts to nothing, at any depth. */
public final class TimeTypes {
  static final TimeType TIME = new TimeType(6);

  private TimeTypes() {}

  /** The columns of an Iceberg schema in Spark's types: times are TIME, nanoseconds BIGINT. */
  public static StructType spark(Schema schema) {
    return (StructType) withTimes(SparkSchemaUtil.convert(PlainTypes.of(schema)), schema.asStruct());
  }

  public static boolean hasTime(DataType type) {
    return type.existsRecursively(part -> part instanceof TimeType);
  }

  public static boolean isNested(DataType type) {
    return type instanceof ArrayType || type instanceof MapType || type instanceof StructType;
  }

  /** The type with BIGINT in the place of TIME. */
  public static DataType withIntegers(DataType type) {
    return type.transformRecursively(Trees.where(part -> part instanceof TimeType ? DataTypes.LongType : null));
  }

  /** The type with TIME where Iceberg has a time; fields are found by their names, since a scan may read some of them. */
  static DataType withTimes(DataType type, Type original) {
    if (original instanceof Types.TimeType) return TIME;
    if (type instanceof ArrayType array) {
      return new ArrayType(withTimes(array.elementType(), original.asListType().elementType()), array.containsNull());
    }
    if (type instanceof MapType map) {
      Types.MapType found = original.asMapType();
      DataType key = withTimes(map.keyType(), found.keyType());
      return new MapType(key, withTimes(map.valueType(), found.valueType()), map.valueContainsNull());
    }
    if (!(type instanceof StructType)) return type;
    StructField[] before = ((StructType) type).fields();
    StructField[] after = new StructField[before.length];
    for (int i = 0; i < before.length; i++) {
      Types.NestedField field = original.asStructType().field(before[i].name());
      DataType inner = field == null ? before[i].dataType() : withTimes(before[i].dataType(), field.type());
      after[i] = new StructField(before[i].name(), inner, before[i].nullable(), before[i].metadata());
    }
    return new StructType(after);
  }
}
