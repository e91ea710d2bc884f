package sqe.bridge.plan;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.apache.spark.unsafe.types.UTF8String;
import scala.Option;
import scala.Product;
import scala.jdk.javaapi.CollectionConverters;
import sqe.bridge.Json;

/** Renders the fields of a plan node as JSON. Plans are left out, and so are expressions unless asked for. */
public final class Values {
  private static final String ZONE = "UTC";
  private static final int MAX_NESTING = 8;
  private static final int MAX_ELEMENTS = 4096;
  private static final int MAX_SQL_DEPTH = 400;
  private static final int MAX_SQL_NODES = 20000;

  private static final Set<String> RECORDS =
      Set.of(
          "ColumnDefinition", "QualifiedColType", "UnresolvedTableSpec", "OptionList", "DefaultValueExpression",
          "AlterColumnSpec", "Assignment");

  /** The first one is of MERGE. */
  private static final List<String> RECORD_ENDS = List.of("Action", "FieldName", "FieldPosition", "PartitionSpec", "Constraint");

  private Values() {}

  /** Appends the value and returns true, or appends nothing and returns false when there is nothing to show. */
  static boolean render(StringBuilder out, Object value, boolean expressions) {
    return render(out, value, expressions, 0);
  }

  private static boolean render(StringBuilder out, Object value, boolean expressions, int nesting) {
    if (value == null) out.append("null");
    else if (value instanceof String string) Json.string(out, string);
    else if (value instanceof Boolean || value instanceof Integer || value instanceof Long) out.append(value);
    else if (value instanceof Number || value instanceof Character) Json.string(out, value.toString());
    else if (value instanceof LogicalPlan) return false;
    else if (value instanceof Expression expression) return expressions && expression(out, expression, nesting);
    else if (value instanceof TreeNode) return false;
    else if (nesting > MAX_NESTING) return false;
    else if (value instanceof Option<?> option)
      return render(out, option.isEmpty() ? null : option.get(), expressions, nesting);
    else if (value instanceof DataType type) Json.string(out, type.catalogString());
    else if (value instanceof Metadata metadata) Json.string(out, metadata.json());
    else if (value instanceof CaseInsensitiveStringMap options) Json.map(out, options.asCaseSensitiveMap());
    else if (value instanceof Map<?, ?> map) return map(out, map, expressions, nesting);
    else if (value instanceof scala.collection.Map<?, ?> map)
      return map(out, CollectionConverters.asJava(map), expressions, nesting);
    else if (value instanceof scala.collection.Iterable<?> elements) return elements(out, Trees.each(elements), expressions, nesting);
    else if (value instanceof Collection<?> elements) return elements(out, elements, expressions, nesting);
    else if (value instanceof Object[] elements) return elements(out, Arrays.asList(elements), expressions, nesting);
    else if (value instanceof Transform transform) transform(out, transform);
    else if (value instanceof Identifier identifier) Json.strings(out, parts(identifier));
    else if (value instanceof CatalogPlugin plugin) Json.string(out, plugin.name());
    else if (value instanceof Table) Json.string(out, value.getClass().getName());
    else if (value instanceof Enum || value instanceof scala.Enumeration.Value) Json.string(out, value.toString());
    else if (value instanceof Product product) return product(out, product, expressions, nesting);
    else {
      out.append("{");
      Json.member(out, "class", value.getClass().getName());
      out.append("}");
    }
    return true;
  }

  private static boolean elements(StringBuilder out, Iterable<?> elements, boolean expressions, int nesting) {
    int start = out.length();
    out.append('[');
    int shown = 0;
    boolean hidden = false;
    for (Object element : elements) {
      if (element instanceof InternalRow || shown == MAX_ELEMENTS) break;
      int mark = out.length();
      Json.element(out);
      if (render(out, element, expressions, nesting + 1)) shown++;
      else {
        out.setLength(mark);
        hidden = true;
      }
    }
    out.append(']');
    // A list of plans or expressions is no field to show; an empty list is.
    if (shown == 0 && hidden) out.setLength(start);
    return shown > 0 || !hidden;
  }

  private static boolean map(StringBuilder out, Map<?, ?> map, boolean expressions, int nesting) {
    int start = out.length();
    out.append('{');
    boolean hidden = false;
    for (Map.Entry<?, ?> each : map.entrySet()) {
      int mark = out.length();
      Json.member(out, String.valueOf(each.getKey()));
      if (!render(out, each.getValue(), expressions, nesting + 1)) {
        out.setLength(mark);
        hidden = true;
      }
    }
    boolean empty = out.length() == start + 1;
    out.append('}');
    if (empty && hidden) out.setLength(start);
    return !(empty && hidden);
  }

  private static boolean product(StringBuilder out, Product product, boolean expressions, int nesting) {
    if (product.productArity() == 0) {
      Json.string(out, product.productPrefix());
      return true;
    }
    if (product.getClass().getName().startsWith("scala.Tuple"))
      return elements(out, Trees.fields(product), expressions, nesting);
    out.append('{');
    Json.member(out, "class", Trees.simpleName(product));
    members(out, product, expressions, nesting);
    out.append('}');
    return true;
  }

  private static void members(StringBuilder out, Product product, boolean expressions, int nesting) {
    for (int i = 0; i < product.productArity(); i++) {
      int mark = out.length();
      Json.member(out, product.productElementName(i));
      if (!render(out, product.productElement(i), expressions, nesting + 1)) out.setLength(mark);
    }
  }

  /** Expressions that are records of a command are shown by field, the others as SQL. */
  private static boolean expression(StringBuilder out, Expression expression, int nesting) {
    out.append('{');
    Json.member(out, "class", Trees.simpleName(expression));
    if (expression instanceof Literal literal) {
      Json.member(out, "value");
      literal(out, literal);
      Json.member(out, "type", expression.dataType().catalogString());
    } else if (isRecord(expression)) members(out, expression, true, nesting);
    else Json.member(out, "sql", sql(expression));
    out.append('}');
    return true;
  }

  private static boolean isRecord(Expression expression) {
    String name = Trees.simpleName(expression);
    return RECORDS.contains(name) || RECORD_ENDS.stream().anyMatch(name::endsWith);
  }

  private static void transform(StringBuilder out, Transform transform) {
    out.append('{');
    Json.member(out, "transform", transform.name());
    Json.member(out, "text", transform.describe());
    List<NamedReference> references = Arrays.asList(transform.references());
    Json.array(Json.member(out, "references"), references, each -> Json.strings(out, each.fieldNames()));
    out.append('}');
  }

  private static List<String> parts(Identifier identifier) {
    List<String> parts = new ArrayList<>(List.of(identifier.namespace()));
    parts.add(identifier.name());
    return parts;
  }

  static void literal(StringBuilder out, Literal literal) {
    Object value = literal.value();
    if (value == null) out.append("null");
    else if (value instanceof UTF8String) Json.string(out, value.toString());
    else if (value instanceof Boolean || value instanceof Decimal) out.append(value);
    else if (value instanceof Double || value instanceof Float) {
      double number = ((Number) value).doubleValue();
      if (Double.isNaN(number) || Double.isInfinite(number)) Json.string(out, value.toString());
      else out.append(value);
    } else if (value instanceof Number && literal.dataType() instanceof org.apache.spark.sql.types.IntegralType)
      out.append(value);
    else Json.string(out, literal.toString());
  }

  /** The SQL of an expression, or null where Spark cannot say it or would overflow the stack to do so. */
  public static String sql(Expression expression) {
    if (depth(expression) > MAX_SQL_DEPTH) return null;
    SQLConf conf = SQLConf.get();
    try {
      if (conf.sessionLocalTimeZone().equals(ZONE)) return expression.sql();
      // Spark writes instants in the zone of the session, and what is compared with this was written in UTC.
      SQLConf utc = conf.clone();
      utc.setConfString(SQLConf.SESSION_LOCAL_TIMEZONE().key(), ZONE);
      return SQLConf.withExistingConf(utc, expression::sql);
    } catch (Exception unresolved) {
      return null;
    }
  }

  private record Level(Expression node, int depth) {}

  private static int depth(Expression root) {
    int deepest = 0;
    int visited = 0; // shared subtrees count each time: the text repeats them, too
    ArrayDeque<Level> levels = new ArrayDeque<>(List.of(new Level(root, 1)));
    while (!levels.isEmpty()) {
      Level level = levels.pop();
      deepest = Math.max(deepest, level.depth);
      if (deepest > MAX_SQL_DEPTH || ++visited > MAX_SQL_NODES) return Integer.MAX_VALUE;
      for (Expression each : Trees.each(level.node.children())) levels.push(new Level(each, level.depth + 1));
    }
    return deepest;
  }
}
