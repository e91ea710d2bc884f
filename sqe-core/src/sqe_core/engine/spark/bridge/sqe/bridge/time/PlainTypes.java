package sqe.bridge.time;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.UnaryOperator;
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
    return with(type, part -> part instanceof Types.TimeType || part instanceof Types.TimestampNanoType ? Types.LongType.get() : part);
  }

  /** The type with others for those that hold no types themselves. */
  public static Type with(Type type, UnaryOperator<Type> change) {
    if (type instanceof Types.StructType struct) return Types.StructType.of(fields(struct.fields(), change));
    if (type instanceof Types.ListType list) {
      Type element = with(list.elementType(), change);
      return list.isElementOptional()
          ? Types.ListType.ofOptional(list.elementId(), element)
          : Types.ListType.ofRequired(list.elementId(), element);
    }
    if (type instanceof Types.MapType map) {
      Type key = with(map.keyType(), change);
      Type value = with(map.valueType(), change);
      return map.isValueOptional()
          ? Types.MapType.ofOptional(map.keyId(), map.valueId(), key, value)
          : Types.MapType.ofRequired(map.keyId(), map.valueId(), key, value);
    }
    return change.apply(type);
  }

  private static List<Types.NestedField> fields(List<Types.NestedField> fields, UnaryOperator<Type> change) {
    List<Types.NestedField> changed = new ArrayList<>();
    for (Types.NestedField field : fields) {
      Type type = with(field.type(), change);
      // A default is a value of the field's own type; a changed field goes without.
      changed.add(
          type.equals(field.type())
              ? field
              : Types.NestedField.of(field.fieldId(), field.isOptional(), field.name(), type, field.doc()));
    }
    return changed;
  }

  static Schema of(Schema schema) {
    return new Schema(schema.schemaId(), plain(schema.asStruct()).asStructType().fields(), schema.identifierFieldIds());
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

    public Map<Integer, Schema> schemas() {
      Map<Integer, Schema> schemas = new HashMap<>(super.schemas());
      schemas.replaceAll((id, schema) -> of(schema));
      return schemas;
    }
  }
}
