package sqe.bridge.secure;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.AliasIdentifier;
import org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GreaterThanOrEqual;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.catalyst.util.RowDeltaUtils;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import sqe.bridge.BridgeException;
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
  private final Map columns; // lower case -> name

  public Restricted(JsonNode request) {
    marker = request.get("marker").asText();
    columns = PolicyExpressions.columns(Json.texts(request.get("columns")).iterator());
  }

  static SubqueryAlias named(LogicalPlan plan, String name) {
    return new SubqueryAlias(new AliasIdentifier(name, Trees.seq(new ArrayList())), plan);
  }

  LogicalPlan named(LogicalPlan plan) {
    return named(plan, marker);
  }

  public LogicalPlan over(LogicalPlan relation, JsonNode request, Map plans) {
    LogicalPlan plan = rows(relation, Json.texts(request.get("columns")), request.get("filters"), plans);
    List visible = new ArrayList();
    JsonNode output = request.get("output");
    for (JsonNode column : output) {
      String name = column.get("name").asText();
      visible.add(column.has("mask") ? mask(name, column.get("mask"), plans) : attribute(name));
    }
    return new Project(Trees.seq(visible), plan);
  }

  /** The visible rows of a target that is changed, with all of its columns and what Iceberg knows a row by. */
  SubqueryAlias target(LogicalPlan relation, List names, JsonNode filters, String visibleName, Map plans) {
    LogicalPlan plan = new Project(Trees.seq(attributes(names)), rows(relation, names, filters, plans));
    List cover = new ArrayList();
    cover.add(visibleName);
    return Secured.cover(plan, cover);
  }

  private LogicalPlan rows(LogicalPlan relation, List names, JsonNode filters, Map plans) {
    LogicalPlan plan = named(relation, marker);
    if (filters.size() == 0) return plan;
    plan = new Filter(condition(filters, plans), plan);
    plan = named(new Project(Trees.seq(attributes(names)), plan), marker);
    return new Filter(barrier(), plan);
  }

  Expression condition(JsonNode filters, Map plans) {
    Expression all = null;
    for (var each : filters) {
      Expression one = expression(each, plans);
      all = all == null ? one : new And(all, one);
    }
    return all;
  }

  private Expression mask(String column, JsonNode mask, Map plans) {
    Expression value = expression(mask, plans);
    return PlanRewrite.alias(value, column);
  }

  /** `type` is what the value is cast to, `guarded` whether an error in it becomes NULL (POL-11). */
  private Expression expression(JsonNode request, Map plans) {
    PlanHandle holder = (PlanHandle) plans.get(Long.valueOf(request.get("plan").asLong()));
    if (holder == null) throw new BridgeException("SQE_NO_SUCH_PLAN", "an expression of a policy");
    Expression value = PolicyExpressions.qualified(holder.plan, columns, marker);
    if (request.has("type")) value = cast(value, DataType.fromJson(request.get("type").asText()));
    return request.get("guarded").asBoolean() ? new Shield(value) : value;
  }

  static Expression cast(Expression value, DataType type) {
    // Errors are for the guard to swallow; a cast that answers NULL by itself would print the same.
    return org.apache.spark.sql.catalyst.expressions.Cast$.MODULE$.apply(value, type, true);
  }

  /** What Spark does with a row of a statement that changes rows. */
  Expression operation() {
    return attribute(RowDeltaUtils.OPERATION_COLUMN());
  }

  private Expression attribute(String column) {
    List name = new ArrayList();
    name.add(marker);
    name.add(column);
    return new UnresolvedAttribute(Trees.seq(name));
  }

  private List attributes(List<String> names) {
    List attributes = new ArrayList();
    for (String each : names) attributes.add(attribute(each));
    return attributes;
  }

  static Expression barrier() {
    return new GreaterThanOrEqual(
        org.apache.spark.sql.catalyst.analysis.UnresolvedFunction$.MODULE$.apply("spark_partition_id", Trees.seq(new ArrayList()), false),
        new Literal(Integer.valueOf(0), DataTypes.IntegerType));
  }
}
