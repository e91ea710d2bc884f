package sqe.bridge.types;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.arrow.vector.types.IntervalUnit;
import org.apache.arrow.vector.types.TimeUnit;
import org.apache.arrow.vector.types.pojo.ArrowType;
import org.apache.arrow.vector.types.pojo.Field;
import org.apache.arrow.vector.types.pojo.FieldType;
import org.apache.arrow.vector.types.pojo.Schema;
import org.apache.iceberg.SchemaParser;
import org.apache.iceberg.types.Type;
import org.apache.iceberg.types.Types;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.types.*;
import org.apache.spark.sql.util.ArrowUtils$;
import sqe.bridge.functions.TypeNames;
import sqe.bridge.plan.Trees;
import sqe.bridge.time.TimeTypes;

/**
 * The Arrow types of columns, for results, for their announcements and for tables alike, so that these are equal bit for
 * bit: Spark's own, but times in the microseconds that they have, intervals of months in the one type for them that
 * Arrow's readers know, and what Iceberg says more of a column than Spark.
 *
 * A uuid stays text that says so: the JDBC driver reads Arrow's `arrow.uuid` as raw bytes.
 */
public final class ArrowTypes {
  static final String SQL_TYPE = "sql_type";
  static final String COMMENT = "comment";
  private static final String ZONE = "sqe.zone"; // in which a time is told, likewise
  private static final String TABLE = "sqe.table"; // its catalog, schema and name, likewise
  private static final String ICEBERG = "sqe.iceberg-type"; // inside of the metadata of a column, on its way to a task

  private ArrowTypes() {}

  /** Whether Spark's type for a type of Iceberg says less: uuid and fixed, and nanoseconds, which are BIGINT there. */
  static boolean saysMore(Type type) {
    if (type instanceof Types.UUIDType || type instanceof Types.FixedType || type instanceof Types.TimestampNanoType)
      return true;
    return type.isNestedType() && type.asNestedType().fields().stream().anyMatch(each -> saysMore(each.type()));
  }

  /** The columns of a plan, each with what Iceberg says more of it. */
  public static StructType columns(LogicalPlan plan) {
    ColumnOrigins origins = new ColumnOrigins(plan);
    StructType columns = new StructType();
    for (Attribute column : Trees.each(plan.output())) {
      Type type = origins.of(column);
      Metadata metadata = column.metadata();
      if (type != null) metadata = with(metadata, ICEBERG, written(type));
      String declared = origins.declared(column);
      if (declared != null) metadata = with(metadata, SQL_TYPE, declared);
      String zone = origins.zone(column);
      if (zone != null) metadata = with(metadata, ZONE, zone);
      String[] table = origins.tableOf(column);
      if (table != null) metadata = new MetadataBuilder().withMetadata(metadata).putStringArray(TABLE, table).build();
      columns = columns.add(column.name(), column.dataType(), column.nullable(), metadata);
    }
    return columns;
  }

  /** The columns of a table as a query of them has them. */
  public static Schema schema(org.apache.iceberg.Schema table, String zone) {
    StructType spark = TimeTypes.spark(table);
    StructField[] fields = spark.fields();
    for (int i = 0; i < fields.length; i++) {
      Type type = table.columns().get(i).type();
      StructField fit = Output.transportable(fields[i]);
      Metadata metadata = saysMore(type) && fit == fields[i] ? with(fit.metadata(), ICEBERG, written(type)) : fit.metadata();
      fields[i] = new StructField(fit.name(), fit.dataType(), fit.nullable(), metadata);
    }
    return schema(new StructType(fields), zone, false);
  }

  static Metadata with(Metadata metadata, String key, String value) {
    return new MetadataBuilder().withMetadata(metadata).putString(key, value).build();
  }

  private static String written(Type type) {
    // Iceberg reads back a default or an identifier of a schema only with its ids, which a type has already.
    return SchemaParser.toJson(new org.apache.iceberg.Schema(Types.NestedField.optional(Integer.MAX_VALUE - 1, "type", type)));
  }

  public static Schema schema(StructType type, String zone, boolean largeTypes) {
    Schema spark = ArrowUtils$.MODULE$.toArrowSchema(type, zone, false, largeTypes);
    List<Field> fields = new ArrayList<>();
    for (StructField field : type.fields()) {
      Metadata said = field.metadata();
      Type origin = said.contains(ICEBERG) ? SchemaParser.fromJson(said.getString(ICEBERG)).columns().get(0).type() : null;
      Map<String, String> metadata = comment(field);
      if (said.contains(TABLE)) {
        String[] table = said.getStringArray(TABLE);
        metadata.put("table_catalog", table[0]);
        metadata.put("table_schema", table[1]);
        metadata.put("table_name", table[2]);
      }
      metadata.put(SQL_TYPE, said.contains(SQL_TYPE) ? said.getString(SQL_TYPE) : TypeNames.of(field.dataType(), origin));
      Field made = field(spark.getFields().get(fields.size()), field.dataType(), origin, metadata);
      fields.add(said.contains(ZONE) ? told(made, said.getString(ZONE)) : made);
    }
    return new Schema(fields);
  }

  /** A column of times, which are the same instants, in a time zone. */
  private static Field told(Field field, String zone) {
    if (!(field.getType() instanceof ArrowType.Timestamp)) return field;
    ArrowType type = new ArrowType.Timestamp(TimeUnit.MICROSECOND, zone);
    return new Field(field.getName(), new FieldType(field.isNullable(), type, null, field.getMetadata()), List.of());
  }

  private static Map<String, String> comment(StructField field) {
    Map<String, String> metadata = new HashMap<>();
    if (field.getComment().isDefined()) metadata.put(COMMENT, field.getComment().get());
    return metadata;
  }

  private static Field field(Field spark, DataType type, Type origin, Map<String, String> metadata) {
    if (origin instanceof Types.UUIDType) metadata.put(SQL_TYPE, "uuid");
    List<Field> children = new ArrayList<>();
    if (type instanceof ArrayType array) {
      children.add(field(child(spark, 0), array.elementType(), TypeNames.inside(origin, 0), new HashMap<>()));
    } else if (type instanceof MapType map) {
      Field entries = child(spark, 0);
      Field key = field(child(entries, 0), map.keyType(), TypeNames.inside(origin, 0), new HashMap<>());
      Field value = field(child(entries, 1), map.valueType(), TypeNames.inside(origin, 1), new HashMap<>());
      children.add(new Field(entries.getName(), entries.getFieldType(), List.of(key, value)));
    } else if (type instanceof StructType row) {
      for (StructField inner : row.fields()) {
        Type below = TypeNames.inside(origin, children.size());
        children.add(field(child(spark, children.size()), inner.dataType(), below, comment(inner)));
      }
    } else children = spark.getChildren();
    ArrowType exact = exact(spark.getType(), type, origin);
    return new Field(spark.getName(), new FieldType(spark.isNullable(), exact, null, metadata), children);
  }

  private static Field child(Field parent, int place) {
    return parent.getChildren().get(place);
  }

  private static ArrowType exact(ArrowType spark, DataType type, Type origin) {
    if (type instanceof TimeType) return new ArrowType.Time(TimeUnit.MICROSECOND, 64);
    if (type instanceof YearMonthIntervalType) return new ArrowType.Interval(IntervalUnit.MONTH_DAY_NANO);
    if (origin instanceof Types.FixedType fixedType && type instanceof BinaryType)
      return new ArrowType.FixedSizeBinary(fixedType.length());
    if (origin instanceof Types.TimestampNanoType nanoType && type instanceof LongType) {
      boolean zone = nanoType.shouldAdjustToUTC();
      return new ArrowType.Timestamp(TimeUnit.NANOSECOND, zone ? "UTC" : null);
    }
    return spark;
  }
}
