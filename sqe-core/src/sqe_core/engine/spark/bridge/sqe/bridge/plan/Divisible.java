package sqe.bridge.plan;

import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.plans.logical.*;

/**
 * Whether the rows of an analysed query may go to several readers: nobody asked for an order, and nothing says that
 * they are few.
 *
 * Looks at what lies on top of each other only, so in time that grows with the depth of the plan: `maxRows` of Spark asks
 * the sides of a join again and again. A Sort below a projection counts even where its column is not shown.
 */
public final class Divisible {
  private static final int FEW = 10000; // about what is sent as one batch

  private Divisible() {}

  public static boolean is(LogicalPlan plan) {
    boolean multiplied = false; // something above makes many rows of one
    while (true) {
      if (plan instanceof Sort) return false;
      if (plan instanceof Aggregate aggregate) {
        if (!Trees.list(aggregate.groupingExpressions()).isEmpty()) return true; // what was sorted below is not any more
        if (!multiplied) return false;
      }
      if (plan instanceof GlobalLimit limit && !multiplied && isFew(limit.limitExpr())) return false;
      multiplied |= plan instanceof Generate;
      if (plan instanceof WithCTE with) plan = with.plan();
      else if (plan instanceof UnaryNode node) plan = node.child();
      else return multiplied || !(plan instanceof OneRowRelation || plan instanceof LocalRelation);
    }
  }

  private static boolean isFew(Expression limit) {
    Object value = limit instanceof Literal literal ? literal.value() : null;
    return value instanceof Number number && number.longValue() <= FEW;
  }
}
