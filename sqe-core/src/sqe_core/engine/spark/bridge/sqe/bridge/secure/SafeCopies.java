package sqe.bridge.secure;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.AttributeSet;
import org.apache.spark.sql.catalyst.expressions.AttributeSet$;
import org.apache.spark.sql.catalyst.expressions.Between;
import org.apache.spark.sql.catalyst.expressions.BinaryComparison;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.CommonExpressionDef;
import org.apache.spark.sql.catalyst.expressions.CommonExpressionRef;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.In;
import org.apache.spark.sql.catalyst.expressions.IsNotNull;
import org.apache.spark.sql.catalyst.expressions.IsNull;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.TryEval;
import org.apache.spark.sql.catalyst.expressions.With;
import org.apache.spark.sql.catalyst.plans.JoinType;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Sort;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.types.AtomicType;
import org.apache.spark.sql.types.DataType;
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
public final class SafeCopies extends Rebuild {
  private static final int MAX_CONSTANTS = 200;

  private final Map<TreeNode<?>, List<Expression>> additions = new IdentityHashMap<>(); // to a policy's Filter

  private SafeCopies() {}

  /** The plan with the copies, or the same object when there are none. */
  public static LogicalPlan within(LogicalPlan plan) {
    SafeCopies copies = new SafeCopies();
    copies.collect(plan);
    return copies.additions.isEmpty() ? plan : copies.apply(plan);
  }

  protected TreeNode exchange(TreeNode node) {
    return null;
  }

  protected TreeNode finish(TreeNode before, TreeNode after) {
    List<Expression> added = additions.get(before);
    if (added == null) return after;
    Filter filter = (Filter) after;
    Expression condition = filter.condition();
    for (Expression each : added) condition = new And(condition, each);
    return filter.copy(condition, filter.child());
  }

  private void collect(LogicalPlan root) {
    ArrayDeque rest = new ArrayDeque();
    Set seen = Collections.newSetFromMap(new IdentityHashMap());
    rest.push(root);
    while (!rest.isEmpty()) {
      TreeNode node = (TreeNode) rest.pop();
      if (!seen.add(node)) continue;
      if (node instanceof Filter filter && !isOurs(filter)) offer(filter);
      List below = new ArrayList();
      for (scala.collection.Iterator each = node.productIterator(); each.hasNext(); ) Trees.nodesIn(each.next(), below);
      for (var each : below) rest.push(each);
    }
  }

  private void offer(Filter filter) {
    List<Expression> safe = new ArrayList<>();
    conjuncts(filter.condition(), safe);
    if (safe.isEmpty()) return;
    ArrayDeque rest = new ArrayDeque();
    rest.push(filter.child());
    while (!rest.isEmpty()) {
      LogicalPlan plan = (LogicalPlan) rest.pop();
      if (plan instanceof SubqueryAlias alias && restricted(alias, safe)) continue;
      if (plan instanceof SubqueryAlias || plan instanceof Project || plan instanceof Filter || plan instanceof Sort)
        rest.push(Trees.first(plan.children()));
      else if (plan instanceof Join join) sides(join, rest);
    }
  }

  /** Where each row that fails the condition is one that the filter above the join drops. */
  private static void sides(Join join, ArrayDeque rest) {
    JoinType type = join.joinType();
    String name = type.sql();
    boolean both = name.equals("INNER") || name.equals("CROSS");
    if (both || name.equals("LEFT OUTER") || name.equals("LEFT SEMI") || name.equals("LEFT ANTI")) rest.push(join.left());
    if (both || name.equals("RIGHT OUTER")) rest.push(join.right());
  }

  /** Adds what fits to a relation under a row filter; false when this alias covers none. */
  private boolean restricted(SubqueryAlias cover, List<Expression> safe) {
    if (!Secured.isCover(cover) || !(cover.child() instanceof Project)) return false;
    Project visible = (Project) cover.child();
    if (!(visible.child() instanceof Filter) || !isBarrier((Filter) visible.child())) return false;
    LogicalPlan policy = filter((SubqueryAlias) ((Filter) visible.child()).child());
    if (policy == null) return true;
    AttributeSet guarded = guarded(((Filter) policy).condition());
    for (Expression condition : safe) {
      // Beside a constant the optimizer puts it into the policy's own condition, which has a guard where it could raise.
      if (!isVisible(column(condition), visible) || guarded.contains(column(condition))) continue;
      additions.computeIfAbsent(policy, each -> new ArrayList<>()).add(named(condition, Trees.first(policy.children())));
    }
    return true;
  }

  /** The same condition with its column under the name that it has there, which is what the verifier knows. */
  private static Expression named(Expression condition, LogicalPlan relation) {
    AttributeReference column = column(condition);
    for (Object attribute : Trees.each(relation.output())) {
      if (!((Attribute) attribute).exprId().equals(column.exprId())) continue;
      List children = Trees.list(condition.children());
      for (int i = 0; i < children.size(); i++) {
        if (children.get(i) == column) children.set(i, attribute);
        else if (children.get(i) instanceof Cast) children.set(i, ((Expression) children.get(i)).withNewChildren(Trees.seq((Expression) attribute)));
      }
      return condition.withNewChildren(Trees.seq(children));
    }
    throw new BridgeException("SQE_CANNOT_REWRITE", "a condition of a column that is not there");
  }

  /**
   * The policy's own filter below the barrier, under the same name once more; null where the barrier stands alone, and
   * above a view: a column of that may be computed, and a condition on it moves down to rows that are hidden.
   */
  private static LogicalPlan filter(SubqueryAlias marker) {
    if (!(marker.child() instanceof Project) || !(((Project) marker.child()).child() instanceof Filter)) return null;
    Filter filter = (Filter) ((Project) marker.child()).child();
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
    for (var each : Trees.each(condition.children())) columns = columns.$plus$plus(guarded(each));
    return columns;
  }

  private static boolean isVisible(AttributeReference column, Project visible) {
    for (Object item : Trees.each(visible.projectList())) {
      if (item instanceof AttributeReference && ((Attribute) item).exprId().equals(column.exprId())) return true;
    }
    return false;
  }

  private static boolean isBarrier(Filter filter) {
    return filter.child() instanceof SubqueryAlias
        && filter.condition().sql().equalsIgnoreCase("(spark_partition_id() >= 0)");
  }

  /** The barrier and the policy's own condition stand directly above a marker. */
  private static boolean isOurs(Filter filter) {
    return filter.child() instanceof SubqueryAlias
        && ((SubqueryAlias) filter.child()).identifier().name().startsWith("_sqe_r_");
  }

  private static void conjuncts(Expression condition, List<Expression> found) {
    ArrayDeque rest = new ArrayDeque();
    rest.push(condition);
    while (!rest.isEmpty()) {
      Expression one = (Expression) rest.pop();
      if (one instanceof And and) {
        rest.push(and.right());
        rest.push(and.left());
        continue;
      }
      if (one instanceof Between between) {
        rest.push(between.replacement());
        continue;
      }
      if (one instanceof With with) {
        rest.push(expanded(with.child(), with));
        continue;
      }
      Expression safe = safe(one);
      if (safe != null) found.add(safe);
    }
  }

  /** BETWEEN names what it compares once: the comparisons with the column itself in its place. */
  private static Expression expanded(Expression expression, With with) {
    if (expression instanceof CommonExpressionRef ref) {
      Object id = ref.id();
      for (CommonExpressionDef named : Trees.each(with.defs())) {
        if (named.id().equals(id)) return named.child();
      }
      return expression;
    }
    List children = Trees.list(expression.children());
    for (int i = 0; i < children.size(); i++) children.set(i, expanded((Expression) children.get(i), with));
    return expression.withNewChildren(Trees.seq(children));
  }

  /** The condition in a form that never fails, or null. */
  private static Expression safe(Expression condition) {
    if (condition instanceof IsNull || condition instanceof IsNotNull)
      return Trees.first(condition.children()) instanceof AttributeReference ? condition : null;
    if (condition instanceof BinaryComparison) {
      Expression left = Trees.first(condition.children());
      Expression right = Trees.list(condition.children()).get(Trees.list(condition.children()).size() - 1);
      Literal constant = isColumn(left) ? constant(right) : isColumn(right) ? constant(left) : null;
      if (constant == null) return null;
      List sides = new ArrayList();
      sides.add(isColumn(left) ? left : constant);
      sides.add(isColumn(left) ? constant : right);
      return condition.withNewChildren(Trees.seq(sides));
    }
    if (!(condition instanceof In) || !isColumn(((In) condition).value())) return null;
    scala.collection.Seq values = ((In) condition).list();
    if (values.size() > MAX_CONSTANTS) return null;
    List constants = new ArrayList();
    for (int i = 0; i < values.size(); i++) {
      Literal constant = constant((Expression) values.apply(i));
      if (constant == null) return null;
      constants.add(constant);
    }
    return new In(((In) condition).value(), Trees.seq(constants));
  }

  private static boolean isColumn(Expression expression) {
    if (expression instanceof Cast cast) {
      return cast.child() instanceof AttributeReference && SafeCasts.widens(cast);
    }
    return expression instanceof AttributeReference && isSimple(expression.dataType());
  }

  private static boolean isSimple(DataType type) {
    return type instanceof AtomicType;
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
    Expression first = Trees.first(condition.children());
    Expression column = first instanceof Literal ? Trees.list(condition.children()).get(Trees.list(condition.children()).size() - 1) : first;
    return (AttributeReference) (column instanceof Cast cast ? cast.child() : column);
  }
}
