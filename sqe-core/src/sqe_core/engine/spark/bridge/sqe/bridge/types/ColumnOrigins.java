package sqe.bridge.types;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.iceberg.Schema;
import org.apache.iceberg.spark.source.SparkTable;
import org.apache.iceberg.types.Type;
import org.apache.iceberg.types.Types;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.logical.CTERelationDef;
import org.apache.spark.sql.catalyst.plans.logical.CTERelationRef;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import org.apache.spark.sql.catalyst.plans.logical.UnionLoop;
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
  private final Map types = new HashMap(); // id of a column -> Iceberg's type, where Spark's says less
  private final Set mixed = new HashSet(); // ids of columns with values from elsewhere
  private final Map tables = new HashMap(); // id of a column -> catalog, schema and name of what the user reads it from
  private final Map renamed = new HashMap(); // id of a column -> id of the one that it is another name of
  private final Set united = new HashSet(); // ids of columns of unions

  private ColumnOrigins() {}

  static ColumnOrigins of(LogicalPlan plan) {
    ColumnOrigins origins = new ColumnOrigins();
    List nodes = new ArrayList();
    nodes.add(plan);
    for (int i = 0; i < nodes.size(); i++) {
      TreeNode node = (TreeNode) nodes.get(i);
      if (node instanceof DataSourceV2Relation relation) origins.relation(relation);
      else origins.name(node);
      for (scala.collection.Iterator each = node.productIterator(); each.hasNext(); ) Trees.nodesIn(each.next(), nodes);
    }
    Map ctes = new HashMap();
    for (int i = 0; i < nodes.size(); i++)
      if (nodes.get(i) instanceof CTERelationDef) ctes.put(Long.valueOf(((CTERelationDef) nodes.get(i)).id()), nodes.get(i));
    for (int i = 0; i < nodes.size() && !ctes.isEmpty(); i++)
      if (nodes.get(i) instanceof CTERelationRef) origins.name((CTERelationRef) nodes.get(i), ctes);
    if (origins.types.isEmpty()) return origins;
    // From below to above it is one round; columns of unions and of common table expressions may take some more.
    for (boolean more = true; more; ) {
      more = false;
      for (int i = nodes.size() - 1; i >= 0; i--) if (origins.visit(nodes.get(i), ctes)) more = true;
    }
    return origins;
  }

  /** The type of Iceberg that a column certainly has; null where Spark's type says all, or nothing is certain. */
  Type of(NamedExpression column) {
    return mixed.contains(column.exprId()) ? null : (Type) types.get(column.exprId());
  }

  /**
   * Catalog, schema and name of the table or view that a column is of, as the user may know it; null for all others. What a
   * view reads is not named.
   */
  String[] tableOf(NamedExpression column) {
    Object id = column.exprId();
    for (int steps = renamed.size(); steps >= 0 && id != null && !united.contains(id); steps--) {
      if (tables.containsKey(id)) return (String[]) tables.get(id);
      id = renamed.get(id);
    }
    return null;
  }

  /** Nodes come from above to below, so that a view is named before what it reads. */
  private void name(Object node) {
    if (node instanceof Alias alias && ((Alias) node).child() instanceof AttributeReference)
      renamed.put(alias.exprId(), ((AttributeReference) alias.child()).exprId());
    if (node instanceof Union || node instanceof UnionLoop) {
      for (var each : Trees.each(((LogicalPlan) node).output())) united.add(each.exprId());
    }
    if (!(node instanceof SubqueryAlias)) return;
    SubqueryAlias alias = (SubqueryAlias) node;
    List qualifier = Trees.list(alias.identifier().qualifier());
    if (qualifier.size() < 2) return; // what the statement calls something
    String schema = String.join(".", qualifier.subList(1, qualifier.size()));
    String[] table = {(String) qualifier.get(0), schema, alias.identifier().name()};
    for (var each : Trees.each(alias.output())) tables.putIfAbsent(each.exprId(), table);
  }

  private void name(CTERelationRef reference, Map ctes) {
    CTERelationDef definition = (CTERelationDef) ctes.get(Long.valueOf(reference.cteId()));
    for (int i = 0; definition != null && i < Trees.list(reference.output()).size() && i < Trees.list(definition.output()).size(); i++) {
      Object id = Trees.list(definition.output()).get(i).exprId();
      Object referred = Trees.list(reference.output()).get(i).exprId();
      if (!id.equals(referred)) renamed.put(referred, id); // the first reference has the ids of the definition
    }
  }

  private void relation(DataSourceV2Relation relation) {
    if (!(relation.table() instanceof SparkTable)) return;
    Schema schema = IcebergFields.schema((SparkTable) relation.table());
    for (Attribute column : Trees.each(relation.output())) {
      Types.NestedField field = schema.findField(column.name());
      if (field != null && ArrowTypes.saysMore(field.type())) types.put(column.exprId(), field.type());
    }
  }

  private boolean visit(Object node, Map ctes) {
    if (node instanceof Alias alias) {
      Object child = alias.child();
      if (!(child instanceof AttributeReference)) return false;
      return copy(((AttributeReference) child).exprId(), alias.exprId());
    }
    if (node instanceof CTERelationRef ref) {
      CTERelationDef definition = (CTERelationDef) ctes.get(Long.valueOf(ref.cteId()));
      return definition != null && copyAll(definition.output(), ref.output());
    }
    if (!(node instanceof Union) && !(node instanceof UnionLoop)) return false;
    boolean more = false;
    LogicalPlan union = (LogicalPlan) node;
    for (int place = 0; place < Trees.list(union.output()).size(); place++) {
      Attribute column = Trees.list(union.output()).get(place);
      for (scala.collection.Iterator each = union.children().iterator(); each.hasNext(); ) {
        Type first = of(Trees.list(Trees.first(union.children()).output()).get(place));
        Type type = of(Trees.list(((LogicalPlan) each.next()).output()).get(place));
        boolean same = first != null && first.equals(type);
        if (!same && types.containsKey(column.exprId()) && mixed.add(column.exprId())) more = true;
      }
    }
    return more;
  }

  private boolean copyAll(scala.collection.Seq from, scala.collection.Seq to) {
    boolean more = false;
    for (int i = 0; i < from.size() && i < to.size(); i++)
      if (copy(((Attribute) from.apply(i)).exprId(), ((Attribute) to.apply(i)).exprId())) more = true;
    return more;
  }

  private boolean copy(Object from, Object to) {
    boolean more = mixed.contains(from) && mixed.add(to);
    return types.containsKey(from) && types.put(to, types.get(from)) == null || more;
  }
}
