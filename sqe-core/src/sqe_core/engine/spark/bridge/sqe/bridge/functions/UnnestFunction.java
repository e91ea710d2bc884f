package sqe.bridge.functions;

import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Explode;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Generator;
import org.apache.spark.sql.catalyst.expressions.Inline;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.plans.logical.Generate;
import org.apache.spark.sql.catalyst.plans.logical.OneRowRelation;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import sqe.bridge.plan.Trees;

/**
 * UNNEST: arrays side by side, the shorter ones filled with NULL; arrays of rows become their fields, maps their keys and
 * values; the ordinality counts from 1. The first argument says whether there is one.
 */
final class UnnestFunction extends scala.runtime.AbstractFunction1 {
  private static final String NAME = "_sqe_unnest";

  private UnnestFunction() {}

  static void install(SparkSession session) {
    session.sessionState().tableFunctionRegistry().createOrReplaceTempFunction(NAME, new UnnestFunction(), "scala_udf");
  }

  public Object apply(Object arguments) {
    List given = Trees.list((scala.collection.Seq) arguments);
    boolean ordinality = Boolean.TRUE.equals(((Literal) given.get(0)).value());
    Expression[] values = new Expression[given.size() - 1];
    for (int i = 0; i < values.length; i++) values[i] = (Expression) given.get(i + 1);
    return new Generate(
        generator(values, ordinality),
        Trees.none(),
        false,
        scala.Option.empty(),
        Trees.none(),
        new OneRowRelation());
  }

  private static Generator generator(Expression[] values, boolean ordinality) {
    if (values.length == 1 && !ordinality && !isRows(values[0].dataType())) return new Explode(values[0]);
    return new Inline(FunctionTemplates.parse(zipped(values, ordinality), values));
  }

  private static boolean isRows(DataType type) {
    return type instanceof ArrayType at && ((ArrayType) type).elementType() instanceof StructType;
  }

  private static String zipped(Expression[] values, boolean ordinality) {
    StringBuilder columns = new StringBuilder();
    StringBuilder sizes = new StringBuilder();
    for (int i = 0; i < values.length; i++) {
      DataType type = values[i].dataType();
      if (!(type instanceof ArrayType || type instanceof MapType))
        throw new TemplateMismatch("unnest", new String[] {TypeClasses.of(type)});
      // An array that is NULL is an empty one beside others.
      String value = values.length == 1 ? "__a" + i : "coalesce(__a" + i + (type instanceof MapType ? ", map())" : ", array())");
      sizes.append(i == 0 ? "" : ", ").append("size(").append(value).append(')');
      columns.append(i == 0 ? "" : ", ");
      if (type instanceof MapType) columns.append("map_keys(").append(value).append("), map_values(").append(value).append(')');
      else if (isRows(type)) columns.append(fields((StructType) ((ArrayType) type).elementType(), value));
      else columns.append(value);
    }
    if (ordinality) {
      String size = values.length == 1 ? sizes.toString() : "greatest(" + sizes + ")";
      columns.append(", slice(sequence(1L, CAST(").append(size).append(" AS BIGINT) + 1L), 1, ").append(size).append(')');
    }
    return "arrays_zip(" + columns + ")";
  }

  private static String fields(StructType row, String value) {
    StringBuilder out = new StringBuilder();
    StructField[] fields = row.fields();
    for (int i = 0; i < fields.length; i++)
      out.append(i == 0 ? "" : ", ").append(value).append('[').append(TypeClasses.quoted(fields[i].name())).append(']');
    return out.toString();
  }
}
