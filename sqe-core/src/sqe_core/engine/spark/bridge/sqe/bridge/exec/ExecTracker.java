package sqe.bridge.exec;

import org.apache.spark.sql.catalyst.QueryPlanningTracker;
import org.apache.spark.unsafe.Platform;

/**
 * Spark reports every rule that it applied here, which is a place where a statement can be stopped between two rules. The
 * statistics themselves are not kept.
 */
final class ExecTracker extends QueryPlanningTracker {
  private final String tag;
  private int calls;

  ExecTracker(String tag) {
    super(scala.Option.empty());
    this.tag = tag;
  }

  public void recordRuleInvocation(String rule, long nanos, boolean effective) {
    requireRunning();
  }

  /** An InterruptedException, since Spark's many handlers for any other exception let it pass. */
  void requireRunning() {
    boolean look = Thread.currentThread().isInterrupted() || (++calls & 63) == 0;
    if (look && Running.isCancelled(tag)) Platform.throwException(new InterruptedException("cancelled"));
  }
}
