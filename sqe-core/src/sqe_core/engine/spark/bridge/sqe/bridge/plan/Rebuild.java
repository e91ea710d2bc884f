package sqe.bridge.plan;

import java.util.ArrayDeque;
import java.util.IdentityHashMap;
import java.util.Map;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.trees.TreeNode;

/** Exchanges nodes of a plan wherever they stand, in any field, from below to above and without recursion. */
public abstract class Rebuild {
  private final Map<TreeNode<?>, TreeNode<?>> done = new IdentityHashMap<>(); // what each node became

  private record Step(TreeNode<?> node, boolean childrenDone) {}

  /** What the node becomes, before its children are looked at; null goes on with the children. */
  protected TreeNode<?> exchange(TreeNode<?> node) {
    return null;
  }

  /** What the node becomes once its children are final. `before` is how it was in the old plan. */
  protected TreeNode<?> finish(TreeNode<?> before, TreeNode<?> after) {
    return after;
  }

  /** What a node becomes once its children are final. */
  public interface Change {
    TreeNode<?> of(TreeNode<?> node);
  }

  /** The plan with each node changed. */
  public static LogicalPlan each(LogicalPlan plan, Change change) {
    return new Rebuild() {
      protected TreeNode<?> finish(TreeNode<?> before, TreeNode<?> after) {
        return change.of(after);
      }
    }.apply(plan);
  }

  public LogicalPlan apply(LogicalPlan plan) {
    ArrayDeque<Step> steps = new ArrayDeque<>();
    steps.push(new Step(plan, false));
    while (!steps.isEmpty()) {
      Step step = steps.pop();
      if (done.containsKey(step.node)) continue;
      TreeNode<?> after = step.childrenDone ? finish(step.node, withNewFields(step.node)) : exchange(step.node);
      if (after != null) {
        done.put(step.node, after);
        continue;
      }
      steps.push(new Step(step.node, true));
      for (TreeNode<?> each : Trees.below(step.node)) steps.push(new Step(each, false));
    }
    return (LogicalPlan) done.get(plan);
  }

  private TreeNode<?> withNewFields(TreeNode<?> node) {
    Object[] fields = new Object[node.productArity()];
    boolean same = true;
    for (int i = 0; i < fields.length; i++) {
      Object before = node.productElement(i);
      fields[i] = Trees.exchange(before, done);
      same &= fields[i] == before;
    }
    // Keeps the origin and the tags.
    return same ? node : node.makeCopy(fields);
  }
}
