package sqe.bridge.plan;

import java.util.ArrayDeque;
import java.util.List;
import java.util.regex.Pattern;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.catalyst.plans.logical.V2WriteCommand;
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
    row(out, "logical_plan", logical(execution.analyzed()), aliases);
    row(out, "physical_plan", execution.executedPlan().toString(), aliases);
    return out.append(']').toString();
  }

  private static void row(StringBuilder out, String type, String text, List<String> aliases) {
    String shown = NOISE.matcher(OURS.matcher(text).replaceAll("")).replaceAll("");
    for (String alias : List.copyOf(aliases)) {
      shown = shown.replace("`" + alias + "`.", "").replace(alias + ".", "").replace(alias, "");
    }
    Json.element(out);
    out.append('[');
    Json.string(out, type);
    out.append(',');
    Json.string(out, shown.trim());
    out.append(']');
  }

  private record Line(LogicalPlan plan, int depth) {}

  private static boolean isCheck(LogicalPlan plan) {
    return plan instanceof Filter && isMarked(Trees.first(plan.children()));
  }

  private static boolean isMarked(LogicalPlan plan) {
    return plan instanceof SubqueryAlias alias && alias.identifier().name().startsWith("_sqe_r_");
  }

  /** A node in a line. Of rows that are changed in part its condition holds the policy's, and its table is no name. */
  private static String told(LogicalPlan plan) {
    if (plan instanceof V2WriteCommand command && ((V2WriteCommand) plan).table() instanceof DataSourceV2Relation) {
      DataSourceV2Relation target = (DataSourceV2Relation) command.table();
      if (target.identifier().isDefined()
          && target.identifier().get().name().equals(SqeCatalog.VISIBLE_ROWS))
        return Trees.simpleName(plan) + " " + String.join(".", target.identifier().get().namespace());
    }
    return plan.simpleString(SQLConf.get().maxToStringFields()).trim();
  }

  private static String logical(LogicalPlan root) {
    StringBuilder text = new StringBuilder();
    ArrayDeque<Line> lines = new ArrayDeque<>();
    lines.push(new Line(root, 0));
    while (!lines.isEmpty()) {
      Line line = (Line) lines.pop();
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
      List below = Trees.list(line.plan.children());
      // Subqueries, definitions of common table expressions and the query of a command hang here.
      for (Object inner : Trees.each(line.plan.innerChildren())) {
        if (inner instanceof LogicalPlan && !Trees.isChild(line.plan, inner)) below.add(inner);
      }
      for (int i = below.size() - 1; i >= 0; i--) lines.push(new Line((LogicalPlan) below.get(i), line.depth + 1));
    }
    return text.toString();
  }
}
