package sqe.bridge.plan;

import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.QueryExecution;
import sqe.bridge.BridgeException;

/**
 * A plan that Python knows by number. An analysed one holds the execution that was verified (ENF-13), which is made for
 * analysis only: its mode is SKIP, so it never runs a command by itself. A parsed plan has none, and no tag.
 */
public record PlanHandle(LogicalPlan plan, QueryExecution execution, String tag, List<PlanWalk.Relation> relations) {
  public static PlanHandle find(Map<Long, PlanHandle> plans, long number) {
    PlanHandle handle = plans.get(number);
    if (handle == null) throw new BridgeException("SQE_NO_SUCH_PLAN", "plan " + number);
    return handle;
  }
}
