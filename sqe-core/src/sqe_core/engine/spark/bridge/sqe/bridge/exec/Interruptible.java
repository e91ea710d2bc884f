package sqe.bridge.exec;

import org.apache.spark.TaskContext;
import org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.execution.ExpandExec;
import org.apache.spark.sql.execution.FilterExec;
import org.apache.spark.sql.execution.GenerateExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.joins.BaseJoinExec;
import org.apache.spark.sql.types.DataTypes;
import scala.Option;
import sqe.bridge.plan.Trees;

/**
 * Puts a look at the interrupt flag above everything that makes many rows of few. Spark looks at it between the rows of a
 * scan only: forty joins of two rows each would go on for years after their statement was cancelled (LIM-7).
 */
public final class Interruptible extends Rule<SparkPlan> {
  public static final String MARK = Interruptible.class.getName();

  public SparkPlan apply(SparkPlan plan) {
    return plan.transformUp(Trees.where(node -> multiplies(node) ? new FilterExec(look(), node) : null));
  }

  private static boolean multiplies(SparkPlan node) {
    return node instanceof BaseJoinExec || node instanceof GenerateExec || node instanceof ExpandExec;
  }

  private static StaticInvoke look() {
    return new StaticInvoke(
        Interruptible.class, DataTypes.BooleanType, "goesOn", Trees.seq(), Trees.seq(), false, false, false, Option.empty());
  }

  /** Called for each row, by generated code. */
  public static boolean goesOn() {
    if (Thread.currentThread().isInterrupted()) {
      TaskContext task = TaskContext.get();
      if (task != null) task.killTaskIfInterrupted();
    }
    return true;
  }
}
