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
import scala.Function1;
import scala.runtime.AbstractPartialFunction;
import sqe.bridge.plan.Trees;

/**
 * Puts a look at the interrupt flag above everything that makes many rows of few. Spark looks at it between the rows of a
 * scan only: forty joins of two rows each would go on for years after their statement was cancelled (LIM-7).
 */
public final class Interruptible extends Rule<SparkPlan> {
  public static final String MARK = Interruptible.class.getName();

  public SparkPlan apply(SparkPlan plan) {
    return plan.transformUp(new Above());
  }

  private static final class Above extends AbstractPartialFunction<SparkPlan, SparkPlan> {
    public boolean isDefinedAt(SparkPlan node) {
      return node instanceof BaseJoinExec || node instanceof GenerateExec || node instanceof ExpandExec;
    }

    public <A extends SparkPlan, B> B applyOrElse(A node, Function1<A, B> otherwise) {
      return isDefinedAt(node) ? (B) new FilterExec(look(), node) : otherwise.apply(node);
    }
  }

  private static StaticInvoke look() {
    return new StaticInvoke(
        Interruptible.class,
        DataTypes.BooleanType,
        "goesOn",
        Trees.none(),
        Trees.none(),
        false,
        false,
        false,
        scala.Option.empty());
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
