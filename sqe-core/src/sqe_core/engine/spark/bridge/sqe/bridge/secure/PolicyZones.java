package sqe.bridge.secure;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.TimeZoneAwareExpression;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.internal.SQLConf;
import sqe.bridge.plan.Rebuild;
import sqe.bridge.plan.Trees;

/**
 * The time of policies is UTC, whatever zone the statement's session has: what a user may see is no matter of what the user
 * calls the time. Filters and masks stand right above a name of ours that nobody else can write.
 */
public final class PolicyZones {
  private static final String MARKER = "_sqe_r_";
  private static final String ZONE = "UTC";

  private PolicyZones() {}

  /** The analysed plan with the conditions and masks of policies in UTC; the same object when they are. */
  public static LogicalPlan within(LogicalPlan plan) {
    if (SQLConf.get().sessionLocalTimeZone().equals(ZONE)) return plan;
    return new Rebuild() {
      protected TreeNode<?> finish(TreeNode<?> before, TreeNode<?> after) {
        if (after instanceof Filter filter && isPolicys(filter.child()))
          return Trees.with(filter, 0, inUtc(filter.condition()));
        if (after instanceof Project project && (isPolicys(project.child()) || isBarrier(project.child()))) {
          List<Object> columns = new ArrayList<>();
          for (NamedExpression column : Trees.each(project.projectList())) columns.add(inUtc((Expression) column));
          return Trees.with(project, 0, Trees.seq(columns));
        }
        return after;
      }
    }.apply(plan);
  }

  private static boolean isPolicys(LogicalPlan below) {
    return below instanceof SubqueryAlias alias && alias.alias().startsWith(MARKER);
  }

  /** What keeps a user's conditions from moving below those of the policy. */
  private static boolean isBarrier(LogicalPlan below) {
    return below instanceof Filter filter && isPolicys(filter.child());
  }

  private static Expression inUtc(Expression expression) {
    return (Expression)
        expression.transformUp(
            Trees.where(
                each ->
                    each instanceof TimeZoneAwareExpression aware && aware.timeZoneId().isDefined() && !aware.timeZoneId().get().equals(ZONE)
                        ? (Expression) aware.withTimeZone(ZONE)
                        : null));
  }
}
