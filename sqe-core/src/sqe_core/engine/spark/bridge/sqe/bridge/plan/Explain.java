package sqe.bridge.plan;

import java.util.ArrayDeque;
import java.util.List;
import java.util.regex.Pattern;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.catalyst.plans.logical.V2WriteCommand;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.internal.SQLConf;
import sqe.bridge.Json;
import sqe.bridge.catalog.SqeCatalog;
import sqe.bridge.exec.Interruptible;
import sqe.bridge.secure.Secured;

/** The texts of EXPLAIN. In the logical plan everything that was secured is one opaque line (META-5). */
public final class Explain {
  // Numbers that Spark gives to columns and plans, addresses of Java objects: they differ in each run and say nothing.
  private static final Pattern NOISE =
      Pattern.compile("#\\d+L?|, \\[plan_id=\\d+\\]|@[0-9a-f]{5,16}\\b|, \\[?org\\.apache\\.\\S*\\$\\$Lambda\\S*");

  // A filter that lets everything pass.
  private static final Pattern OURS = Pattern.compile("(?m)^.*" + Pattern.quote(Interruptible.MARK) + ".*\\n?");

  private Explain() {}

  public static String json(QueryExecution execution, List<String> aliases) {
    StringBuilder out = new StringBuilder("[");
    Json.strings(out, "logical_plan", shown(logical(execution.analyzed()), aliases));
    Json.strings(out.append(','), "physical_plan", shown(execution.executedPlan().toString(), aliases));
    return out.append(']').toString();
  }

  private static String shown(String text, List<String> aliases) {
    String shown = NOISE.matcher(OURS.matcher(text).replaceAll("")).replaceAll("");
    for (String alias : List.copyOf(aliases)) {
      shown = shown.replace("`" + alias + "`.", "").replace(alias + ".", "").replace(alias, "");
    }
    return shown.trim();
  }

  private record Line(LogicalPlan plan, int depth) {}

  private static boolean isCheck(LogicalPlan plan) {
    return plan instanceof Filter filter
        && filter.child() instanceof SubqueryAlias alias
        && alias.identifier().name().startsWith("_sqe_r_");
  }

  /** A node in a line. Of rows that are changed in part its condition holds the policy's, and its table is no name. */
  private static String told(LogicalPlan plan) {
    boolean partly =
        plan instanceof V2WriteCommand write
            && write.table() instanceof DataSourceV2Relation target
            && target.identifier().exists(name -> name.name().equals(SqeCatalog.VISIBLE_ROWS));
    if (!partly) return plan.simpleString(SQLConf.get().maxToStringFields()).trim();
    DataSourceV2Relation target = (DataSourceV2Relation) ((V2WriteCommand) plan).table();
    return Trees.simpleName(plan) + " " + String.join(".", target.identifier().get().namespace());
  }

  private static String logical(LogicalPlan root) {
    StringBuilder text = new StringBuilder();
    ArrayDeque<Line> lines = new ArrayDeque<>(List.of(new Line(root, 0)));
    while (!lines.isEmpty()) {
      Line line = lines.pop();
      if (isCheck(line.plan)) {
        // What a policy says of written rows stands in no statement of the user's.
        lines.push(new Line(Trees.first(Trees.first(line.plan.children()).children()), line.depth));
        continue;
      }
      for (int i = 0; i < line.depth; i++) text.append(i == line.depth - 1 ? "+- " : "   ");
      boolean cover = line.plan instanceof SubqueryAlias alias && Secured.isCover(alias);
      if (cover) {
        text.append("Table ").append(((SubqueryAlias) line.plan).identifier().toString()).append('\n');
        continue;
      }
      text.append(told(line.plan)).append('\n');
      List<LogicalPlan> below = Trees.list(line.plan.children());
      // Subqueries, definitions of common table expressions and the query of a command hang here.
      for (TreeNode<?> inner : Trees.each(line.plan.innerChildren()))
        if (inner instanceof LogicalPlan plan && !Trees.isChild(line.plan, plan)) below.add(plan);
      for (int i = below.size() - 1; i >= 0; i--) lines.push(new Line(below.get(i), line.depth + 1));
    }
    return text.toString();
  }
}
