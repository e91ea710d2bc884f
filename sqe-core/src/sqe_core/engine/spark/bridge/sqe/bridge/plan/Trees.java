package sqe.bridge.plan;

import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.trees.Origin;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Metadata;
import scala.Option;
import scala.Product;
import sqe.bridge.BridgeException;

/** The parts of a Catalyst node: every field, through options, tuples, collections and records (ENF-5). */
public final class Trees {
  private static final int MAX_NESTING = 16; // of containers inside one field; Spark's have three

  private Trees() {}

  /** Appends the nodes that a field's value holds directly, in order. */
  public static void nodesIn(Object value, List found) {
    nodesIn(value, found, 0);
  }

  private static void nodesIn(Object value, List found, int nesting) {
    if (value == null || value instanceof String || value instanceof Number || value instanceof Boolean) return;
    if (value instanceof TreeNode) {
      found.add(value);
      return;
    }
    if (isOpaque(value)) return;
    if (nesting > MAX_NESTING) throw new BridgeException("SQE_PLAN_TOO_NESTED", value.getClass().getName());
    if (value instanceof scala.collection.Iterable iterable) {
      for (Object element : Trees.each(iterable)) {
        if (element instanceof InternalRow) return; // data, maybe a million of them
        nodesIn(element, found, nesting + 1);
      }
    } else if (value instanceof Product product) {
      for (scala.collection.Iterator each = product.productIterator(); each.hasNext(); )
        nodesIn(each.next(), found, nesting + 1);
    } else if (value instanceof Object[] elements) {
      for (var each : elements) nodesIn(each, found, nesting + 1);
    } else if (value instanceof Collection collection) {
      for (var each : collection) nodesIn(each, found, nesting + 1);
    } else if (value instanceof Map map) {
      for (var each : map.values()) nodesIn(each, found, nesting + 1);
    }
  }

  /** Values without nodes inside that would be long to look through. */
  private static boolean isOpaque(Object value) {
    return value instanceof DataType
        || value instanceof Metadata
        || value instanceof Origin
        || value instanceof org.apache.spark.sql.types.StructField
        || value instanceof org.apache.spark.sql.catalyst.catalog.CatalogTable;
  }

  /** The value with each node exchanged for what the table holds for it; the same object when nothing changes. */
  static Object exchange(Object value, Map table) {
    if (value == null || value instanceof String || value instanceof Number || value instanceof Boolean) return value;
    if (value instanceof TreeNode) {
      Object changed = table.get(value);
      return changed == null ? value : changed;
    }
    if (isOpaque(value)) return value;
    if (value instanceof Option option) {
      if (option.isEmpty()) return value;
      Object changed = exchange(option.get(), table);
      return changed == option.get() ? value : Option.apply(changed);
    }
    if (value instanceof scala.collection.Map map) {
      List pairs = new ArrayList();
      boolean same = true;
      for (Object pair : Trees.each(map)) {
        Object changed = exchange(pair, table);
        if (changed != pair) same = false;
        pairs.add(changed);
      }
      return same ? value : scala.collection.immutable.Map$.MODULE$.from(seq(pairs));
    }
    if (value instanceof scala.collection.Seq || value instanceof scala.collection.Set) {
      List elements = new ArrayList();
      boolean same = true;
      for (Object element : Trees.each(((scala.collection.Iterable) value))) {
        if (element instanceof InternalRow) return value;
        Object changed = exchange(element, table);
        if (changed != element) same = false;
        elements.add(changed);
      }
      if (same) return value;
      if (value instanceof scala.collection.Seq) return seq(elements);
      return scala.collection.immutable.Set$.MODULE$.from(seq(elements));
    }
    if (value instanceof scala.Tuple2 pair) {
      Object first = exchange(pair._1(), table);
      Object second = exchange(pair._2(), table);
      return first == pair._1() && second == pair._2() ? value : new scala.Tuple2(first, second);
    }
    if (value instanceof scala.Tuple3 triple) {
      Object first = exchange(triple._1(), table);
      Object second = exchange(triple._2(), table);
      Object third = exchange(triple._3(), table);
      boolean same = first == triple._1() && second == triple._2() && third == triple._3();
      return same ? value : new scala.Tuple3(first, second, third);
    }
    List inside = new ArrayList();
    nodesIn(value, inside);
    for (int i = 0; i < inside.size(); i++) {
      if (table.get(inside.get(i)) != null)
        throw new BridgeException("SQE_CANNOT_REWRITE", "a node inside " + value.getClass().getName());
    }
    return value;
  }

  public static <T> scala.collection.immutable.Seq<T> seq(List<T> elements) {
    return scala.collection.immutable.List$.MODULE$.from(scala.jdk.javaapi.CollectionConverters.asScala(elements));
  }

  public static <T> scala.collection.immutable.Seq<T> seq(T element) {
    return seq(Collections.singletonList(element));
  }

  public static <T> scala.collection.immutable.Seq<T> none() {
    return seq(List.of());
  }

  public static <T> List<T> list(scala.collection.Iterable<T> elements) {
    return new ArrayList<>(scala.jdk.javaapi.CollectionConverters.asJavaCollection(elements));
  }

  public static <T> T first(scala.collection.Iterable<T> elements) {
    return elements.iterator().next();
  }

  public static <T> Iterable<T> each(scala.collection.Iterable<T> elements) {
    return scala.jdk.javaapi.CollectionConverters.asJava(elements);
  }

  public static String simpleName(Object object) {
    // Not getSimpleName: it throws for some of Scala's nested classes.
    String name = object.getClass().getName();
    int end = name.endsWith("$") ? name.length() - 1 : name.length();
    int dot = name.lastIndexOf('.', end - 1);
    int dollar = name.lastIndexOf('$', end - 1);
    return name.substring(Math.max(dot, dollar) + 1, end);
  }

  static boolean isChild(LogicalPlan parent, Object node) {
    for (var each : Trees.each(parent.children()))
      if (each == node) return true;
    return false;
  }
}
