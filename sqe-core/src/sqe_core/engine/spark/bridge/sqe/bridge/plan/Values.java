package sqe.bridge.plan;

import java.util.Collection;
import java.util.Iterator;
import java.util.Map;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.apache.spark.unsafe.types.UTF8String;
import scala.Option;
import scala.Product;
import sqe.bridge.Json;

/** Renders the fields of a plan node as JSON. Plans are left out, and so are expressions unless asked for. */
public final class Values {
  private static final int MAX_NESTING = 8;
  private static final int MAX_ELEMENTS = 4096;
  private static final int MAX_SQL_DEPTH = 400;
  private static final int MAX_SQL_NODES = 20000;

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
    else if (value instanceof Option option)
      return option.isEmpty()
          ? render(out, null, expressions, nesting)
          : render(out, option.get(), expressions, nesting);
    else if (value instanceof DataType type) Json.string(out, type.catalogString());
    else if (value instanceof Metadata metadata) Json.string(out, metadata.json());
    else if (value instanceof CaseInsensitiveStringMap options) Json.map(out, options.asCaseSensitiveMap());
    else if (value instanceof Map javaMap) return javaMap(out, javaMap, expressions, nesting);
    else if (value instanceof scala.collection.Map map) return map(out, map, expressions, nesting);
    else if (value instanceof scala.collection.Iterable iterable)
      return elements(out, iterable.iterator(), expressions, nesting);
    else if (value instanceof Collection collection) return javaElements(out, collection.iterator(), expressions, nesting);
    else if (value instanceof Object[] objects)
      return javaElements(out, java.util.Arrays.asList(objects).iterator(), expressions, nesting);
    else if (value instanceof Transform transform) transform(out, transform);
    else if (value instanceof Identifier identifier) identifier(out, identifier);
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

  private static boolean elements(StringBuilder out, scala.collection.Iterator each, boolean expressions, int nesting) {
    int start = out.length();
    out.append('[');
    int shown = 0;
    boolean hidden = false;
    while (each.hasNext() && shown < MAX_ELEMENTS) {
      Object element = each.next();
      if (element instanceof InternalRow) break;
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

  private static boolean javaElements(StringBuilder out, Iterator each, boolean expressions, int nesting) {
    return elements(out, scala.jdk.javaapi.CollectionConverters.asScala(each), expressions, nesting);
  }

  private static boolean map(StringBuilder out, scala.collection.Map<?, ?> map, boolean expressions, int nesting) {
    int start = out.length();
    out.append('{');
    boolean hidden = false;
    for (scala.Tuple2<?, ?> pair : Trees.each(map)) {
      int mark = out.length();
      Json.member(out, String.valueOf(pair._1()));
      if (!render(out, pair._2(), expressions, nesting + 1)) {
        out.setLength(mark);
        hidden = true;
      }
    }
    boolean empty = out.length() == start + 1;
    out.append('}');
    if (empty && hidden) out.setLength(start);
    return !(empty && hidden);
  }

  private static boolean javaMap(StringBuilder out, Map map, boolean expressions, int nesting) {
    return map(out, scala.jdk.javaapi.CollectionConverters.asScala(map), expressions, nesting);
  }

  private static boolean product(StringBuilder out, Product product, boolean expressions, int nesting) {
    if (product.productArity() == 0) {
      Json.string(out, product.productPrefix());
      return true;
    }
    if (product.getClass().getName().startsWith("scala.Tuple"))
      return elements(out, product.productIterator(), expressions, nesting);
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
    return name.equals("ColumnDefinition")
        || name.equals("QualifiedColType")
        || name.equals("UnresolvedTableSpec")
        || name.equals("OptionList")
        || name.equals("DefaultValueExpression")
        || name.equals("AlterColumnSpec")
        || name.equals("Assignment")
        || name.endsWith("Action") // of MERGE
        || name.endsWith("FieldName")
        || name.endsWith("FieldPosition")
        || name.endsWith("PartitionSpec")
        || name.endsWith("Constraint");
  }

  private static void transform(StringBuilder out, Transform transform) {
    out.append('{');
    Json.member(out, "transform", transform.name());
    Json.member(out, "text", transform.describe());
    Json.member(out, "references").append('[');
    for (int i = 0; i < transform.references().length; i++) {
      Json.element(out);
      Json.strings(out, transform.references()[i].fieldNames());
    }
    out.append("]}");
  }

  private static void identifier(StringBuilder out, Identifier identifier) {
    out.append('[');
    for (int i = 0; i < identifier.namespace().length; i++) {
      Json.element(out);
      Json.string(out, identifier.namespace()[i]);
    }
    Json.element(out);
    Json.string(out, identifier.name());
    out.append(']');
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
    try {
      return expression.sql();
    } catch (Exception unresolved) {
      return null;
    }
  }

  private static int depth(Expression root) {
    int deepest = 0;
    int visited = 0; // shared subtrees count each time: the text repeats them, too
    java.util.ArrayDeque nodes = new java.util.ArrayDeque();
    java.util.ArrayDeque depths = new java.util.ArrayDeque();
    nodes.push(root);
    depths.push(Integer.valueOf(1));
    while (!nodes.isEmpty()) {
      Expression node = (Expression) nodes.pop();
      int depth = ((Integer) depths.pop()).intValue();
      deepest = Math.max(deepest, depth);
      if (deepest > MAX_SQL_DEPTH || ++visited > MAX_SQL_NODES) return Integer.MAX_VALUE;
      for (scala.collection.Iterator each = node.children().iterator(); each.hasNext(); ) {
        nodes.push(each.next());
        depths.push(Integer.valueOf(depth + 1));
      }
    }
    return deepest;
  }
}
