package sqe.bridge.functions;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.sql.catalyst.plans.logical.Generate;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.OneRowRelation;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.types.*;
import scala.Option;
import scala.collection.immutable.Seq;
import scala.runtime.AbstractFunction1;
import sqe.bridge.Refusal;
import sqe.bridge.plan.Trees;

/**
 * UNNEST: arrays side by side, the shorter ones filled with NULL; arrays of rows become their fields, maps their keys and
 * values; the ordinality counts from 1. The first argument says whether there is one.
 */
final class UnnestFunction extends AbstractFunction1<Seq<Expression>, LogicalPlan> {
  private static final String NAME = "_sqe_unnest";

  private UnnestFunction() {}

  static void install(SparkSession session) {
    session.sessionState().tableFunctionRegistry().createOrReplaceTempFunction(NAME, new UnnestFunction(), "scala_udf");
  }

  public LogicalPlan apply(Seq<Expression> arguments) {
    List<Expression> given = Trees.list(arguments);
    boolean ordinality = Boolean.TRUE.equals(((Literal) given.get(0)).value());
    Expression[] values = given.subList(1, given.size()).toArray(new Expression[0]);
    return new Generate(
        generator(values, ordinality), Trees.seq(), false, Option.empty(), Trees.seq(), new OneRowRelation());
  }

  private static Generator generator(Expression[] values, boolean ordinality) {
    if (values.length == 1 && !ordinality && !isRows(values[0].dataType())) return new Explode(values[0]);
    return new Inline(FunctionTemplates.parse(zipped(values, ordinality), values));
  }

  private static boolean isRows(DataType type) {
    return type instanceof ArrayType array && array.elementType() instanceof StructType;
  }

  private static String zipped(Expression[] values, boolean ordinality) {
    List<String> columns = new ArrayList<>();
    List<String> sizes = new ArrayList<>();
    for (int i = 0; i < values.length; i++) {
      DataType type = values[i].dataType();
      if (!(type instanceof ArrayType || type instanceof MapType)) throw Refusal.ofTypes("unnest", TypeClasses.of(type));
      // An array that is NULL is an empty one beside others.
      String value = values.length == 1 ? "__a" + i : "coalesce(__a" + i + (type instanceof MapType ? ", map())" : ", array())");
      sizes.add("size(" + value + ")");
      if (type instanceof MapType) columns.addAll(List.of("map_keys(" + value + ")", "map_values(" + value + ")"));
      else if (isRows(type))
        for (StructField field : ((StructType) ((ArrayType) type).elementType()).fields())
          columns.add(value + "[" + TypeClasses.quoted(field.name()) + "]");
      else columns.add(value);
    }
    String size = values.length == 1 ? sizes.get(0) : "greatest(" + String.join(", ", sizes) + ")";
    if (ordinality) columns.add("slice(sequence(1L, CAST(" + size + " AS BIGINT) + 1L), 1, " + size + ")");
    return "arrays_zip(" + String.join(", ", columns) + ")";
  }
}
