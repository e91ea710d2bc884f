package sqe.bridge.plan;

import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.OneRowRelation;
import org.apache.spark.sql.catalyst.plans.logical.Project;

/** Whether an analysed query is one row of literals, what is computed of them, and the time: `SELECT 1`. */
public final class Constant {
  private Constant() {}

  public static boolean is(LogicalPlan plan) {
    return plan instanceof Project project && project.child() instanceof OneRowRelation && all(project.projectList());
  }

  /** An allow-list, so that nothing is among them that could take its time. */
  private static boolean all(scala.collection.Seq<?> expressions) {
    for (Object expression : Trees.each(expressions)) {
      boolean known =
          expression instanceof Literal
              || expression instanceof Alias
              || expression instanceof Cast
              || expression instanceof BinaryArithmetic
              || expression instanceof CurrentDate
              || expression instanceof CurrentTimestampLike;
      if (!known || !all(((Expression) expression).children())) return false;
    }
    return true;
  }
}
