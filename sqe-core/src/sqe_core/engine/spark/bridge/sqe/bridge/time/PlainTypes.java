package sqe.bridge.time;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.HasTableOperations;
import org.apache.iceberg.Schema;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableOperations;
import org.apache.iceberg.types.Type;
import org.apache.iceberg.types.Types;

/**
 * Iceberg tables with columns of types that Spark's side of Iceberg cannot read, which makes it refuse the whole table:
 * times and nanoseconds. Here they are what they are in the files, 64-bit integers.
 */
public final class PlainTypes {
  private PlainTypes() {}

  public static boolean areAll(Schema schema) {
    return plain(schema.asStruct()).equals(schema.asStruct());
  }

  private static Type plain(Type type) {
    if (type instanceof Types.TimeType || type instanceof Types.TimestampNanoType) return Types.LongType.get();
    if (type instanceof Types.StructType structType) return Types.StructType.of(fields(structType.fields()));
    if (type instanceof Types.ListType list) {
      Type element = plain(list.elementType());
      return list.isElementOptional()
          ? Types.ListType.ofOptional(list.elementId(), element)
          : Types.ListType.ofRequired(list.elementId(), element);
    }
    if (type instanceof Types.MapType map) {
      Type key = plain(map.keyType());
      Type value = plain(map.valueType());
      return map.isValueOptional()
          ? Types.MapType.ofOptional(map.keyId(), map.valueId(), key, value)
          : Types.MapType.ofRequired(map.keyId(), map.valueId(), key, value);
    }
    return type;
  }

  private static List<Types.NestedField> fields(List<Types.NestedField> fields) {
    List<Types.NestedField> plain = new ArrayList<>();
    for (Types.NestedField field : fields) {
      Type type = plain(field.type());
      // A default is a value of the field's own type; a changed field goes without.
      plain.add(
          type.equals(field.type())
              ? field
              : Types.NestedField.of(field.fieldId(), field.isOptional(), field.name(), type, field.doc()));
    }
    return plain;
  }

  static Schema of(Schema schema) {
    return new Schema(schema.schemaId(), fields(schema.columns()), schema.identifierFieldIds());
  }

  public static BaseTable over(Table table) {
    return new PlainTable(((HasTableOperations) table).operations(), table.name());
  }

  /** Reads like the table, with another schema. */
  private static final class PlainTable extends BaseTable {
    PlainTable(TableOperations operations, String name) {
      super(operations, name);
    }

    public Schema schema() {
      return of(super.schema());
    }

    public Map schemas() {
      Map schemas = new HashMap();
      for (Map.Entry entry : super.schemas().entrySet()) schemas.put(entry.getKey(), of((Schema) entry.getValue()));
      return schemas;
    }
  }
}
