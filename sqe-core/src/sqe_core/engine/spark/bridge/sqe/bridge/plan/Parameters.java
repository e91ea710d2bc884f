package sqe.bridge.plan;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.analysis.*;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.catalyst.plans.logical.*;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.IntegralType;
import org.apache.spark.unsafe.types.UTF8String;
import scala.collection.immutable.Seq;

/**
 * Puts typed literals in the place of `:name` markers, then names in the place of IDENTIFIER('literal'), so that what is
 * described and judged holds the final names. Markers without a value stay and are reported.
 */
public final class Parameters extends Rebuild {
  private final ParserInterface parser;
  private final Map<String, Expression> literals = new HashMap<>(); // by name; some are markers

  public Parameters(ParserInterface parser, JsonNode parameters) {
    this.parser = parser;
    for (Map.Entry<String, JsonNode> each : parameters.properties()) {
      JsonNode value = each.getValue();
      literals.put(each.getKey(), value.has("marker") ? Markers.of(value.get("marker").asInt()) : Literals.read(value));
    }
  }

  protected TreeNode<?> exchange(TreeNode<?> node) {
    return node instanceof NamedParameter parameter ? literals.get(parameter.name()) : null;
  }

  protected TreeNode<?> finish(TreeNode<?> before, TreeNode<?> after) {
    if (after instanceof PlanWithUnresolvedIdentifier plan) {
      Seq<String> parts = parts(plan.identifierExpr());
      return parts == null ? after : plan.planBuilder().apply(parts, plan.children());
    }
    if (after instanceof ExpressionWithUnresolvedIdentifier expression) {
      Seq<String> parts = parts(expression.identifierExpr());
      return parts == null ? after : expression.exprBuilder().apply(parts, expression.otherExprs());
    }
    if (after == before) return after;
    if (after instanceof UnresolvedInlineTable table) return withoutMarkers(table);
    // Clients bind all their integers as 64 bits; Spark takes only 32 for a number of rows.
    boolean counts = after instanceof GlobalLimit || after instanceof LocalLimit || after instanceof Offset;
    return counts ? Trees.with(after, 0, rowCount((Expression) after.productElement(0))) : after;
  }

  private Seq<String> parts(Expression name) {
    if (!(name instanceof Literal literal && literal.value() instanceof UTF8String text)) return null;
    try {
      return parser.parseMultipartIdentifier(text.toString());
    } catch (Exception invalid) {
      return null; // the node stays, and with it the refusal
    }
  }

  private static Expression rowCount(Expression count) {
    if (Markers.is(count)) return new Literal(1, DataTypes.IntegerType);
    if (!(count instanceof Literal literal && literal.dataType() instanceof IntegralType && literal.value() instanceof Number number))
      return count;
    long value = number.longValue();
    return value == (int) value ? new Literal((int) value, DataTypes.IntegerType) : count;
  }

  /** VALUES takes constants only; a row with markers becomes a query of its own. */
  private static LogicalPlan withoutMarkers(UnresolvedInlineTable table) {
    if (!Markers.within(table)) return table;
    List<LogicalPlan> queries = new ArrayList<>();
    for (Seq<Expression> row : Trees.each(table.rows())) {
      if (Trees.size(row) != Trees.size(table.names())) return table; // the analyser says what is wrong with it
      List<NamedExpression> columns = new ArrayList<>();
      for (int i = 0; i < Trees.size(row); i++) {
        boolean isDefault = Trees.at(row, i) instanceof UnresolvedAttribute name && isDefault(name);
        columns.add(isDefault ? (UnresolvedAttribute) Trees.at(row, i) : PlanRewrite.alias(Trees.at(row, i), Trees.at(table.names(), i)));
      }
      queries.add(new Project(Trees.seq(columns), new OneRowRelation()));
    }
    return queries.size() == 1 ? queries.get(0) : new Union(Trees.seq(queries), false, false);
  }

  /** Below an alias the analyser takes it for part of an expression, and refuses it. */
  private static boolean isDefault(UnresolvedAttribute name) {
    return Trees.size(name.nameParts()) == 1 && Trees.first(name.nameParts()).equalsIgnoreCase("default");
  }
}
