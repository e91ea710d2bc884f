package sqe.bridge;

import java.math.BigDecimal;
import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.iceberg.Schema;
import org.apache.iceberg.expressions.Expressions;
import org.apache.iceberg.expressions.Literal;
import org.apache.iceberg.spark.SparkSchemaUtil;
import org.apache.iceberg.types.Type;
import org.apache.iceberg.types.Types;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.UnaryMinus;
import org.apache.spark.sql.catalyst.expressions.UnaryPositive;
import org.apache.spark.sql.catalyst.parser.CatalystSqlParser$;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/** Default values of columns, which Iceberg has from format version 3 on and its Spark catalog does not create. */
final class ColumnDefaults {
  private static final String FORMAT = "format-version";

  private ColumnDefaults() {}

  static boolean any(Column[] columns) {
    for (int i = 0; i < columns.length; i++) if (columns[i].defaultValue() != null) return true;
    return false;
  }

  /** The Iceberg schema of the columns, with their defaults for old rows and for new ones. */
  static Schema schema(Column[] columns) {
    StructField[] fields = new StructField[columns.length];
    for (int i = 0; i < columns.length; i++) {
      Column column = columns[i];
      StructField field = new StructField(column.name(), column.dataType(), column.nullable(), org.apache.spark.sql.types.Metadata.empty());
      fields[i] = column.comment() == null ? field : field.withComment(column.comment());
    }
    List converted = new ArrayList(SparkSchemaUtil.convert(new StructType(fields)).columns());
    for (int i = 0; i < columns.length; i++) {
      if (columns[i].defaultValue() == null) continue;
      requireLiteral(columns[i].name(), columns[i].defaultValue().getSql());
      Types.NestedField field = (Types.NestedField) converted.get(i);
      Literal value = literal(columns[i].defaultValue().getValue().value(), field.type());
      converted.set(i, Types.NestedField.from(field).withInitialDefault(value).withWriteDefault(value).build());
    }
    return new Schema(converted);
  }

  /** Spark would freeze `current_timestamp()` to the moment of the CREATE, which nobody means. */
  private static void requireLiteral(String column, String sql) {
    ArrayDeque nodes = new ArrayDeque();
    nodes.push(CatalystSqlParser$.MODULE$.parseExpression(sql));
    while (!nodes.isEmpty()) {
      Expression node = (Expression) nodes.pop();
      boolean constant =
          node instanceof org.apache.spark.sql.catalyst.expressions.Literal
              || node instanceof UnaryMinus
              || node instanceof UnaryPositive
              || node instanceof Cast;
      if (!constant) throw new BridgeException("SQE_DEFAULT_NOT_LITERAL", column);
      for (scala.collection.Iterator each = node.children().iterator(); each.hasNext(); ) nodes.push(each.next());
    }
  }

  static void requireFormat(Map properties) {
    Object version = properties.get(FORMAT);
    if (version == null) properties.put(FORMAT, "3");
    else if (Integer.parseInt(version.toString().trim()) < 3)
      throw new BridgeException("SQE_DEFAULT_NEEDS_FORMAT_3", version.toString());
  }

  /** Iceberg's literal of a value in Catalyst's form; null for NULL. */
  static Literal literal(Object value, Type type) {
    if (value == null) return null;
    Literal literal;
    if (value instanceof UTF8String) literal = Expressions.lit(value.toString());
    else if (value instanceof Decimal) literal = Expressions.lit((BigDecimal) ((Decimal) value).toJavaBigDecimal());
    else if (value instanceof byte[]) literal = Expressions.lit(ByteBuffer.wrap((byte[]) value));
    else if (value instanceof Byte || value instanceof Short) literal = Expressions.lit(Integer.valueOf(((Number) value).intValue()));
    else literal = Expressions.lit(value);
    Literal typed = literal.to(type);
    if (typed == null) throw new BridgeException("SQE_DEFAULT_TYPE", type.toString());
    return typed;
  }
}
