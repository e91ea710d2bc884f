package sqe.bridge;

import org.apache.spark.sql.catalyst.QueryPlanningTracker;

/**
 * Spark reports every rule that it applied here, which is the one place where a statement that hangs in planning can be
 * stopped between two rules. The statistics themselves are not kept.
 */
final class ExecTracker extends QueryPlanningTracker {
  private final String tag;
  private int calls;

  ExecTracker(String tag) {
    super(scala.Option.empty());
    this.tag = tag;
  }

  public void recordRuleInvocation(String rule, long nanos, boolean effective) {
    boolean look = Thread.currentThread().isInterrupted() || (++calls & 63) == 0;
    if (look && Running.isCancelled(tag)) throw new CancelledException();
  }
}
