package sqe.bridge.plan;

import java.util.HashMap;
import java.util.Map;
import org.apache.spark.sql.catalyst.analysis.ExpandStarParameters;
import org.apache.spark.sql.catalyst.analysis.UnresolvedStar;
import org.apache.spark.sql.catalyst.analysis.UnresolvedStarExceptOrReplace;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.V2CreateTableAsSelectPlan;
import org.apache.spark.sql.catalyst.plans.logical.WithCTE;
import org.apache.spark.sql.catalyst.trees.CurrentOrigin;
import org.apache.spark.sql.catalyst.trees.Origin;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import sqe.bridge.BridgeException;

/**
 * Bounds on columns that no text shows (LIM-5). Stars over stars double with each level, and Spark expands all levels in
 * one pass: they are counted while it does.
 */
public final class Stars extends Rebuild {
  /** The `max_columns` of query/judge/inspect.py. */
  static final int MAX_COLUMNS = 5000;
  /** What all stars of a statement may stand for, those of its views and subqueries included. */
  static final int MAX_EXPANDED = 10 * MAX_COLUMNS;

  private int expanded;

  private Stars() {}

  public static LogicalPlan bounded(LogicalPlan parsed) {
    return new Stars().apply(parsed);
  }

  /** Refuses more columns than a result, or a table that a query makes, may have. */
  public static void check(LogicalPlan analysed) {
    if (analysed instanceof WithCTE with) analysed = with.plan();
    LogicalPlan query =
        analysed instanceof V2CreateTableAsSelectPlan vctasp ? vctasp.query() : analysed;
    int columns = Trees.list(query.output()).size();
    if (columns > MAX_COLUMNS) throw tooMany("SQE_RESULT_COLUMNS", columns, MAX_COLUMNS);
  }

  private static BridgeException tooMany(String condition, int columns, int most) {
    Map parameters = new HashMap();
    parameters.put("columns", String.valueOf(columns));
    parameters.put("most", String.valueOf(most));
    return new BridgeException(condition, columns + " columns", parameters);
  }

  private scala.collection.immutable.Seq counted(scala.collection.immutable.Seq columns) {
    expanded += columns.size();
    if (expanded > MAX_EXPANDED) throw tooMany("SQE_STAR_COLUMNS", expanded, MAX_EXPANDED);
    return columns;
  }

  protected TreeNode exchange(TreeNode node) {
    return null;
  }

  protected TreeNode finish(TreeNode before, TreeNode after) {
    boolean plain = after instanceof UnresolvedStar;
    if (!plain && !(after instanceof UnresolvedStarExceptOrReplace)) return after;
    Origin outer = CurrentOrigin.get();
    CurrentOrigin.set(after.origin());
    try {
      return plain ? (TreeNode) new Plain((UnresolvedStar) after, this) : new Except((UnresolvedStarExceptOrReplace) after, this);
    } finally {
      CurrentOrigin.set(outer);
    }
  }

  private static final class Plain extends UnresolvedStar {
    private final Stars stars;

    Plain(UnresolvedStar star, Stars stars) {
      super(star.target());
      this.stars = stars;
    }

    public scala.collection.immutable.Seq expandStar(ExpandStarParameters parameters) {
      return stars.counted(super.expandStar(parameters));
    }
  }

  private static final class Except extends UnresolvedStarExceptOrReplace {
    private final Stars stars;

    Except(UnresolvedStarExceptOrReplace star, Stars stars) {
      super(star.target(), star.excepts(), star.replacements());
      this.stars = stars;
    }

    public scala.collection.immutable.Seq expandStar(ExpandStarParameters parameters) {
      return stars.counted(super.expandStar(parameters));
    }
  }
}
