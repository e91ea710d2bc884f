package sqe.bridge.secure;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.analysis.UnresolvedStar;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Cast$;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.types.DataType;
import sqe.bridge.BridgeException;
import sqe.bridge.BridgeSession;
import sqe.bridge.Json;
import sqe.bridge.plan.PlanHandle;
import sqe.bridge.plan.PlanRewrite;
import sqe.bridge.plan.Stars;
import sqe.bridge.plan.Trees;

/** A relation that a policy restricts, and the policy's expressions as they are above it. Nothing of it is executed. */
public final class Judged {
  private final LogicalPlan relation;
  private final String marker;

  public Judged(LogicalPlan relation, String marker) {
    this.relation = Stars.bounded(Restricted.named(relation, marker));
    this.marker = marker;
  }

  public String json(BridgeSession session, JsonNode requests, Map plans) throws Exception {
    LogicalPlan everything =
        session.resolved(new Project(Trees.seq(new UnresolvedStar(scala.Option.empty())), relation)).analyzed();
    List<Attribute> attributes = Trees.list(everything.output());
    List<String> names = new ArrayList<>();
    for (Attribute each : attributes) names.add(each.name());
    Map columns = PolicyExpressions.columns(names.iterator());
    List items = new ArrayList();
    for (int i = 0; i < requests.size(); i++) {
      PlanHandle holder = (PlanHandle) plans.get(Long.valueOf(requests.get(i).get("plan").asLong()));
      if (holder == null) throw new BridgeException("SQE_NO_SUCH_PLAN", "an expression of a policy");
      Expression value = PolicyExpressions.qualified(holder.plan, columns, marker);
      items.add(PlanRewrite.alias(value, "e" + i));
    }
    StringBuilder out = new StringBuilder("{");
    Json.member(out, "columns").append('[');
    for (int i = 0; i < attributes.size(); i++) {
      Json.element(out);
      out.append('{');
      Json.member(out, "name", (String) names.get(i));
      DataType type = ((Attribute) attributes.get(i)).dataType();
      Json.member(out, "type", type.catalogString());
      Json.member(out, "json", type.json());
      out.append('}');
    }
    out.append(']');
    Json.member(out, "expressions").append('[');
    if (!items.isEmpty()) {
      // What is analysed already is not looked up in its catalog again.
      LogicalPlan known = Trees.first(everything.children());
      Project analysed = (Project) session.resolved(new Project(Trees.seq(items), known)).analyzed();
      for (int i = 0; i < requests.size(); i++) {
        Json.element(out);
        out.append('{');
        Expression value = Trees.first(((Expression) Trees.list(analysed.projectList()).get(i)).children());
        JsonNode column = requests.get(i).get("column");
        int place = column == null || column.isNull() ? -1 : names.indexOf(column.asText());
        if (place >= 0) value = fit(out, value, ((Attribute) attributes.get(place)).dataType());
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
