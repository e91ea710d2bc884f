package sqe.bridge.boot;

import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.execution.ColumnarRule;
import scala.runtime.AbstractFunction1;
import scala.runtime.BoxedUnit;
import sqe.bridge.exec.Interruptible;
import sqe.bridge.secure.NullConditions;

/** What SQE adds to every session: joins that can be cancelled, and NULLs that data sources are not offered. */
public final class Extensions extends AbstractFunction1 {
  public Object apply(Object extensions) {
    ((SparkSessionExtensions) extensions).injectColumnar(new Builder());
    ((SparkSessionExtensions) extensions).injectPreCBORule(new NullBuilder());
    return BoxedUnit.UNIT;
  }

  private static final class Builder extends AbstractFunction1 {
    public Object apply(Object session) {
      return new LastRule();
    }
  }

  private static final class NullBuilder extends AbstractFunction1 {
    public Object apply(Object session) {
      return new NullConditions();
    }
  }

  /** Runs as one of the last rules, before code is generated. */
  private static final class LastRule extends ColumnarRule {
    public Rule postColumnarTransitions() {
      return new Interruptible();
    }
  }
}
