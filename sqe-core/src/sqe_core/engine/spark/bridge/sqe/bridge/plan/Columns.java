package sqe.bridge.plan;

import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.BiConsumer;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.*;
import org.apache.spark.sql.catalyst.trees.TreeNode;

/** What the columns of an analysed plan stand for: through aliases, unions and common table expressions. */
public final class Columns {
  private final Map<ExprId, Expression> values = new HashMap<>();
  private final Map<ExprId, Set<Attribute>> united = new HashMap<>(); // the columns of other sides of a union

  public Columns(List<TreeNode<?>> nodes) {
    Map<Long, CTERelationDef> definitions = new HashMap<>();
    for (TreeNode<?> node : nodes) if (node instanceof CTERelationDef definition) definitions.put(definition.id(), definition);
    for (TreeNode<?> node : nodes) {
      if (node instanceof Alias alias) values.put(alias.exprId(), alias.child());
      if (node instanceof CTERelationRef reference && definitions.containsKey(reference.cteId()))
        pairs(reference, definitions.get(reference.cteId()), values::put);
      if (node instanceof Union || node instanceof UnionLoop) {
        for (Attribute each : Trees.each(((LogicalPlan) node).output())) united.putIfAbsent(each.exprId(), new LinkedHashSet<>());
        for (LogicalPlan side : Trees.each(((LogicalPlan) node).children()))
          pairs((LogicalPlan) node, side, (column, other) -> united.get(column).add(other));
      }
    }
  }

  /** But for the same column: a union has those of its first side, and the first reference to an expression those of it. */
  private static void pairs(LogicalPlan plan, LogicalPlan from, BiConsumer<ExprId, Attribute> found) {
    List<Attribute> columns = Trees.list(plan.output());
    List<Attribute> sources = Trees.list(from.output());
    for (int i = 0; i < Math.min(columns.size(), sources.size()); i++)
      if (!columns.get(i).exprId().equals(sources.get(i).exprId())) found.accept(columns.get(i).exprId(), sources.get(i));
  }

  /** What a column is another name of; null for a column of a relation, and for what is neither. */
  public Expression valueOf(ExprId column) {
    return values.get(column);
  }

  public boolean isUnited(ExprId column) {
    return united.containsKey(column);
  }

  /** What else stands in a column of a union. */
  public Set<Attribute> besides(ExprId column) {
    return united.getOrDefault(column, Set.of());
  }

  /** All that may stand in a column. */
  Set<Expression> all(ExprId column) {
    Set<Expression> all = new LinkedHashSet<>(besides(column));
    if (values.containsKey(column)) all.add(values.get(column));
    return all;
  }
}
