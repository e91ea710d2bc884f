package sqe.bridge.types;

import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.iceberg.Schema;
import org.apache.iceberg.spark.source.SparkTable;
import org.apache.iceberg.types.Type;
import org.apache.iceberg.types.Types;
import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.sql.catalyst.plans.logical.*;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import sqe.bridge.catalog.IcebergFields;
import sqe.bridge.plan.Trees;

/**
 * Which columns of an analysed plan are nothing but a column of a table or a view, and what Iceberg says of their types.
 * Spark has one word for what Iceberg tells apart, text for uuid and bytes for fixed, and a value that was computed may be
 * of no such type.
 */
final class ColumnOrigins {
  private final Map<ExprId, Type> types = new HashMap<>(); // Iceberg's type of a column, where Spark's says less
  private final Set<ExprId> mixed = new HashSet<>(); // columns with values from elsewhere
  private final Map<ExprId, String[]> tables = new HashMap<>(); // catalog, schema and name of what the user reads it from
  private final Map<ExprId, ExprId> renamed = new HashMap<>(); // the column that a column is another name of
  private final Set<ExprId> united = new HashSet<>(); // columns of unions
  private final Map<Long, CTERelationDef> definitions = new HashMap<>(); // by their numbers

  private ColumnOrigins() {}

  static ColumnOrigins of(LogicalPlan plan) {
    ColumnOrigins origins = new ColumnOrigins();
    List<TreeNode<?>> nodes = Trees.all(plan);
    for (TreeNode<?> node : nodes) origins.name(node);
    for (TreeNode<?> node : nodes) if (node instanceof CTERelationRef reference) origins.name(reference);
    if (origins.types.isEmpty()) return origins;
    // From below to above it is one round; columns of unions and of common table expressions may take some more.
    for (boolean more = true; more; ) {
      more = false;
      for (int i = nodes.size() - 1; i >= 0; i--) more |= origins.visit(nodes.get(i));
    }
    return origins;
  }

  /** The type of Iceberg that a column certainly has; null where Spark's type says all, or nothing is certain. */
  Type of(NamedExpression column) {
    return mixed.contains(column.exprId()) ? null : types.get(column.exprId());
  }

  /**
   * Catalog, schema and name of the table or view that a column is of, as the user may know it; null for all others. What a
   * view reads is not named.
   */
  String[] tableOf(NamedExpression column) {
    ExprId id = column.exprId();
    for (int steps = renamed.size(); steps >= 0 && id != null && !united.contains(id); steps--) {
      if (tables.containsKey(id)) return tables.get(id);
      id = renamed.get(id);
    }
    return null;
  }

  /** Nodes come from above to below, so that a view is named before what it reads. */
  private void name(TreeNode<?> node) {
    if (node instanceof DataSourceV2Relation relation) relation(relation);
    if (node instanceof CTERelationDef definition) definitions.put(definition.id(), definition);
    if (node instanceof Alias alias && alias.child() instanceof AttributeReference column)
      renamed.put(alias.exprId(), column.exprId());
    if (isUnion(node)) for (Attribute each : Trees.each(((LogicalPlan) node).output())) united.add(each.exprId());
    if (!(node instanceof SubqueryAlias alias)) return;
    List<String> qualifier = Trees.list(alias.identifier().qualifier());
    if (qualifier.size() < 2) return; // what the statement calls something
    String schema = String.join(".", qualifier.subList(1, qualifier.size()));
    String[] table = {qualifier.get(0), schema, alias.identifier().name()};
    for (Attribute each : Trees.each(alias.output())) tables.putIfAbsent(each.exprId(), table);
  }

  private void name(CTERelationRef reference) {
    if (!definitions.containsKey(reference.cteId())) return;
    List<Attribute> defined = Trees.list(definitions.get(reference.cteId()).output());
    List<Attribute> referred = Trees.list(reference.output());
    for (int i = 0; i < Math.min(defined.size(), referred.size()); i++) {
      ExprId id = defined.get(i).exprId();
      if (!id.equals(referred.get(i).exprId())) renamed.put(referred.get(i).exprId(), id); // the first reference has the ids of the definition
    }
  }

  private static boolean isUnion(TreeNode<?> node) {
    return node instanceof Union || node instanceof UnionLoop;
  }

  private void relation(DataSourceV2Relation relation) {
    if (!(relation.table() instanceof SparkTable table)) return;
    Schema schema = IcebergFields.schema(table);
    for (Attribute column : Trees.each(relation.output())) {
      Types.NestedField field = schema.findField(column.name());
      if (field != null && ArrowTypes.saysMore(field.type())) types.put(column.exprId(), field.type());
    }
  }

  private boolean visit(TreeNode<?> node) {
    if (node instanceof Alias alias && alias.child() instanceof AttributeReference column)
      return copy(column.exprId(), alias.exprId());
    boolean more = false;
    if (node instanceof CTERelationRef reference && definitions.containsKey(reference.cteId())) {
      List<Attribute> from = Trees.list(definitions.get(reference.cteId()).output());
      List<Attribute> to = Trees.list(reference.output());
      for (int i = 0; i < Math.min(from.size(), to.size()); i++) more |= copy(from.get(i).exprId(), to.get(i).exprId());
    }
    if (!isUnion(node)) return more;
    LogicalPlan union = (LogicalPlan) node;
    List<LogicalPlan> children = Trees.list(union.children());
    for (int place = 0; place < Trees.size(union.output()); place++) {
      ExprId column = Trees.at(union.output(), place).exprId();
      Type first = of(Trees.at(children.get(0).output(), place));
      for (LogicalPlan child : children) {
        boolean same = first != null && first.equals(of(Trees.at(child.output(), place)));
        if (!same && types.containsKey(column)) more |= mixed.add(column);
      }
    }
    return more;
  }

  private boolean copy(ExprId from, ExprId to) {
    boolean more = mixed.contains(from) && mixed.add(to);
    return types.containsKey(from) && types.put(to, types.get(from)) == null || more;
  }
}
