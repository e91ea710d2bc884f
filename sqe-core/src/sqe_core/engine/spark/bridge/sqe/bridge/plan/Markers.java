package sqe.bridge.plan;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
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
    List<TreeNode<?>> nodes = Trees.all(plan);
    Columns columns = new Columns(nodes);
    Map<Integer, DataType> types = new TreeMap<>(); // by number
    for (TreeNode<?> node : nodes) {
      if (node instanceof BoundReference reference) put(types, reference, DataTypes.NullType, columns);
      if (node instanceof Cast cast) put(types, cast.child(), cast.dataType(), columns);
    }
    StructType found = new StructType();
    for (Map.Entry<Integer, DataType> each : types.entrySet()) found = found.add(each.getKey().toString(), each.getValue(), true);
    return found;
  }

  /** The first type counts, but any is better than none. */
  private static void put(Map<Integer, DataType> types, Expression expression, DataType type, Columns columns) {
    Set<Expression> values = new LinkedHashSet<>(Set.of(expression));
    for (Deque<Expression> rest = new ArrayDeque<>(values); !rest.isEmpty(); ) {
      Expression value = rest.pop();
      if (is(value)) {
        int number = ((BoundReference) value).ordinal() - FIRST;
        types.merge(number, type, (known, next) -> known instanceof NullType ? next : known);
      }
      if (value instanceof Attribute column)
        for (Expression each : columns.all(column.exprId())) if (values.add(each)) rest.add(each);
    }
  }
}
