package sqe.bridge.plan;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.BoundReference;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.Expression;
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

  private Markers() {}

  static Expression of(int number) {
    return new BoundReference(FIRST + number, DataTypes.NullType, true);
  }

  public static boolean is(Object expression) {
    return expression instanceof BoundReference br && br.ordinal() >= FIRST;
  }

  static boolean within(TreeNode node) {
    ArrayDeque<TreeNode> stack = new ArrayDeque<>();
    stack.push(node);
    while (!stack.isEmpty()) {
      TreeNode next = stack.pop();
      if (is(next)) return true;
      List<TreeNode> below = new ArrayList<>();
      for (scala.collection.Iterator each = next.productIterator(); each.hasNext(); ) Trees.nodesIn(each.next(), below);
      for (var each : below) stack.push(each);
    }
    return false;
  }

  /** The types that an analysed plan gives its parameters, in columns named by their numbers; void where it gives none. */
  public static StructType types(LogicalPlan plan) {
    List nodes = nodes(plan);
    Map carriers = new HashMap(); // id of a column that is nothing but parameters -> their numbers
    // From below to above it is one round; columns of unions and of subqueries may take some more.
    for (boolean more = true; more; ) {
      more = false;
      for (int i = nodes.size() - 1; i >= 0; i--) {
        Object node = nodes.get(i);
        if (node instanceof Alias alias) {
          if (carry(carriers, alias.exprId(), numbers(alias.child(), carriers))) more = true;
        } else if (node instanceof Union union && carry(carriers, union)) more = true;
      }
    }
    Map<Integer, DataType> types = new TreeMap<>();
    for (int i = 0; i < nodes.size(); i++) {
      if (is(nodes.get(i))) put(types, numbers((Expression) nodes.get(i), carriers), DataTypes.NullType);
      if (!(nodes.get(i) instanceof Cast)) continue;
      put(types, numbers(((Cast) nodes.get(i)).child(), carriers), ((Cast) nodes.get(i)).dataType());
    }
    StructType found = new StructType();
    for (Map.Entry<Integer, DataType> entry : types.entrySet()) found = found.add(entry.getKey().toString(), entry.getValue(), true);
    return found;
  }

  /** The first type counts, but any is better than none. */
  private static void put(Map types, Set numbers, DataType type) {
    for (Object number : numbers) {
      Object known = types.get(number);
      if (known == null || known instanceof NullType) types.put(number, type);
    }
  }

  private static boolean carry(Map carriers, Object id, Set numbers) {
    Set known = (Set) carriers.get(id);
    if (known == null && !numbers.isEmpty()) carriers.put(id, known = new HashSet());
    return known != null && known.addAll(numbers);
  }

  private static boolean carry(Map carriers, Union union) {
    boolean more = false;
    for (scala.collection.Iterator each = union.children().iterator(); each.hasNext(); ) {
      scala.collection.Seq columns = ((LogicalPlan) each.next()).output();
      for (int i = 0; i < columns.size() && i < Trees.list(union.output()).size(); i++)
        if (carry(
            carriers,
            Trees.list(union.output()).get(i).exprId(),
            numbers((Expression) columns.apply(i), carriers))) more = true;
    }
    return more;
  }

  private static Set numbers(Expression expression, Map carriers) {
    if (is(expression)) return Collections.singleton(Integer.valueOf(((BoundReference) expression).ordinal() - FIRST));
    Object carried =
        expression instanceof AttributeReference ar ? carriers.get(ar.exprId()) : null;
    return carried == null ? Collections.emptySet() : (Set) carried;
  }

  private static List nodes(LogicalPlan plan) {
    List nodes = new ArrayList();
    nodes.add(plan);
    for (int i = 0; i < nodes.size(); i++) {
      TreeNode node = (TreeNode) nodes.get(i);
      for (scala.collection.Iterator each = node.productIterator(); each.hasNext(); ) Trees.nodesIn(each.next(), nodes);
    }
    return nodes;
  }
}
