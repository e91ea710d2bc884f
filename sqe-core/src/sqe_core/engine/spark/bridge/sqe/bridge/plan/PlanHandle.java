package sqe.bridge.plan;

import java.util.List;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.QueryExecution;

/** A plan that Python knows by number. An analysed one holds the execution that was verified (ENF-13). */
public final class PlanHandle {
  public final long id;
  public final LogicalPlan plan;
  /** Null for a parsed plan. Made for analysis only: its mode is SKIP, so it never runs a command by itself. */
  public final QueryExecution execution;
  /** The tag under which it was analysed; null for a parsed plan. */
  public final String tag;

  final List<PlanWalk.Relation> relations; // by index

  public PlanHandle(long id, LogicalPlan plan, QueryExecution execution, String tag, List<PlanWalk.Relation> relations) {
    this.id = id;
    this.plan = plan;
    this.execution = execution;
    this.tag = tag;
    this.relations = relations;
  }
}
