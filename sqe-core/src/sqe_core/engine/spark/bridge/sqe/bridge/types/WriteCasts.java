package sqe.bridge.types;

import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MergeRows;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DecimalType;
import sqe.bridge.Refusal;
import sqe.bridge.functions.TypeClasses;
import sqe.bridge.plan.Columns;
import sqe.bridge.plan.Trees;

/**
 * What a write would cut off without a word: Spark casts each value to the type of its column, and 1.6 becomes 1. Numbers
 * that are too big for a column fail when they are written; what has digits, a time or bytes that the column has no place
 * for fails here.
 */
public final class WriteCasts {
  private final List<TreeNode<?>> nodes;
  private final Columns columns;

  private WriteCasts(LogicalPlan plan) {
    nodes = Trees.all(plan);
    columns = new Columns(nodes);
  }

  /** Looks through an analysed INSERT, UPDATE, DELETE or MERGE. */
  public static void check(LogicalPlan plan) {
    new WriteCasts(plan).visit(plan, null);
  }

  private void visit(TreeNode<?> node, String column) {
    if (node instanceof Cast cast && cast.getTagValue(Cast$.MODULE$.BY_TABLE_INSERTION()).isDefined()) check(cast, column);
    if (node instanceof MergeRows merge) {
      for (var each : List.of(merge.matchedInstructions(), merge.notMatchedInstructions(), merge.notMatchedBySourceInstructions()))
        for (MergeRows.Instruction instruction : Trees.each(each)) for (var row : Trees.each(instruction.outputs())) visitRow(row, merge);
      visit(merge.child(), null);
      return;
    }
    String name = column;
    if (node instanceof Alias alias && column == null) name = quoted(alias);
    if (node instanceof CheckOverflowInTableInsert insert) name = insert.columnName();
    if (node instanceof LogicalPlan) name = null;
    for (TreeNode<?> each : Trees.below(node)) visit(each, name);
  }

  private void visitRow(scala.collection.Seq<Expression> row, MergeRows merge) {
    List<Attribute> columns = Trees.list(merge.output());
    for (int i = 0; i < row.size(); i++) visit(row.apply(i), i < columns.size() ? quoted(columns.get(i)) : null);
  }

  private static String quoted(NamedExpression column) {
    return "`" + column.name() + "`";
  }

  private void check(Cast cast, String column) {
    if (!loses(cast.child(), cast.dataType())) return;
    Map<String, String> parameters =
        Map.of(
            "colName", column == null ? "" : column,
            "srcType", '"' + cast.child().dataType().sql() + '"',
            "targetType", '"' + cast.dataType().sql() + '"');
    // Spark's own refusal of types that do not fit.
    throw new Refusal("INCOMPATIBLE_DATA_FOR_TABLE.CANNOT_SAFELY_CAST", "KD000", parameters, cast.child().origin().context());
  }

  private boolean loses(Expression value, DataType to) {
    DataType from = value.dataType();
    String source = TypeClasses.of(from);
    String target = TypeClasses.of(to);
    if (target.equals("int")) return isFloating(source) || source.equals("dec") && scale(from) > 0;
    if (target.equals("dec")) return source.equals("dec") ? scale(from) > scale(to) : isFloating(source);
    if (target.equals("flt")) return source.equals("dbl") && !isWritten(value);
    if (target.equals("date") || target.equals("time")) return source.equals("ts") || source.equals("tsz");
    return target.equals("str") && source.equals("bin");
  }

  /** Whether a double is nothing but a number that somebody wrote, which is as near to the column's type as any decimal. */
  private boolean isWritten(Expression value) {
    if (value instanceof Literal literal) return fits((Double) literal.value());
    if (!(value instanceof AttributeReference name)) return false;
    Expression other = columns.valueOf(name.exprId());
    if (other != null) return !columns.isUnited(name.exprId()) && isWritten(other);
    for (TreeNode<?> node : nodes) if (node instanceof LocalRelation rows && rows.outputSet().contains(name)) return isWritten(rows, name);
    return false;
  }

  private static boolean isWritten(LocalRelation rows, AttributeReference name) {
    int column = Trees.<Attribute>list(rows.output()).indexOf(name);
    List<InternalRow> values = Trees.list(rows.data());
    return !values.isEmpty() && values.stream().allMatch(row -> fits(row.isNullAt(column) ? null : row.getDouble(column)));
  }

  private static boolean fits(Double value) {
    return value == null || value.isInfinite() || !Float.isInfinite(value.floatValue());
  }

  private static boolean isFloating(String type) {
    return type.equals("dbl") || type.equals("flt");
  }

  private static int scale(DataType type) {
    return ((DecimalType) type).scale();
  }
}
