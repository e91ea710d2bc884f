package sqe.bridge.secure;

import java.util.List;
import org.apache.spark.sql.catalyst.AliasIdentifier;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.catalyst.trees.TreeNodeTag;
import sqe.bridge.plan.Trees;

/** The cover of everything that replaces a name: it keeps the visible name and hides what is below (ENF-4, ENF-7). */
public final class Secured {
  private static final TreeNodeTag<Boolean> TAG = new TreeNodeTag<>("sqe.cover");

  private Secured() {}

  public static SubqueryAlias cover(LogicalPlan plan, List<String> visibleName) {
    SubqueryAlias alias = named(plan, visibleName);
    alias.setTagValue(TAG, Boolean.TRUE);
    return alias;
  }

  /** The plan under a name. */
  static SubqueryAlias named(LogicalPlan plan, List<String> name) {
    int last = name.size() - 1;
    return new SubqueryAlias(new AliasIdentifier(name.get(last), Trees.seq(name.subList(0, last))), plan);
  }

  public static boolean isCover(SubqueryAlias alias) {
    return alias.getTagValue(TAG).isDefined();
  }
}
