package sqe.bridge.types;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.QueryContext;
import org.apache.spark.SparkThrowable;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.Cast$;
import org.apache.spark.sql.catalyst.expressions.CheckOverflowInTableInsert;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MergeRows;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DecimalType;
import sqe.bridge.functions.TypeClasses;
import sqe.bridge.plan.Trees;

/**
 * What a write would cut off without a word: Spark casts each value to the type of its column, and 1.6 becomes 1. Numbers
 * that are too big for a column fail when they are written; what has digits, a time or bytes that the column has no place
 * for fails here.
 */
public final class WriteCasts {
  private WriteCasts() {}

  /** Looks through an analysed INSERT, UPDATE, DELETE or MERGE. */
  public static void check(LogicalPlan plan) {
    visit(plan, null);
  }

  private static void visit(Object node, String column) {
    if (node instanceof Cast cast && cast.getTagValue(Cast$.MODULE$.BY_TABLE_INSERTION()).isDefined())
      check(cast, column);
    if (node instanceof MergeRows merge) {
      visitAll(merge.matchedInstructions(), merge);
      visitAll(merge.notMatchedInstructions(), merge);
      visitAll(merge.notMatchedBySourceInstructions(), merge);
      visit(merge.child(), null);
      return;
    }
    String name = column;
    if (node instanceof Alias alias && column == null) name = "`" + alias.name() + "`";
    if (node instanceof CheckOverflowInTableInsert insert) name = insert.columnName();
    if (node instanceof LogicalPlan) name = null;
    List<TreeNode> below = new ArrayList<>();
    for (scala.collection.Iterator each = ((scala.Product) node).productIterator(); each.hasNext(); )
      Trees.nodesIn(each.next(), below);
    for (var each : below) visit(each, name);
  }

  private static void visitAll(scala.collection.Seq<MergeRows.Instruction> instructions, MergeRows merge) {
    for (MergeRows.Instruction instruction : Trees.each(instructions)) {
      for (scala.collection.Iterator rows = instruction.outputs().iterator(); rows.hasNext(); ) {
        scala.collection.Seq row = (scala.collection.Seq) rows.next();
        for (int i = 0; i < row.size(); i++) {
          boolean named = i < Trees.list(merge.output()).size();
          visit(row.apply(i), named ? "`" + Trees.list(merge.output()).get(i).name() + "`" : null);
        }
      }
    }
  }

  private static void check(Cast cast, String column) {
    if (loses(cast.child().dataType(), cast.dataType())) throw new Refused(cast, column == null ? "" : column);
  }

  private static boolean loses(DataType from, DataType to) {
    String source = TypeClasses.of(from);
    String target = TypeClasses.of(to);
    if (target.equals("int")) return TypeClasses.fits(source, "fp|dec") && !source.equals("nul");
    if (target.equals("dec")) return source.equals("dec") ? scale(from) > scale(to) : isFloating(source);
    if (target.equals("flt")) return source.equals("dbl");
    if (target.equals("date") || target.equals("time")) return source.equals("ts") || source.equals("tsz");
    return target.equals("str") && source.equals("bin");
  }

  private static boolean isFloating(String type) {
    return type.equals("dbl") || type.equals("flt");
  }

  private static int scale(DataType type) {
    return ((DecimalType) type).scale();
  }

  /** It looks like Spark's own refusal of types that do not fit. */
  private static final class Refused extends RuntimeException implements SparkThrowable {
    private final Map parameters = new HashMap();
    private final QueryContext context;

    Refused(Cast cast, String column) {
      super("a value would lose digits");
      parameters.put("colName", column);
      parameters.put("srcType", '"' + cast.child().dataType().sql() + '"');
      parameters.put("targetType", '"' + cast.dataType().sql() + '"');
      context = cast.child().origin().context();
    }

    public String getCondition() {
      return "INCOMPATIBLE_DATA_FOR_TABLE.CANNOT_SAFELY_CAST";
    }

    public String getErrorClass() {
      return getCondition();
    }

    public String getSqlState() {
      return "KD000";
    }

    public Map getMessageParameters() {
      return parameters;
    }

    public QueryContext[] getQueryContext() {
      return new QueryContext[] {context};
    }
  }
}
