package sqe.bridge.secure;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeSet;
import org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute;
import org.apache.spark.sql.catalyst.analysis.UnresolvedFunction;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.OneRowRelation;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.trees.CurrentOrigin;
import org.apache.spark.sql.catalyst.trees.Origin;
import org.apache.spark.sql.catalyst.trees.TreeNode;
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
    Expression parsed;
    Origin before = CurrentOrigin.get();
    CurrentOrigin.set(PlanRewrite.ours());
    try {
      parsed = parser.parseExpression(sql);
    } finally {
      CurrentOrigin.set(before);
    }
    LogicalPlan holder = new Project(Trees.seq(PlanRewrite.alias(parsed, "expression")), new OneRowRelation());
    LogicalPlan bound = new Parameters(parser, Parameters.literals(parameters)).apply(holder);
    return new Facts(facts).apply(bound);
  }

  static Expression of(LogicalPlan holder) {
    if (!(holder instanceof Project) || Trees.list(((Project) holder).projectList()).size() != 1)
      throw new BridgeException("SQE_BAD_REQUEST", "no expression");
    return Trees.first(((Expression) Trees.first(((Project) holder).projectList())).children());
  }

  /** The expression with every name read as a column of the relation that is called `marker`. */
  static Expression qualified(LogicalPlan holder, Map columns, String marker) {
    return of(new Qualified(columns, marker).apply(holder));
  }

  /** The parts of a condition that all have to hold, each as an expression of its own. */
  public static List<LogicalPlan> conjuncts(LogicalPlan holder) {
    List<LogicalPlan> parts = new ArrayList<>();
    ArrayDeque<Expression> rest = new ArrayDeque<>();
    rest.push(of(holder));
    while (!rest.isEmpty()) {
      Expression one = rest.pop();
      if (one instanceof And and) {
        rest.push(and.right());
        rest.push(and.left());
      } else parts.add(new Project(Trees.seq(PlanRewrite.alias(one, "expression")), new OneRowRelation()));
    }
    return parts;
  }

  /** From the lower case of a column's name to the name. */
  static Map columns(Iterator names) {
    Map columns = new HashMap();
    while (names.hasNext()) {
      String name = (String) names.next();
      columns.put(name.toLowerCase(Locale.ROOT), name);
    }
    return columns;
  }

  /** Exchanges calls such as `current_user_attr('dept')` for literals. */
  private static final class Facts extends Rebuild {
    private final JsonNode facts;

    Facts(JsonNode facts) {
      this.facts = facts;
    }

    protected TreeNode exchange(TreeNode node) {
      if (!(node instanceof UnresolvedFunction)) return null;
      UnresolvedFunction call = (UnresolvedFunction) node;
      if (Trees.list(call.nameParts()).size() != 1 || call.filter().isDefined() || call.isDistinct()) return null;
      String name = (Trees.first(call.nameParts())).toLowerCase(Locale.ROOT);
      List arguments = Trees.list(call.arguments());
      JsonNode lists = facts.get("lists");
      if (lists.has(name) && arguments.isEmpty()) return list(lists.get(name));
      if (arguments.size() != 1) return null;
      JsonNode members = facts.get("members");
      if (members.has(name)) {
        String asked = text(arguments.get(0));
        return new Literal(Boolean.valueOf(asked != null && contains(members.get(name), asked)), DataTypes.BooleanType);
      }
      JsonNode attributes = facts.get("attributes");
      if (!attributes.has(name)) return null;
      String asked = text(arguments.get(0));
      JsonNode value = asked == null ? null : attributes.get(name).get(asked);
      if (value != null && value.isArray()) throw new BridgeException("SQE_POLICY_ATTRIBUTE_IS_LIST", name);
      Object bound = value == null || value.isNull() ? null : UTF8String.fromString(value.asText());
      return new Literal(bound, DataTypes.StringType);
    }

    private static String text(Object argument) {
      if (!(argument instanceof Literal) || !(((Literal) argument).value() instanceof UTF8String))
        throw new BridgeException("SQE_POLICY_ARGUMENT", "a literal is needed");
      return ((Literal) argument).value().toString();
    }

    private static boolean contains(JsonNode list, String asked) {
      for (var each : list) if (each.asText().equals(asked)) return true;
      return false;
    }

    private static Literal list(JsonNode values) {
      Object[] texts = new Object[values.size()];
      for (int i = 0; i < texts.length; i++) texts[i] = UTF8String.fromString(values.get(i).asText());
      return new Literal(
          new org.apache.spark.sql.catalyst.util.GenericArrayData(texts),
          DataTypes.createArrayType(DataTypes.StringType, false));
    }
  }

  private static final class Qualified extends Rebuild {
    private final Map columns;
    private final String marker;

    Qualified(Map columns, String marker) {
      this.columns = columns;
      this.marker = marker;
    }

    protected TreeNode exchange(TreeNode node) {
      if (!(node instanceof UnresolvedAttribute)) return null;
      List parts = Trees.list(((UnresolvedAttribute) node).nameParts());
      String column = (String) columns.get(((String) parts.get(0)).toLowerCase(Locale.ROOT));
      if (column == null) throw new BridgeException("SQE_POLICY_COLUMN", (String) parts.get(0));
      List name = new ArrayList();
      name.add(marker);
      name.add(column);
      name.addAll(parts.subList(1, parts.size()));
      return new UnresolvedAttribute(Trees.seq(name));
    }
  }

  /** Writes what an analysed expression consists of. */
  static void describe(StringBuilder out, Expression expression) {
    TreeSet classes = new TreeSet();
    TreeSet risky = new TreeSet(); // the classes but for casts that fail for no value
    TreeSet columns = new TreeSet();
    ArrayDeque<TreeNode> rest = new ArrayDeque<>();
    rest.push(expression);
    boolean queries = false;
    while (!rest.isEmpty()) {
      TreeNode node = rest.pop();
      if (node instanceof LogicalPlan) {
        queries = true;
        continue;
      }
      classes.add(node.getClass().getName());
      if (!(node instanceof Cast cast && SafeCasts.neverFails(cast))) risky.add(node.getClass().getName());
      if (node instanceof AttributeReference reference) columns.add(reference.name());
      List<TreeNode> below = new ArrayList<>();
      for (scala.collection.Iterator each = node.productIterator(); each.hasNext(); ) Trees.nodesIn(each.next(), below);
      for (var each : below) rest.push(each);
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
