package sqe.bridge.plan;

import java.util.List;
import org.apache.iceberg.spark.source.SparkTable;
import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.sql.catalyst.plans.logical.*;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.write.RowLevelOperationTable;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import sqe.bridge.Json;
import sqe.bridge.catalog.IcebergFields;
import sqe.bridge.secure.SafeCasts;
import sqe.bridge.secure.Secured;
import sqe.bridge.spool.SpoolTable;
import sqe.bridge.time.TimesTable;

/** The fields of the nodes that the verifier looks at (ENF-11). */
final class NodeFields {
  private static final int MAX_SPINE = 64;

  private NodeFields() {}

  /** Writes the members of a node that has a form of its own; false for all others. */
  static boolean write(StringBuilder out, LogicalPlan plan, boolean analysed) {
    if (plan instanceof SubqueryAlias alias) {
      List<String> parts = Trees.list(alias.identifier().qualifier());
      parts.add(alias.identifier().name());
      Json.strings(Json.member(out, "identifier"), parts);
      if (Secured.isCover(alias)) Json.member(out, "secured").append(true);
      if (analysed) output(out, plan);
    } else if (plan instanceof UnresolvedHint hint) {
      Json.member(out, "name", hint.name());
      Json.member(out, "parameters");
      Values.render(out, hint.parameters(), true);
    } else if (!analysed && plan instanceof Aggregate aggregate) {
      Json.member(out, "groupings").append(groupings(aggregate));
    } else if (plan instanceof LocalRelation) {
      output(out, plan);
    } else if (analysed && plan instanceof Project project) {
      Iterable<NamedExpression> columns = Trees.each(project.projectList());
      Json.array(Json.member(out, "projectList"), columns, each -> Json.string(out, Values.sql((Expression) each)));
      output(out, plan);
    } else if (analysed && plan instanceof Filter filter) {
      Json.member(out, "condition", Values.sql(filter.condition()));
      spine(out, filter.condition());
    } else if (plan instanceof DataSourceV2Relation relation) source(out, relation);
    else if (analysed && plan instanceof View view) {
      Json.strings(Json.member(out, "identifier"), view.desc().identifier().nameParts());
      output(out, plan);
    } else {
      if (analysed && plan instanceof WriteDelta delta) guard(out, delta.condition());
      return false;
    }
    return true;
  }

  /** Whether every cast of an expression gives a value for every value. */
  private static boolean castsAreSafe(Expression expression) {
    return Trees.expressions(expression).stream().allMatch(each -> !(each instanceof Cast cast) || SafeCasts.widens(cast));
  }

  /**
   * How a condition ends: for each AND at its right end what stands before it, what behind it, and whether the casts of
   * that cannot fail; the last one first.
   */
  private static void spine(StringBuilder out, Expression condition) {
    Json.member(out, "spine").append('[');
    for (int i = 0; condition instanceof And and && i < MAX_SPINE; i++) {
      Json.element(out);
      Json.string(out.append('['), Values.sql(and.left()));
      Json.string(out.append(','), Values.sql(and.right()));
      out.append(',').append(castsAreSafe(and.right())).append(']');
      condition = and.left();
    }
    out.append(']');
  }

  /** What stands before all else in the condition by which rows are changed. */
  private static void guard(StringBuilder out, Expression condition) {
    Json.member(out, "guard", condition instanceof And and ? Values.sql(and.left()) : null);
  }

  /** How many groupings a GROUP BY asks for: those of its parts, multiplied. */
  private static long groupings(Aggregate plan) {
    double product = 1;
    for (Expression part : Trees.each(plan.groupingExpressions())) {
      // Not through groupingSets(), which would write all of them out.
      if (part instanceof Cube cube) product *= Math.pow(2, Trees.size(cube.groupingSetIndexes()));
      else if (part instanceof Rollup rollup) product *= Trees.size(rollup.groupingSetIndexes()) + 1;
      else if (part instanceof GroupingSets sets) product *= Math.max(1, Trees.size(sets.groupingSetIndexes()));
    }
    return (long) product;
  }

  /** The resolved table: where it is from, which state of it, and its columns. */
  private static void source(StringBuilder out, DataSourceV2Relation relation) {
    if (relation.catalog().isDefined()) Json.member(out, "catalog", relation.catalog().get().name());
    if (relation.identifier().isDefined())
      Values.render(Json.member(out, "identifier"), relation.identifier().get(), false);
    Table table = relation.table();
    Json.member(out, "tableClass", table.getClass().getName());
    if (table instanceof SpoolTable spoolTable) Json.member(out, "spool", spoolTable.token);
    if (table instanceof RowLevelOperationTable operationTable) table = operationTable.table();
    if (table instanceof TimesTable timesTable) table = timesTable.plain;
    if (table instanceof SparkTable iceberg) {
      // Every table is pinned to a snapshot when it is loaded; only a chosen one is a version that somebody named.
      Json.member(out, "snapshotId").append(IcebergFields.timeTravel(iceberg) == null ? null : iceberg.snapshotId());
      Json.member(out, "pinnedSnapshotId").append(iceberg.snapshotId());
      Json.member(out, "branch", iceberg.branch());
    }
    Json.member(out, "timeTravel", relation.timeTravelSpec().isDefined() ? relation.timeTravelSpec().get().toString() : null);
    Json.map(Json.member(out, "options"), relation.options().asCaseSensitiveMap());
    output(out, relation);
  }

  private static void output(StringBuilder out, LogicalPlan plan) {
    Json.array(Json.member(out, "output"), Trees.each(plan.output()), each -> Json.string(out, each.name()));
  }
}
