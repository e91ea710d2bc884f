package sqe.bridge.plan;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.analysis.ExpressionWithUnresolvedIdentifier;
import org.apache.spark.sql.catalyst.analysis.NamedParameter;
import org.apache.spark.sql.catalyst.analysis.PlanWithUnresolvedIdentifier;
import org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute;
import org.apache.spark.sql.catalyst.analysis.UnresolvedInlineTable;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.catalyst.plans.logical.GlobalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LocalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Offset;
import org.apache.spark.sql.catalyst.plans.logical.OneRowRelation;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.IntegralType;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Puts typed literals in the place of `:name` markers, then names in the place of IDENTIFIER('literal'), so that what is
 * described and judged holds the final names. Markers without a value stay and are reported.
 */
public final class Parameters extends Rebuild {
  private final ParserInterface parser;
  private final Map literals; // name -> Literal or marker

  public Parameters(ParserInterface parser, Map literals) {
    this.parser = parser;
    this.literals = literals;
  }

  public static Map literals(JsonNode parameters) {
    Map literals = new java.util.HashMap();
    for (java.util.Iterator names = parameters.fieldNames(); names.hasNext(); ) {
      String name = (String) names.next();
      JsonNode value = parameters.get(name);
      Object bound = value.has("marker") ? Markers.of(value.get("marker").asInt()) : Literals.read(value);
      literals.put(name, bound);
    }
    return literals;
  }

  protected TreeNode exchange(TreeNode node) {
    return node instanceof NamedParameter np ? (TreeNode) literals.get(np.name()) : null;
  }

  protected TreeNode finish(TreeNode before, TreeNode after) {
    if (after instanceof PlanWithUnresolvedIdentifier plan) {
      scala.collection.immutable.Seq<String> parts = parts(plan.identifierExpr());
      return parts == null ? after : (TreeNode) plan.planBuilder().apply(parts, plan.children());
    }
    if (after instanceof ExpressionWithUnresolvedIdentifier expression) {
      scala.collection.immutable.Seq<String> parts = parts(expression.identifierExpr());
      return parts == null ? after : (TreeNode) expression.exprBuilder().apply(parts, expression.otherExprs());
    }
    if (after != before && after instanceof UnresolvedInlineTable table) return withoutMarkers(table);
    // Clients bind all their integers as 64 bits; Spark takes only 32 for a number of rows.
    if (after != before && isRowCount(after)) return withIntegers(after);
    return after;
  }

  private scala.collection.immutable.Seq<String> parts(Expression name) {
    if (!(name instanceof Literal) || !(((Literal) name).value() instanceof UTF8String)) return null;
    try {
      return parser.parseMultipartIdentifier(((Literal) name).value().toString());
    } catch (Exception invalid) {
      return null; // the node stays, and with it the refusal
    }
  }

  private static boolean isRowCount(TreeNode node) {
    return node instanceof GlobalLimit || node instanceof LocalLimit || node instanceof Offset;
  }

  private static TreeNode withIntegers(TreeNode node) {
    Object[] fields = new Object[node.productArity()];
    for (int i = 0; i < fields.length; i++) {
      fields[i] = node.productElement(i);
      if (Markers.is(fields[i])) fields[i] = new Literal(Integer.valueOf(1), DataTypes.IntegerType);
      if (!(fields[i] instanceof Literal)) continue;
      Literal literal = (Literal) fields[i];
      if (!(literal.dataType() instanceof IntegralType) || literal.value() == null) continue;
      long value = ((Number) literal.value()).longValue();
      if (value == (int) value) fields[i] = new Literal(Integer.valueOf((int) value), DataTypes.IntegerType);
    }
    return node.makeCopy(fields);
  }

  /** VALUES takes constants only; a row with markers becomes a query of its own. */
  private static TreeNode withoutMarkers(UnresolvedInlineTable table) {
    if (!Markers.within(table)) return table;
    List<LogicalPlan> queries = new ArrayList<>();
    for (scala.collection.Iterator rows = table.rows().iterator(); rows.hasNext(); ) {
      scala.collection.Seq row = (scala.collection.Seq) rows.next();
      if (row.size() != Trees.list(table.names()).size()) return table; // the analyser says what is wrong with it
      List columns = new ArrayList();
      for (int i = 0; i < row.size(); i++)
        columns.add(
            isDefault(row.apply(i))
                ? row.apply(i)
                : PlanRewrite.alias((Expression) row.apply(i), Trees.list(table.names()).get(i)));
      queries.add(new Project(Trees.seq(columns), new OneRowRelation()));
    }
    if (queries.size() == 1) return queries.get(0);
    return new Union(Trees.seq(queries), false, false);
  }

  /** Below an alias the analyser takes it for part of an expression, and refuses it. */
  private static boolean isDefault(Object value) {
    if (!(value instanceof UnresolvedAttribute)) return false;
    scala.collection.Seq parts = ((UnresolvedAttribute) value).nameParts();
    return parts.size() == 1 && ((String) parts.apply(0)).equalsIgnoreCase("default");
  }
}
