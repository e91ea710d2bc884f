package sqe.bridge.plan;

import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.NullType;
import org.apache.spark.sql.types.StructType;

/**
 * Parameters of a statement that is only described. Each is a value without a type, which no text can name and which never
 * runs; what the analyser casts it to is the type that the statement expects there.
 */
public final class Markers {
  private static final int FIRST = 1000000000; // no row has so many columns

  private final Map<ExprId, Set<Integer>> carried = new HashMap<>(); // numbers, by columns that are nothing but parameters
  private final Map<Integer, DataType> types = new TreeMap<>(); // by number

  private Markers() {}

  static Expression of(int number) {
    return new BoundReference(FIRST + number, DataTypes.NullType, true);
  }

  public static boolean is(Object expression) {
    return expression instanceof BoundReference reference && reference.ordinal() >= FIRST;
  }

  static boolean within(TreeNode<?> node) {
    return Trees.all(node).stream().anyMatch(Markers::is);
  }

  /** The types that an analysed plan gives its parameters, in columns named by their numbers; void where it gives none. */
  public static StructType types(LogicalPlan plan) {
    Markers markers = new Markers();
    List<TreeNode<?>> nodes = Trees.all(plan);
    // From below to above it is one round; columns of unions and of subqueries may take some more.
    for (boolean more = true; more; ) {
      more = false;
      for (int i = nodes.size() - 1; i >= 0; i--) {
        if (nodes.get(i) instanceof Alias alias) more |= markers.carry(alias.exprId(), alias.child());
        else if (nodes.get(i) instanceof Union union) more |= markers.carry(union);
      }
    }
    for (TreeNode<?> node : nodes) {
      if (node instanceof BoundReference reference) markers.put(reference, DataTypes.NullType);
      if (node instanceof Cast cast) markers.put(cast.child(), cast.dataType());
    }
    StructType found = new StructType();
    for (Map.Entry<Integer, DataType> each : markers.types.entrySet()) found = found.add(each.getKey().toString(), each.getValue(), true);
    return found;
  }

  /** The first type counts, but any is better than none. */
  private void put(Expression expression, DataType type) {
    for (int number : numbers(expression)) types.merge(number, type, (known, next) -> known instanceof NullType ? next : known);
  }

  private boolean carry(ExprId column, Expression value) {
    Set<Integer> numbers = numbers(value);
    return !numbers.isEmpty() && carried.computeIfAbsent(column, each -> new HashSet<>()).addAll(numbers);
  }

  private boolean carry(Union union) {
    boolean more = false;
    List<Attribute> output = Trees.list(union.output());
    for (LogicalPlan child : Trees.each(union.children())) {
      List<Attribute> columns = Trees.list(child.output());
      for (int i = 0; i < Math.min(columns.size(), output.size()); i++) more |= carry(output.get(i).exprId(), columns.get(i));
    }
    return more;
  }

  private Set<Integer> numbers(Expression expression) {
    if (is(expression)) return Set.of(((BoundReference) expression).ordinal() - FIRST);
    return expression instanceof AttributeReference column ? carried.getOrDefault(column.exprId(), Set.of()) : Collections.emptySet();
  }
}
