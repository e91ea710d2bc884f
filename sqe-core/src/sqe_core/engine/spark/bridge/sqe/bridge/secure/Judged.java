package sqe.bridge.secure;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.analysis.UnresolvedStar;
import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.types.DataType;
import sqe.bridge.BridgeSession;
import sqe.bridge.Json;
import sqe.bridge.plan.PlanHandle;
import sqe.bridge.plan.PlanRewrite;
import sqe.bridge.plan.Stars;
import sqe.bridge.plan.Trees;

/** A relation that a policy restricts, and the policy's expressions as they are above it. Nothing of it is executed. */
public final class Judged {
  private Judged() {}

  public static String json(
      BridgeSession session, LogicalPlan given, String marker, JsonNode requests, Map<Long, PlanHandle> plans) {
    LogicalPlan relation = Stars.bounded(Restricted.named(given, marker));
    LogicalPlan everything =
        session.resolved(new Project(Trees.seq(new UnresolvedStar(scala.Option.empty())), relation)).analyzed();
    List<Attribute> attributes = Trees.list(everything.output());
    Map<String, String> columns = PolicyExpressions.columns(attributes.stream().map(Attribute::name).toList());
    List<NamedExpression> items = new ArrayList<>();
    for (JsonNode each : requests) {
      LogicalPlan holder = PlanHandle.find(plans, each.get("plan").asLong()).plan();
      items.add(PlanRewrite.alias(PolicyExpressions.qualified(holder, columns, marker), "e" + items.size()));
    }
    StringBuilder out = new StringBuilder("{");
    Json.array(
        Json.member(out, "columns"),
        attributes,
        each -> {
          out.append('{');
          Json.member(out, "name", each.name());
          Json.member(out, "type", each.dataType().catalogString());
          out.append('}');
        });
    Json.member(out, "expressions").append('[');
    if (!items.isEmpty()) {
      // What is analysed already is not looked up in its catalog again.
      LogicalPlan known = Trees.first(everything.children());
      Project analysed = (Project) session.resolved(new Project(Trees.seq(items), known)).analyzed();
      for (int i = 0; i < requests.size(); i++) {
        Json.element(out);
        out.append('{');
        Expression value = ((Alias) Trees.at(analysed.projectList(), i)).child();
        String column = requests.get(i).path("column").asText(null);
        for (Attribute each : attributes) {
          if (!each.name().equals(column)) continue;
          value = fit(out, value, each.dataType());
          break;
        }
        PolicyExpressions.describe(out, value);
        out.append('}');
      }
    }
    return out.append("]}").toString();
  }

  /** A mask in the type of its column (POL-12). */
  private static Expression fit(StringBuilder out, Expression value, DataType type) {
    boolean same = DataType.equalsStructurally(value.dataType(), type, true);
    Json.member(out, "cast", same ? null : type.json());
    boolean possible = same || Cast$.MODULE$.canAnsiCast(value.dataType(), type);
    Json.member(out, "fits").append(possible);
    return same || !possible ? value : Restricted.cast(value, type);
  }
}
