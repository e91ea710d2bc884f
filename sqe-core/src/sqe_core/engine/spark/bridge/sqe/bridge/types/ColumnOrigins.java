package sqe.bridge.types;

import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.function.Function;
import org.apache.iceberg.Schema;
import org.apache.iceberg.spark.source.SparkTable;
import org.apache.iceberg.types.Type;
import org.apache.iceberg.types.Types;
import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import sqe.bridge.catalog.IcebergFields;
import sqe.bridge.functions.DeclaredTypes;
import sqe.bridge.plan.Columns;
import sqe.bridge.plan.Trees;

/**
 * Which columns of an analysed plan are nothing but a column of a table or a view, and what Iceberg says of their types.
 * Spark has one word for what Iceberg tells apart, text for uuid and bytes for fixed, and a value that was computed may be
 * of no such type.
 */
final class ColumnOrigins {
  private final Map<ExprId, Type> types = new HashMap<>(); // Iceberg's type of a table's column, where Spark's says less
  private final Map<ExprId, Optional<Type>> found = new HashMap<>(); // of any column
  private final Map<ExprId, String[]> tables = new HashMap<>(); // catalog, schema and name of what the user reads it from
  private final Columns columns;

  ColumnOrigins(LogicalPlan plan) {
    List<TreeNode<?>> nodes = Trees.all(plan);
    columns = new Columns(nodes);
    // From above to below, so that a view is named before what it reads.
    for (TreeNode<?> node : nodes) {
      if (node instanceof DataSourceV2Relation relation) relation(relation);
      if (node instanceof SubqueryAlias alias) name(alias);
    }
  }

  /** The type of Iceberg that a column certainly has; null where Spark's type says all, or nothing is certain. */
  Type of(NamedExpression column) {
    return types.isEmpty() ? null : of(column.exprId()).orElse(null);
  }

  /** The type that the statement declares for a column, on all sides of a union; null for most. */
  String declared(NamedExpression column) {
    return said(column.exprId(), DeclaredTypes::of, new HashSet<>());
  }

  /** The time zone that the statement says of a column, on all sides of a union; null for most. */
  String zone(NamedExpression column) {
    return said(column.exprId(), DeclaredTypes::zoneOf, new HashSet<>());
  }

  private String said(ExprId column, Function<Expression, String> what, Set<ExprId> seen) {
    Expression value = columns.valueOf(column);
    if (value == null || !seen.add(column)) return null;
    String said = what.apply(value);
    if (said == null && value instanceof AttributeReference name) said = said(name.exprId(), what, seen);
    for (Attribute other : columns.besides(column))
      if (!Objects.equals(said(other.exprId(), what, seen), said)) return null;
    return said;
  }

  private Optional<Type> of(ExprId column) {
    Optional<Type> known = found.get(column);
    if (known != null) return known;
    found.put(column, Optional.empty()); // of a column that is made of itself
    Optional<Type> type = Optional.ofNullable(types.get(column));
    if (columns.valueOf(column) instanceof AttributeReference name) type = of(name.exprId());
    for (Attribute other : columns.besides(column)) if (!of(other.exprId()).equals(type)) type = Optional.empty();
    found.put(column, type);
    return type;
  }

  /**
   * Catalog, schema and name of the table or view that a column is of, as the user may know it; null for all others. What a
   * view reads is not named.
   */
  String[] tableOf(NamedExpression column) {
    ExprId id = column.exprId();
    for (Set<ExprId> seen = new HashSet<>(); seen.add(id) && !columns.isUnited(id); ) {
      if (tables.containsKey(id)) return tables.get(id);
      if (!(columns.valueOf(id) instanceof AttributeReference name)) return null;
      id = name.exprId();
    }
    return null;
  }

  private void name(SubqueryAlias alias) {
    List<String> qualifier = Trees.list(alias.identifier().qualifier());
    if (qualifier.size() < 2) return; // what the statement calls something
    String schema = String.join(".", qualifier.subList(1, qualifier.size()));
    String[] table = {qualifier.get(0), schema, alias.identifier().name()};
    for (Attribute each : Trees.each(alias.output())) tables.putIfAbsent(each.exprId(), table);
  }

  private void relation(DataSourceV2Relation relation) {
    if (!(relation.table() instanceof SparkTable table)) return;
    Schema schema = IcebergFields.schema(table);
    for (Attribute column : Trees.each(relation.output())) {
      Types.NestedField field = schema.findField(column.name());
      if (field != null && ArrowTypes.saysMore(field.type())) types.put(column.exprId(), field.type());
    }
  }
}
