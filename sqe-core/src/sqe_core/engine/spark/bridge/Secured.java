package sqe.bridge;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.AliasIdentifier;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.catalyst.trees.TreeNodeTag;

/** The cover of everything that replaces a name: it keeps the visible name and hides what is below (ENF-4, ENF-7). */
final class Secured {
  private static final TreeNodeTag TAG = new TreeNodeTag("sqe.cover");

  private Secured() {}

  static SubqueryAlias cover(LogicalPlan plan, List visibleName) {
    int last = visibleName.size() - 1;
    List qualifier = new ArrayList(visibleName.subList(0, last));
    AliasIdentifier identifier = new AliasIdentifier((String) visibleName.get(last), Trees.seq(qualifier));
    SubqueryAlias alias = new SubqueryAlias(identifier, plan);
    alias.setTagValue(TAG, Boolean.TRUE);
    return alias;
  }

  static boolean isCover(SubqueryAlias alias) {
    return alias.getTagValue(TAG).isDefined();
  }
}
