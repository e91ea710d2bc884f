package sqe.bridge.secure;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.analysis.NamedRelation;
import org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute;
import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.sql.catalyst.plans.logical.*;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import sqe.bridge.catalog.Operations;
import sqe.bridge.plan.PlanHandle;
import sqe.bridge.plan.Rebuild;
import sqe.bridge.plan.Trees;

/**
 * UPDATE, DELETE and MERGE of the rows that a user sees (DML-3). Where Spark reads the target, the secured form of it
 * stands instead, with the barrier: conditions, joins and new values of the statement meet visible rows only.
 */
public final class VisibleRows {
  /** What Iceberg tells of a row beside its columns. */
  private static final Set<String> PLACES =
      Set.of("_spec_id", "_partition", "_file", "_pos", "_deleted", "_row_id", "_last_updated_sequence_number");

  private final Restricted restricted;
  private int placed;

  private VisibleRows(Restricted restricted) {
    this.restricted = restricted;
  }

  /** The plan with its target secured; null when it is no such command, or not understood. */
  public static LogicalPlan within(LogicalPlan plan, JsonNode restriction, Map<Long, PlanHandle> plans) {
    VisibleRows rows = new VisibleRows(new Restricted(restriction, plans));
    LogicalPlan secured = Rebuild.each(plan, rows::secured);
    return rows.placed == 1 ? secured : null;
  }

  private TreeNode<?> secured(TreeNode<?> after) {
    if (!(after instanceof WriteDelta) && !(after instanceof AppendData)) return after;
    V2WriteCommand write = (V2WriteCommand) after;
    V2WriteCommand secured = write.withNewQuery(new Reads(write.table()).apply(write.query()));
    return (TreeNode<?>) (secured instanceof WriteDelta delta ? simple(delta) : secured);
  }

  /**
   * The condition beside the query serves to drop whole files. Spark takes none there that reads a table below a barrier,
   * since that looks random to it; with a query in it nothing can be dropped anyway.
   */
  private static WriteDelta simple(WriteDelta write) {
    if (!SubqueryExpression$.MODULE$.hasSubquery(write.condition()) && write.condition().deterministic()) return write;
    DataSourceV2Relation target = (DataSourceV2Relation) write.originalTable();
    NamedRelation kept = Trees.with(target, 0, new VisibleRowsTable(((VisibleRowsTable) target.table()).table(), false));
    return write.copy(write.table(), Literal.TrueLiteral(), write.query(), kept, write.projections(), write.write());
  }

  /** What the statement reads of its own target: known by its columns, which no other reading of the table shares. */
  private final class Reads extends Rebuild {
    private final Attribute first;

    Reads(NamedRelation target) {
      first = Trees.first(((LogicalPlan) target).output());
    }

    protected TreeNode<?> exchange(TreeNode<?> node) {
      if (!(node instanceof DataSourceV2Relation relation)) return null;
      if (!Trees.first(relation.output()).exprId().equals(first.exprId())) return null;
      placed++;
      return restricted.target(named(relation), Trees.list(relation.output()).stream().map(Attribute::name).toList());
    }
  }

  /** Where a row lies tells how many hidden rows lie before it: such columns are not there, as in a query. */
  public static void refusePlaces(LogicalPlan parsed) {
    for (TreeNode<?> node : Trees.all(parsed)) {
      if (!(node instanceof UnresolvedAttribute name)) continue;
      for (String part : Trees.each(name.nameParts()))
        if (PLACES.contains(part.toLowerCase(Locale.ROOT))) Operations.missing(part);
    }
  }

  /** The table below its own name, as Spark puts it there. */
  private static SubqueryAlias named(DataSourceV2Relation relation) {
    Identifier identifier = relation.identifier().get();
    List<String> name = new ArrayList<>(List.of(relation.catalog().get().name()));
    name.addAll(List.of(identifier.namespace()));
    name.add(identifier.name());
    return Secured.named(relation, name);
  }

  /**
   * The condition of a DELETE with the policy before it: where it covers whole files, they are dropped by that condition
   * and no row is read.
   */
  public static LogicalPlan withCondition(LogicalPlan analysed, String marker) {
    return new Conditions(marker).apply(analysed);
  }

  private static final class Conditions extends Rebuild {
    private final String marker;
    private Expression policy;

    Conditions(String marker) {
      this.marker = marker;
    }

    protected TreeNode<?> finish(TreeNode<?> before, TreeNode<?> after) {
      // The policy's own one is the lower of the two.
      if (policy == null && after instanceof Filter filter && isNamed(filter.child())) policy = filter.condition();
      if (!(after instanceof WriteDelta write) || policy == null) return after;
      return write.copy(
          write.table(), new And(policy, write.condition()), write.query(), write.originalTable(), write.projections(), write.write());
    }

    private boolean isNamed(LogicalPlan plan) {
      return plan instanceof SubqueryAlias alias && alias.identifier().name().equals(marker);
    }
  }
}
