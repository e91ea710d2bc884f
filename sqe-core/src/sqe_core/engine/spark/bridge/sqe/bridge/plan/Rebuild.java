package sqe.bridge.plan;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.IdentityHashMap;
import java.util.List;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.trees.TreeNode;

/** Exchanges nodes of a plan wherever they stand, in any field, from below to above and without recursion. */
public abstract class Rebuild {
  private final IdentityHashMap done = new IdentityHashMap(); // node -> what it became

  private record Step(TreeNode node, boolean childrenDone) {}

  /** What the node becomes, before its children are looked at; null goes on with the children. */
  protected abstract TreeNode exchange(TreeNode node);

  /** What the node becomes once its children are final. `before` is how it was in the old plan. */
  protected TreeNode finish(TreeNode before, TreeNode after) {
    return after;
  }

  public LogicalPlan apply(LogicalPlan plan) {
    ArrayDeque<Step> steps = new ArrayDeque<>();
    steps.push(new Step(plan, false));
    while (!steps.isEmpty()) {
      Step step = (Step) steps.pop();
      if (done.containsKey(step.node)) continue;
      if (step.childrenDone) {
        done.put(step.node, finish(step.node, withNewFields(step.node)));
        continue;
      }
      TreeNode exchanged = exchange(step.node);
      if (exchanged != null) {
        done.put(step.node, exchanged);
        continue;
      }
      steps.push(new Step(step.node, true));
      List<TreeNode> below = new ArrayList<>();
      for (scala.collection.Iterator each = step.node.productIterator(); each.hasNext(); )
        Trees.nodesIn(each.next(), below);
      for (TreeNode each : below) steps.push(new Step(each, false));
    }
    return (LogicalPlan) done.get(plan);
  }

  private TreeNode withNewFields(TreeNode node) {
    Object[] fields = new Object[node.productArity()];
    boolean same = true;
    for (int i = 0; i < fields.length; i++) {
      Object before = node.productElement(i);
      fields[i] = Trees.exchange(before, done);
      if (fields[i] != before) same = false;
    }
    // Keeps the origin and the tags.
    return same ? node : node.makeCopy(fields);
  }
}
