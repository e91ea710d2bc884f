package sqe.bridge.functions;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.EvalMode$;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke;
import org.apache.spark.sql.catalyst.parser.CatalystSqlParser$;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.DecimalType;
import scala.Option;
import sqe.bridge.plan.Trees;

/**
 * Calls of static methods: `SqlMath.method(type, type, literal) -> type`, where a type may be empty to leave the argument
 * alone, and literals are arguments more.
 */
final class StaticCalls {
  private static final Map<String, Class<?>> OWNERS =
      Map.of(
          "SqlMath", SqlMath.class,
          "SqlText", SqlText.class,
          "SqlTime", SqlTime.class,
          "SqlZone", SqlZone.class,
          "SqlJson", SqlJson.class,
          "SqlBytes", SqlBytes.class,
          "SqlNetwork", SqlNetwork.class,
          "SqlStatistics", SqlStatistics.class);

  private StaticCalls() {}

  static Expression build(String text, Expression... values) {
    int open = text.indexOf('(');
    int close = text.lastIndexOf(") -> ");
    String[] method = text.substring(0, open).split("\\.");
    String[] types = text.substring(open + 1, close).split(",", -1);
    List<Expression> arguments = new ArrayList<>();
    for (int i = 0; i < values.length; i++) {
      String type = types[Math.min(i, types.length - 1)].trim();
      arguments.add(type.isEmpty() ? values[i] : cast(values[i], CatalystSqlParser$.MODULE$.parseDataType(type)));
    }
    for (int i = Math.max(1, values.length); i < types.length; i++)
      arguments.add(CatalystSqlParser$.MODULE$.parseExpression(types[i].trim()));
    String result = text.substring(close + 5).trim();
    DataType type;
    if (result.equals("quotient")) {
      DecimalType left = TypeClasses.decimal(values[0].dataType());
      DecimalType right = TypeClasses.decimal(values[1].dataType());
      int scale = Math.max(left.scale(), right.scale());
      int precision = Math.min(38, left.precision() + right.scale() + Math.max(0, right.scale() - left.scale()));
      type = new DecimalType(Math.max(precision, scale), scale);
      arguments.set(0, cast(arguments.get(0), left));
      arguments.set(1, cast(arguments.get(1), right));
      arguments.add(new Literal(Math.max(precision, scale), DataTypes.IntegerType));
      arguments.add(new Literal(scale, DataTypes.IntegerType));
    } else if (result.equals("same")) {
      type = values[0].dataType();
    } else {
      type = CatalystSqlParser$.MODULE$.parseDataType(result);
    }
    return new StaticInvoke(
        OWNERS.get(method[0]), type, method[1], Trees.seq(arguments), Trees.seq(), true, true, true, Option.empty());
  }

  private static Expression cast(Expression value, DataType type) {
    if (value.dataType().equals(type)) return value;
    return new Cast(value, type, Option.apply(SQLConf.get().sessionLocalTimeZone()), EvalMode$.MODULE$.ANSI());
  }
}
