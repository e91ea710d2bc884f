package sqe.bridge.secure;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.AliasIdentifier;
import org.apache.spark.sql.catalyst.analysis.NamedRelation;
import org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression$;
import org.apache.spark.sql.catalyst.plans.logical.AppendData;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.catalyst.plans.logical.V2WriteCommand;
import org.apache.spark.sql.catalyst.plans.logical.WriteDelta;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import sqe.bridge.catalog.Operations;
import sqe.bridge.plan.Rebuild;
import sqe.bridge.plan.Trees;

/**
 * UPDATE, DELETE and MERGE of the rows that a user sees (DML-3). Where Spark reads the target, the secured form of it
 * stands instead, with the barrier: conditions, joins and new values of the statement meet visible rows only.
 */
public final class VisibleRows extends Rebuild {
  /** What Iceberg tells of a row beside its columns. */
  private static final Set PLACES =
      new HashSet(
          Arrays.asList(
              new Object[] {
                "_spec_id", "_partition", "_file", "_pos", "_deleted", "_row_id", "_last_updated_sequence_number"
              }));

  private final JsonNode restriction;
  private final Map plans;
  private int placed;

  private VisibleRows(JsonNode restriction, Map plans) {
    this.restriction = restriction;
    this.plans = plans;
  }

  /** The plan with its target secured; null when it is no such command, or not understood. */
  public static LogicalPlan within(LogicalPlan plan, JsonNode restriction, Map plans) {
    VisibleRows rows = new VisibleRows(restriction, plans);
    LogicalPlan secured = rows.apply(plan);
    return rows.placed == 1 ? secured : null;
  }

  protected TreeNode exchange(TreeNode node) {
    return null;
  }

  protected TreeNode finish(TreeNode before, TreeNode after) {
    if (!(after instanceof WriteDelta) && !(after instanceof AppendData)) return after;
    V2WriteCommand write = (V2WriteCommand) after;
    V2WriteCommand secured = write.withNewQuery(new Reads(write.table()).apply(write.query()));
    return (TreeNode) (secured instanceof WriteDelta wd ? simple(wd) : secured);
  }

  /**
   * The condition beside the query serves to drop whole files. Spark takes none there that reads a table below a barrier,
   * since that looks random to it; with a query in it nothing can be dropped anyway.
   */
  private static WriteDelta simple(WriteDelta write) {
    if (!SubqueryExpression$.MODULE$.hasSubquery(write.condition()) && write.condition().deterministic()) return write;
    DataSourceV2Relation target = (DataSourceV2Relation) write.originalTable();
    Object[] fields = new Object[target.productArity()];
    for (int i = 0; i < fields.length; i++) fields[i] = target.productElement(i);
    fields[0] = new VisibleRowsTable(((VisibleRowsTable) target.table()).table(), false);
    NamedRelation kept = (NamedRelation) target.makeCopy(fields);
    return write.copy(write.table(), Literal.TrueLiteral(), write.query(), kept, write.projections(), write.write());
  }

  /** What the statement reads of its own target: known by its columns, which no other reading of the table shares. */
  private final class Reads extends Rebuild {
    private final Attribute first;

    Reads(NamedRelation target) {
      first = Trees.first(((LogicalPlan) target).output());
    }

    protected TreeNode exchange(TreeNode node) {
      if (!(node instanceof DataSourceV2Relation)) return null;
      DataSourceV2Relation relation = (DataSourceV2Relation) node;
      if (!Trees.first(relation.output()).exprId().equals(first.exprId())) return null;
      placed++;
      List<String> names = new ArrayList<>();
      for (var each : Trees.each(relation.output())) names.add(each.name());
      return new Restricted(restriction)
          .target(named(relation), names, restriction.get("filters"), "target", plans);
    }
  }

  /** Where a row lies tells how many hidden rows lie before it: such columns are not there, as in a query. */
  public static void refusePlaces(LogicalPlan parsed) {
    new Places().apply(parsed);
  }

  private static final class Places extends Rebuild {
    protected TreeNode exchange(TreeNode node) {
      if (!(node instanceof UnresolvedAttribute)) return null;
      for (String part : Trees.each(((UnresolvedAttribute) node).nameParts()))
        if (PLACES.contains(part.toLowerCase(Locale.ROOT))) Operations.missing(part);
      return null;
    }
  }

  /** The table below its own name, as Spark puts it there. */
  private static SubqueryAlias named(DataSourceV2Relation relation) {
    Identifier name = relation.identifier().get();
    List qualifier = new ArrayList();
    qualifier.add(relation.catalog().get().name());
    qualifier.addAll(Arrays.asList(name.namespace()));
    return new SubqueryAlias(new AliasIdentifier(name.name(), Trees.seq(qualifier)), relation);
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

    protected TreeNode exchange(TreeNode node) {
      return null;
    }

    protected TreeNode finish(TreeNode before, TreeNode after) {
      if (after instanceof Filter filter && isNamed(filter.child())) {
        // The policy's own one is the lower of the two.
        if (policy == null) policy = filter.condition();
      }
      if (!(after instanceof WriteDelta) || policy == null) return after;
      WriteDelta write = (WriteDelta) after;
      return write.copy(
          write.table(), new And(policy, write.condition()), write.query(), write.originalTable(), write.projections(), write.write());
    }

    private boolean isNamed(LogicalPlan plan) {
      return plan instanceof SubqueryAlias alias && alias.identifier().name().equals(marker);
    }
  }
}
