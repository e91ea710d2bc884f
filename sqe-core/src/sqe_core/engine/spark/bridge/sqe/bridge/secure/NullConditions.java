package sqe.bridge.secure;

import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.catalyst.trees.TreePattern;
import sqe.bridge.plan.Rebuild;

/**
 * Hides a NULL below AND, OR and NOT from what Spark offers to data sources: it takes the NULL for a column there, and
 * fails on an assertion, as in bool_or(n > 1 AND f) where n is a constant NULL.
 */
public final class NullConditions extends Rule<LogicalPlan> {
  public LogicalPlan apply(LogicalPlan plan) {
    return plan.containsPattern(TreePattern.NULL_LITERAL()) ? Rebuild.each(plan, NullConditions::hidden) : plan;
  }

  private static TreeNode<?> hidden(TreeNode<?> node) {
    if (!(node instanceof And) && !(node instanceof Or) && !(node instanceof Not)) return node;
    return ((Expression) node)
        .mapChildren(each -> each instanceof Literal literal && literal.value() == null ? new TryEval(literal) : each);
  }
}
