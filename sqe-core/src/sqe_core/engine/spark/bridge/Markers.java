package sqe.bridge;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
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
final class Markers {
  private static final int FIRST = 1000000000; // no row has so many columns

  private Markers() {}

  static Expression of(int number) {
    return new BoundReference(FIRST + number, DataTypes.NullType, true);
  }

  static boolean is(Object expression) {
    return expression instanceof BoundReference && ((BoundReference) expression).ordinal() >= FIRST;
  }

  static boolean within(TreeNode node) {
    ArrayDeque stack = new ArrayDeque();
    stack.push(node);
    while (!stack.isEmpty()) {
      TreeNode next = (TreeNode) stack.pop();
      if (is(next)) return true;
      List below = new ArrayList();
      for (scala.collection.Iterator each = next.productIterator(); each.hasNext(); ) Trees.nodesIn(each.next(), below);
      for (int i = 0; i < below.size(); i++) stack.push(below.get(i));
    }
    return false;
  }

  /** The types that an analysed plan gives its parameters, in columns named by their numbers; unknown ones are missing. */
  static StructType types(LogicalPlan plan) {
    List nodes = nodes(plan);
    Map carriers = new HashMap(); // id of a column that is a bare parameter -> its number
    Map types = new TreeMap();
    // From below to above it is one round; columns of unions and of subqueries may take some more.
    for (int round = 0, before = -1; round < 10 && before != carriers.size(); round++) {
      before = carriers.size();
      for (int i = nodes.size() - 1; i >= 0; i--) {
        Object node = nodes.get(i);
        if (node instanceof Alias) carry(carriers, ((Alias) node).exprId(), number(((Alias) node).child(), carriers));
        else if (node instanceof Union) carry(carriers, (Union) node);
      }
    }
    for (int i = 0; i < nodes.size(); i++) {
      if (!(nodes.get(i) instanceof Cast)) continue;
      Cast cast = (Cast) nodes.get(i);
      Integer number = number(cast.child(), carriers);
      if (number != null && !types.containsKey(number)) types.put(number, cast.dataType());
    }
    StructType found = new StructType();
    for (java.util.Iterator each = types.entrySet().iterator(); each.hasNext(); ) {
      Map.Entry entry = (Map.Entry) each.next();
      DataType type = (DataType) entry.getValue();
      if (!(type instanceof NullType)) found = found.add(entry.getKey().toString(), type, true);
    }
    return found;
  }

  private static void carry(Map carriers, Object id, Integer number) {
    if (number != null && !carriers.containsKey(id)) carriers.put(id, number);
  }

  private static void carry(Map carriers, Union union) {
    for (scala.collection.Iterator each = union.children().iterator(); each.hasNext(); ) {
      LogicalPlan child = (LogicalPlan) each.next();
      for (int i = 0; i < child.output().size() && i < union.output().size(); i++)
        carry(
            carriers,
            ((Attribute) union.output().apply(i)).exprId(),
            (Integer) carriers.get(((Attribute) child.output().apply(i)).exprId()));
    }
  }

  private static Integer number(Expression expression, Map carriers) {
    if (is(expression)) return Integer.valueOf(((BoundReference) expression).ordinal() - FIRST);
    return expression instanceof AttributeReference
        ? (Integer) carriers.get(((AttributeReference) expression).exprId())
        : null;
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
