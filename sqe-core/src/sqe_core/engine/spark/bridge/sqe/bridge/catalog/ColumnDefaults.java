package sqe.bridge.catalog;

import java.nio.ByteBuffer;
import java.util.Map;
import org.apache.iceberg.expressions.Expressions;
import org.apache.iceberg.expressions.Literal;
import org.apache.iceberg.types.Type;
import org.apache.iceberg.types.Types;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.UnaryMinus;
import org.apache.spark.sql.catalyst.expressions.UnaryPositive;
import org.apache.spark.sql.catalyst.parser.CatalystSqlParser$;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.unsafe.types.UTF8String;
import sqe.bridge.BridgeException;
import sqe.bridge.plan.Trees;

/** Default values of columns, which Iceberg has from format version 3 on and its Spark catalog does not create. */
final class ColumnDefaults {
  private static final String FORMAT = "format-version";

  private ColumnDefaults() {}

  /** The field with its default, for old rows and for new ones. */
  static Types.NestedField withDefault(Types.NestedField field, Column column) {
    requireLiteral(column.name(), column.defaultValue().getSql());
    Literal<?> value = literal(column.defaultValue().getValue().value(), field.type());
    return Types.NestedField.from(field).withInitialDefault(value).withWriteDefault(value).build();
  }

  /** Spark would freeze `current_timestamp()` to the moment of the CREATE, which nobody means. */
  private static void requireLiteral(String column, String sql) {
    for (Expression node : Trees.expressions(CatalystSqlParser$.MODULE$.parseExpression(sql))) {
      boolean constant =
          node instanceof org.apache.spark.sql.catalyst.expressions.Literal
              || node instanceof UnaryMinus
              || node instanceof UnaryPositive
              || node instanceof Cast;
      if (!constant) throw new BridgeException("SQE_DEFAULT_NOT_LITERAL", column);
    }
  }

  static void requireFormat(Map<String, String> properties) {
    String version = properties.putIfAbsent(FORMAT, "3");
    if (version != null && Integer.parseInt(version.trim()) < 3)
      throw new BridgeException("SQE_DEFAULT_NEEDS_FORMAT_3", version);
  }

  /** Iceberg's literal of a value in Catalyst's form; null for NULL. */
  static Literal<?> literal(Object value, Type type) {
    if (value == null) return null;
    Object plain = value;
    if (value instanceof UTF8String) plain = value.toString();
    else if (value instanceof Decimal decimal) plain = decimal.toJavaBigDecimal();
    else if (value instanceof byte[] bytes) plain = ByteBuffer.wrap(bytes);
    else if (value instanceof Byte || value instanceof Short) plain = ((Number) value).intValue();
    Literal<?> typed = Expressions.lit(plain).to(type);
    if (typed == null) throw new BridgeException("SQE_DEFAULT_TYPE", type.toString());
    return typed;
  }
}
