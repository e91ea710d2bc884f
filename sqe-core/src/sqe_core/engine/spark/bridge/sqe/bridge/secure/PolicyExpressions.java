package sqe.bridge.secure;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute;
import org.apache.spark.sql.catalyst.analysis.UnresolvedFunction;
import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.OneRowRelation;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.unsafe.types.UTF8String;
import sqe.bridge.BridgeException;
import sqe.bridge.Json;
import sqe.bridge.plan.Parameters;
import sqe.bridge.plan.PlanRewrite;
import sqe.bridge.plan.Rebuild;
import sqe.bridge.plan.Trees;
import sqe.bridge.plan.Values;

/**
 * Expressions of a policy. They are parsed as expressions and nothing else, who asks enters as literals, and every name
 * is bound to a column of the table before the table is read (POL-5, POL-6, POL-7).
 */
public final class PolicyExpressions {
  private PolicyExpressions() {}

  /** Parses one expression into a plan that holds just it. `facts` are what policies may ask about who sent the statement. */
  public static LogicalPlan parse(ParserInterface parser, String sql, JsonNode parameters, JsonNode facts) throws Exception {
    Expression parsed = PlanRewrite.ours(() -> parser.parseExpression(sql));
    LogicalPlan bound = new Parameters(parser, parameters).apply(holder(parsed));
    return new Facts(facts).apply(bound);
  }

  private static LogicalPlan holder(Expression expression) {
    return new Project(Trees.seq(PlanRewrite.alias(expression, "expression")), new OneRowRelation());
  }

  static Expression of(LogicalPlan holder) {
    if (holder instanceof Project project
        && Trees.size(project.projectList()) == 1
        && Trees.first(project.projectList()) instanceof Alias alias) return alias.child();
    throw new BridgeException("SQE_BAD_REQUEST", "no expression");
  }

  /** The expression with every name read as a column of the relation that is called `marker`. */
  static Expression qualified(LogicalPlan holder, Map<String, String> columns, String marker) {
    return of(new Qualified(columns, marker).apply(holder));
  }

  /** The parts of a condition that all have to hold, each as an expression of its own. */
  public static List<LogicalPlan> conjuncts(LogicalPlan holder) {
    return Trees.conjuncts(of(holder)).stream().map(PolicyExpressions::holder).toList();
  }

  /** From the lower case of a column's name to the name. */
  static Map<String, String> columns(List<String> names) {
    Map<String, String> columns = new HashMap<>();
    for (String name : names) columns.put(name.toLowerCase(Locale.ROOT), name);
    return columns;
  }

  /** Exchanges calls such as `current_user_attr('dept')` for literals. */
  private static final class Facts extends Rebuild {
    private final JsonNode facts;

    Facts(JsonNode facts) {
      this.facts = facts;
    }

    protected TreeNode<?> exchange(TreeNode<?> node) {
      if (!(node instanceof UnresolvedFunction call)) return null;
      if (Trees.size(call.nameParts()) != 1 || call.filter().isDefined() || call.isDistinct()) return null;
      String name = Trees.first(call.nameParts()).toLowerCase(Locale.ROOT);
      List<Expression> arguments = Trees.list(call.arguments());
      JsonNode lists = facts.get("lists");
      if (lists.has(name) && arguments.isEmpty()) return list(lists.get(name));
      if (arguments.size() != 1) return null;
      JsonNode members = facts.get("members");
      if (members.has(name)) return new Literal(Json.texts(members.get(name)).contains(text(arguments.get(0))), DataTypes.BooleanType);
      JsonNode attributes = facts.get("attributes");
      if (!attributes.has(name)) return null;
      JsonNode value = attributes.get(name).path(text(arguments.get(0)));
      if (value.isArray()) throw new BridgeException("SQE_POLICY_ATTRIBUTE_IS_LIST", name);
      return new Literal(UTF8String.fromString(value.asText(null)), DataTypes.StringType);
    }

    private static String text(Expression argument) {
      if (argument instanceof Literal literal && literal.value() instanceof UTF8String text) return text.toString();
      throw new BridgeException("SQE_POLICY_ARGUMENT", "a literal is needed");
    }

    private static Literal list(JsonNode values) {
      Object[] texts = Json.texts(values).stream().map(UTF8String::fromString).toArray();
      return new Literal(new GenericArrayData(texts), DataTypes.createArrayType(DataTypes.StringType, false));
    }
  }

  private static final class Qualified extends Rebuild {
    private final Map<String, String> columns;
    private final String marker;

    Qualified(Map<String, String> columns, String marker) {
      this.columns = columns;
      this.marker = marker;
    }

    protected TreeNode<?> exchange(TreeNode<?> node) {
      if (!(node instanceof UnresolvedAttribute attribute)) return null;
      List<String> parts = Trees.list(attribute.nameParts());
      String column = columns.get(parts.get(0).toLowerCase(Locale.ROOT));
      if (column == null)
        throw new BridgeException("SQE_POLICY_COLUMN", "no such column", Map.of("column", parts.get(0)));
      parts.set(0, column);
      parts.add(0, marker);
      return new UnresolvedAttribute(Trees.seq(parts));
    }
  }

  /** Writes what an analysed expression consists of. */
  static void describe(StringBuilder out, Expression expression) {
    Set<String> classes = new TreeSet<>();
    Set<String> risky = new TreeSet<>(); // the classes but for casts that fail for no value
    Set<String> columns = new TreeSet<>();
    boolean queries = false;
    for (TreeNode<?> node : Trees.all(expression)) {
      queries |= node instanceof LogicalPlan;
      classes.add(node.getClass().getName());
      if (!(node instanceof Cast cast && SafeCasts.neverFails(cast))) risky.add(node.getClass().getName());
      if (node instanceof AttributeReference reference) columns.add(reference.name());
    }
    Json.member(out, "sql", Values.sql(expression));
    Json.member(out, "guarded_sql", Values.sql(new Shield(expression)));
    Json.member(out, "type", expression.dataType().catalogString());
    Json.member(out, "deterministic").append(expression.deterministic());
    Json.member(out, "queries").append(queries);
    Json.strings(Json.member(out, "classes"), classes);
    Json.strings(Json.member(out, "risky"), risky);
    Json.strings(Json.member(out, "columns"), columns);
  }
}
