package sqe.bridge.secure;

import java.util.List;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.Not;
import org.apache.spark.sql.catalyst.expressions.Or;
import org.apache.spark.sql.catalyst.expressions.TryEval;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.catalyst.trees.TreePattern;
import sqe.bridge.plan.Rebuild;
import sqe.bridge.plan.Trees;

/**
 * Hides a NULL below AND, OR and NOT from what Spark offers to data sources: it takes the NULL for a column there, and
 * fails on an assertion, as in bool_or(n > 1 AND f) where n is a constant NULL.
 */
public final class NullConditions extends Rule {
  public TreeNode apply(TreeNode plan) {
    return plan.containsPattern(TreePattern.NULL_LITERAL()) ? new Hidden().apply((LogicalPlan) plan) : plan;
  }

  private static final class Hidden extends Rebuild {
    protected TreeNode exchange(TreeNode node) {
      return null;
    }

    protected TreeNode finish(TreeNode before, TreeNode after) {
      if (!(after instanceof And) && !(after instanceof Or) && !(after instanceof Not)) return after;
      List children = Trees.list(after.children());
      boolean same = true;
      for (int i = 0; i < children.size(); i++) {
        if (!(children.get(i) instanceof Literal) || ((Literal) children.get(i)).value() != null) continue;
        children.set(i, new TryEval((Expression) children.get(i)));
        same = false;
      }
      return same ? after : after.withNewChildren(Trees.seq(children));
    }
  }
}
