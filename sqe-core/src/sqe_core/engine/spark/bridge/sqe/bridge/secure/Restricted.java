package sqe.bridge.secure;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute;
import org.apache.spark.sql.catalyst.analysis.UnresolvedFunction$;
import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.catalyst.util.RowDeltaUtils;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import scala.collection.immutable.Seq;
import sqe.bridge.Json;
import sqe.bridge.plan.PlanHandle;
import sqe.bridge.plan.PlanRewrite;
import sqe.bridge.plan.Trees;

/**
 * The secured form of a relation that a policy restricts (ENF-9, ENF-14), built node by node:
 *
 * <pre>
 *   Project    visible columns in order, masks in the type of their column
 *     [Filter     spark_partition_id() >= 0: nothing of the user's moves below
 *       SubqueryAlias marker
 *         Project     all columns: masks may read those that are hidden
 *           Filter]   the policy's conditions
 *     SubqueryAlias marker
 *       the table, or the plan of a view
 * </pre>
 */
public final class Restricted {
  private final String marker;
  private final List<String> names;
  private final Map<String, String> columns; // names by their lower case
  private final JsonNode request;
  private final Map<Long, PlanHandle> plans;

  public Restricted(JsonNode request, Map<Long, PlanHandle> plans) {
    this.request = request;
    this.plans = plans;
    marker = request.get("marker").asText();
    names = Json.texts(request.get("columns"));
    columns = PolicyExpressions.columns(names);
  }

  static SubqueryAlias named(LogicalPlan plan, String name) {
    return Secured.named(plan, List.of(name));
  }

  LogicalPlan named(LogicalPlan plan) {
    return named(plan, marker);
  }

  public LogicalPlan over(LogicalPlan relation) {
    List<NamedExpression> visible = new ArrayList<>();
    for (JsonNode column : request.get("output")) {
      String name = column.get("name").asText();
      visible.add(column.has("mask") ? PlanRewrite.alias(expression(column.get("mask")), name) : attribute(name));
    }
    return new Project(Trees.seq(visible), rows(relation, names));
  }

  /** The visible rows of a target that is changed, with all of its columns and what Iceberg knows a row by. */
  SubqueryAlias target(LogicalPlan relation, List<String> all) {
    return Secured.cover(new Project(attributes(all), rows(relation, all)), List.of("target"));
  }

  private LogicalPlan rows(LogicalPlan relation, List<String> all) {
    LogicalPlan plan = named(relation);
    if (request.get("filters").isEmpty()) return plan;
    plan = new Filter(condition(), plan);
    plan = named(new Project(attributes(all), plan));
    return new Filter(barrier(), plan);
  }

  Expression condition() {
    Expression all = null;
    for (JsonNode each : request.get("filters")) {
      Expression one = expression(each);
      all = all == null ? one : new And(all, one);
    }
    return all;
  }

  /** `type` is what the value is cast to, `guarded` whether an error in it becomes NULL (POL-11). */
  private Expression expression(JsonNode request) {
    LogicalPlan holder = PlanHandle.find(plans, request.get("plan").asLong()).plan();
    Expression value = PolicyExpressions.qualified(holder, columns, marker);
    if (request.has("type")) value = cast(value, DataType.fromJson(request.get("type").asText()));
    return request.get("guarded").asBoolean() ? new Shield(value) : value;
  }

  static Expression cast(Expression value, DataType type) {
    // Errors are for the guard to swallow; a cast that answers NULL by itself would print the same.
    return Cast$.MODULE$.apply(value, type, true);
  }

  /** What Spark does with a row of a statement that changes rows. */
  Expression operation() {
    return attribute(RowDeltaUtils.OPERATION_COLUMN());
  }

  private UnresolvedAttribute attribute(String column) {
    return new UnresolvedAttribute(Trees.seq(marker, column));
  }

  private Seq<NamedExpression> attributes(List<String> names) {
    return Trees.seq(names.stream().map(this::attribute).toList());
  }

  static Expression barrier() {
    return new GreaterThanOrEqual(call("spark_partition_id"), new Literal(0, DataTypes.IntegerType));
  }

  static Expression call(String function, Expression... arguments) {
    return UnresolvedFunction$.MODULE$.apply(function, Trees.seq(arguments), false);
  }
}
