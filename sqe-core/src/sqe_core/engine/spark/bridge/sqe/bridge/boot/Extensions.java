package sqe.bridge.boot;

import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.execution.ColumnarRule;
import org.apache.spark.sql.execution.SparkPlan;
import scala.runtime.AbstractFunction1;
import scala.runtime.BoxedUnit;
import sqe.bridge.exec.Interruptible;
import sqe.bridge.secure.NullConditions;

/** What SQE adds to every session: joins that can be cancelled, and NULLs that data sources are not offered. */
public final class Extensions extends AbstractFunction1<SparkSessionExtensions, BoxedUnit> {
  public BoxedUnit apply(SparkSessionExtensions extensions) {
    extensions.injectColumnar(session -> new LastRule());
    extensions.injectPreCBORule(session -> new NullConditions());
    return BoxedUnit.UNIT;
  }

  /** Runs as one of the last rules, before code is generated. */
  private static final class LastRule extends ColumnarRule {
    public Rule<SparkPlan> postColumnarTransitions() {
      return new Interruptible();
    }
  }
}
