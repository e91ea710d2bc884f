package sqe.bridge;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.Map;
import org.apache.spark.sql.catalyst.analysis.ExpressionWithUnresolvedIdentifier;
import org.apache.spark.sql.catalyst.analysis.NamedParameter;
import org.apache.spark.sql.catalyst.analysis.PlanWithUnresolvedIdentifier;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.catalyst.plans.logical.GlobalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LocalLimit;
import org.apache.spark.sql.catalyst.plans.logical.Offset;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.IntegralType;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Puts typed literals in the place of `:name` markers, then names in the place of IDENTIFIER('literal'), so that what is
 * described and judged holds the final names. Markers without a value stay and are reported.
 */
final class Parameters extends Rebuild {
  private final ParserInterface parser;
  private final Map literals; // name -> Literal

  Parameters(ParserInterface parser, Map literals) {
    this.parser = parser;
    this.literals = literals;
  }

  static Map literals(JsonNode parameters) {
    Map literals = new java.util.HashMap();
    for (java.util.Iterator names = parameters.fieldNames(); names.hasNext(); ) {
      String name = (String) names.next();
      literals.put(name, Literals.read(parameters.get(name)));
    }
    return literals;
  }

  TreeNode exchange(TreeNode node) {
    return node instanceof NamedParameter ? (TreeNode) literals.get(((NamedParameter) node).name()) : null;
  }

  TreeNode finish(TreeNode before, TreeNode after) {
    if (after instanceof PlanWithUnresolvedIdentifier) {
      PlanWithUnresolvedIdentifier plan = (PlanWithUnresolvedIdentifier) after;
      scala.collection.Seq parts = parts(plan.identifierExpr());
      return parts == null ? after : (TreeNode) plan.planBuilder().apply(parts, plan.children());
    }
    if (after instanceof ExpressionWithUnresolvedIdentifier) {
      ExpressionWithUnresolvedIdentifier expression = (ExpressionWithUnresolvedIdentifier) after;
      scala.collection.Seq parts = parts(expression.identifierExpr());
      return parts == null ? after : (TreeNode) expression.exprBuilder().apply(parts, expression.otherExprs());
    }
    // Clients bind all their integers as 64 bits; Spark takes only 32 for a number of rows.
    if (after != before && isRowCount(after)) return withIntegers(after);
    return after;
  }

  private scala.collection.Seq parts(Expression name) {
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
      if (!(fields[i] instanceof Literal)) continue;
      Literal literal = (Literal) fields[i];
      if (!(literal.dataType() instanceof IntegralType) || literal.value() == null) continue;
      long value = ((Number) literal.value()).longValue();
      if (value == (int) value) fields[i] = new Literal(Integer.valueOf((int) value), DataTypes.IntegerType);
    }
    return (TreeNode) node.makeCopy(fields);
  }
}
