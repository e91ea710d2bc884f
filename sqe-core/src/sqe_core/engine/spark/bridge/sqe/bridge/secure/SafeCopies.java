package sqe.bridge.secure;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.sql.catalyst.plans.logical.*;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.types.AtomicType;
import sqe.bridge.BridgeException;
import sqe.bridge.plan.Rebuild;
import sqe.bridge.plan.Trees;

/**
 * Copies conditions of the user's below the barrier of a row filter, beside the policy's, so that files can be pruned
 * (ENF-15). Nothing is moved: the condition stays where it was, and the barrier between both.
 *
 * Only what cannot fail on any row is copied: a visible, unmasked column compared with constants, or tested for NULL.
 * A constant that is an expression is evaluated here; when that fails it is not copied, since it would fail for a table
 * of hidden rows and not for an empty one.
 */
public final class SafeCopies {
  private static final int MAX_CONSTANTS = 200;

  private final Map<TreeNode<?>, List<Expression>> additions = new IdentityHashMap<>(); // to a policy's Filter

  private SafeCopies() {}

  /** The plan with the copies, or the same object when there are none. */
  public static LogicalPlan within(LogicalPlan plan) {
    SafeCopies copies = new SafeCopies();
    for (TreeNode<?> node : Trees.all(plan)) if (node instanceof Filter filter && !isOurs(filter)) copies.offer(filter);
    return copies.additions.isEmpty() ? plan : copies.new Added().apply(plan);
  }

  private final class Added extends Rebuild {
    protected TreeNode<?> finish(TreeNode<?> before, TreeNode<?> after) {
      if (!additions.containsKey(before)) return after;
      Filter filter = (Filter) after;
      Expression condition = filter.condition();
      for (Expression each : additions.get(before)) condition = new And(condition, each);
      return filter.copy(condition, filter.child());
    }
  }

  private void offer(Filter filter) {
    List<Expression> safe = new ArrayList<>();
    conjuncts(filter.condition(), safe);
    if (safe.isEmpty()) return;
    ArrayDeque<LogicalPlan> rest = new ArrayDeque<>(List.of(filter.child()));
    while (!rest.isEmpty()) {
      LogicalPlan plan = rest.pop();
      if (plan instanceof SubqueryAlias alias && restricted(alias, safe)) continue;
      if (plan instanceof SubqueryAlias || plan instanceof Project || plan instanceof Filter || plan instanceof Sort)
        rest.push(Trees.first(plan.children()));
      else if (plan instanceof Join join) sides(join, rest);
    }
  }

  /** Where each row that fails the condition is one that the filter above the join drops. */
  private static void sides(Join join, ArrayDeque<LogicalPlan> rest) {
    String name = join.joinType().sql();
    boolean both = name.equals("INNER") || name.equals("CROSS");
    if (both || name.equals("LEFT OUTER") || name.equals("LEFT SEMI") || name.equals("LEFT ANTI")) rest.push(join.left());
    if (both || name.equals("RIGHT OUTER")) rest.push(join.right());
  }

  /** Adds what fits to a relation under a row filter; false when this alias covers none. */
  private boolean restricted(SubqueryAlias cover, List<Expression> safe) {
    if (!Secured.isCover(cover) || !(cover.child() instanceof Project visible)) return false;
    if (!(visible.child() instanceof Filter barrier) || !isBarrier(barrier)) return false;
    Filter policy = filter((SubqueryAlias) barrier.child());
    if (policy == null) return true;
    AttributeSet guarded = guarded(policy.condition());
    for (Expression condition : safe) {
      // Beside a constant the optimizer puts it into the policy's own condition, which has a guard where it could raise.
      if (!isVisible(column(condition), visible) || guarded.contains(column(condition))) continue;
      additions.computeIfAbsent(policy, each -> new ArrayList<>()).add(named(condition, policy.child()));
    }
    return true;
  }

  /** The same condition with its column under the name that it has there, which is what the verifier knows. */
  private static Expression named(Expression condition, LogicalPlan relation) {
    AttributeReference column = column(condition);
    for (Attribute attribute : Trees.each(relation.output())) {
      if (!attribute.exprId().equals(column.exprId())) continue;
      return condition.mapChildren(
          each -> each == column ? attribute : each instanceof Cast cast ? cast.withNewChildren(Trees.seq(attribute)) : each);
    }
    throw new BridgeException("SQE_CANNOT_REWRITE", "a condition of a column that is not there");
  }

  /**
   * The policy's own filter below the barrier, under the same name once more; null where the barrier stands alone, and
   * above a view: a column of that may be computed, and a condition on it moves down to rows that are hidden.
   */
  private static Filter filter(SubqueryAlias marker) {
    if (!(marker.child() instanceof Project columns) || !(columns.child() instanceof Filter filter)) return null;
    boolean ours = isOurs(filter) && ((SubqueryAlias) filter.child()).identifier().equals(marker.identifier());
    return ours && isTable(((SubqueryAlias) filter.child()).child()) ? filter : null;
  }

  private static boolean isTable(LogicalPlan plan) {
    return plan instanceof SubqueryAlias alias && alias.child() instanceof DataSourceV2Relation;
  }

  /** The columns of the parts of a policy that could raise. */
  private static AttributeSet guarded(Expression condition) {
    if (condition instanceof TryEval || condition instanceof Shield) return condition.references();
    AttributeSet columns = AttributeSet$.MODULE$.empty();
    for (Expression each : Trees.each(condition.children())) columns = columns.$plus$plus(guarded(each));
    return columns;
  }

  private static boolean isVisible(AttributeReference column, Project visible) {
    for (NamedExpression item : Trees.each(visible.projectList()))
      if (item instanceof AttributeReference shown && shown.exprId().equals(column.exprId())) return true;
    return false;
  }

  private static boolean isBarrier(Filter filter) {
    return filter.child() instanceof SubqueryAlias
        && filter.condition().sql().equalsIgnoreCase("(spark_partition_id() >= 0)");
  }

  /** The barrier and the policy's own condition stand directly above a marker. */
  private static boolean isOurs(Filter filter) {
    return filter.child() instanceof SubqueryAlias alias && alias.identifier().name().startsWith("_sqe_r_");
  }

  private static void conjuncts(Expression condition, List<Expression> found) {
    for (Expression one : Trees.conjuncts(condition)) {
      if (one instanceof Between between) conjuncts(between.replacement(), found);
      else if (one instanceof With with) conjuncts(expanded(with.child(), with), found);
      else {
        Expression safe = safe(one);
        if (safe != null) found.add(safe);
      }
    }
  }

  /** BETWEEN names what it compares once: the comparisons with the column itself in its place. */
  private static Expression expanded(Expression expression, With with) {
    if (expression instanceof CommonExpressionRef reference)
      for (CommonExpressionDef named : Trees.each(with.defs())) if (named.id().equals(reference.id())) return named.child();
    return expression.mapChildren(each -> expanded(each, with));
  }

  /** The condition in a form that never fails, or null. */
  private static Expression safe(Expression condition) {
    if (condition instanceof IsNull || condition instanceof IsNotNull)
      return Trees.first(condition.children()) instanceof AttributeReference ? condition : null;
    if (condition instanceof BinaryComparison pair) {
      boolean columnFirst = isColumn(pair.left());
      Literal constant = columnFirst ? constant(pair.right()) : isColumn(pair.right()) ? constant(pair.left()) : null;
      if (constant == null) return null;
      return condition.withNewChildren(columnFirst ? Trees.seq(pair.left(), constant) : Trees.seq(constant, pair.right()));
    }
    if (!(condition instanceof In in) || !isColumn(in.value()) || Trees.size(in.list()) > MAX_CONSTANTS) return null;
    List<Expression> constants = new ArrayList<>();
    for (Expression each : Trees.each(in.list())) constants.add(constant(each));
    return constants.contains(null) ? null : new In(in.value(), Trees.seq(constants));
  }

  private static boolean isColumn(Expression expression) {
    if (expression instanceof Cast cast)
      return cast.child() instanceof AttributeReference && SafeCasts.widens(cast);
    return expression instanceof AttributeReference && expression.dataType() instanceof AtomicType;
  }

  private static Literal constant(Expression expression) {
    if (expression instanceof Literal literal) return literal;
    if (!expression.resolved() || !expression.foldable() || !expression.deterministic()) return null;
    try {
      return new Literal(expression.eval(null), expression.dataType());
    } catch (Exception fails) {
      return null;
    }
  }

  private static AttributeReference column(Expression condition) {
    Expression column = Trees.first(condition.children());
    if (column instanceof Literal) column = ((BinaryComparison) condition).right();
    return (AttributeReference) (column instanceof Cast cast ? cast.child() : column);
  }
}
