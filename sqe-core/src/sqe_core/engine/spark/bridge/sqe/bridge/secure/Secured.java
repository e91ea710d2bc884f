package sqe.bridge.secure;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.AliasIdentifier;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.catalyst.trees.TreeNodeTag;
import sqe.bridge.plan.Trees;

/** The cover of everything that replaces a name: it keeps the visible name and hides what is below (ENF-4, ENF-7). */
public final class Secured {
  private static final TreeNodeTag TAG = new TreeNodeTag("sqe.cover");

  private Secured() {}

  public static SubqueryAlias cover(LogicalPlan plan, List visibleName) {
    int last = visibleName.size() - 1;
    List qualifier = new ArrayList(visibleName.subList(0, last));
    AliasIdentifier identifier = new AliasIdentifier((String) visibleName.get(last), Trees.seq(qualifier));
    SubqueryAlias alias = new SubqueryAlias(identifier, plan);
    alias.setTagValue(TAG, Boolean.TRUE);
    return alias;
  }

  public static boolean isCover(SubqueryAlias alias) {
    return alias.getTagValue(TAG).isDefined();
  }
}
