package sqe.bridge.plan;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Function;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.trees.Origin;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.StructField;
import scala.Option;
import scala.Product;
import scala.Tuple2;
import scala.Tuple3;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractPartialFunction;
import sqe.bridge.BridgeException;

/** The parts of a Catalyst node: every field, through options, tuples, collections and records (ENF-5). */
public final class Trees {
  private static final int MAX_NESTING = 16; // of containers inside one field; Spark's have three

  private Trees() {}

  /** The node and everything below it, in any field, each once and what is above first. */
  public static List<TreeNode<?>> all(TreeNode<?> root) {
    List<TreeNode<?>> nodes = new ArrayList<>(List.of(root));
    Set<TreeNode<?>> seen = Collections.newSetFromMap(new IdentityHashMap<>());
    for (int i = 0; i < nodes.size(); i++)
      for (TreeNode<?> each : below(nodes.get(i))) if (seen.add(each)) nodes.add(each);
    return nodes;
  }

  /** The expression and everything below it but for queries, each once and what is above first. */
  public static List<Expression> expressions(Expression root) {
    List<Expression> nodes = new ArrayList<>(List.of(root));
    Set<Expression> seen = Collections.newSetFromMap(new IdentityHashMap<>());
    for (int i = 0; i < nodes.size(); i++)
      for (Expression each : each(nodes.get(i).children())) if (seen.add(each)) nodes.add(each);
    return nodes;
  }

  /** The parts of a condition that all have to hold, in order; without recursion. */
  public static List<Expression> conjuncts(Expression condition) {
    List<Expression> parts = new ArrayList<>();
    ArrayDeque<Expression> rest = new ArrayDeque<>(List.of(condition));
    while (!rest.isEmpty()) {
      Expression one = rest.pop();
      if (one instanceof And and) {
        rest.push(and.right());
        rest.push(and.left());
      } else parts.add(one);
    }
    return parts;
  }

  /** The nodes that a node's fields hold directly, in order. */
  public static List<TreeNode<?>> below(TreeNode<?> node) {
    List<TreeNode<?>> below = new ArrayList<>();
    for (Object field : fields(node)) nodesIn(field, below);
    return below;
  }

  /** Appends the nodes that a field's value holds directly, in order. */
  static void nodesIn(Object value, List<TreeNode<?>> found) {
    nodesIn(value, found, 0);
  }

  private static void nodesIn(Object value, List<TreeNode<?>> found, int nesting) {
    if (isOpaque(value)) return;
    if (value instanceof TreeNode<?> node) {
      found.add(node);
      return;
    }
    if (nesting > MAX_NESTING) throw new BridgeException("SQE_PLAN_TOO_NESTED", value.getClass().getName());
    Iterable<?> parts = List.of();
    if (value instanceof scala.collection.Iterable<?> iterable) parts = each(iterable);
    else if (value instanceof Product product) parts = fields(product);
    else if (value instanceof Object[] elements) parts = Arrays.asList(elements);
    else if (value instanceof Collection<?> collection) parts = collection;
    else if (value instanceof Map<?, ?> map) parts = map.values();
    for (Object part : parts) {
      if (part instanceof InternalRow) return; // data, maybe a million of them
      nodesIn(part, found, nesting + 1);
    }
  }

  /** Values without nodes inside, some of which would be long to look through. */
  private static boolean isOpaque(Object value) {
    return value == null
        || value instanceof String
        || value instanceof Number
        || value instanceof Boolean
        || value instanceof DataType
        || value instanceof Metadata
        || value instanceof Origin
        || value instanceof StructField
        || value instanceof CatalogTable;
  }

  /** The value with each node exchanged for what the table holds for it; the same object when nothing changes. */
  static Object exchange(Object value, Map<TreeNode<?>, TreeNode<?>> table) {
    if (isOpaque(value)) return value;
    if (value instanceof TreeNode<?> node) return table.getOrDefault(node, node);
    if (value instanceof Option<?> option)
      return exchanged(value, each(option.toList()), table, parts -> Option.apply(parts.get(0)));
    if (value instanceof scala.collection.Map<?, ?> map) return exchanged(value, each(map), table, Trees::map);
    if (value instanceof scala.collection.Seq<?> elements) return exchanged(value, each(elements), table, Trees::seq);
    if (value instanceof scala.collection.Set<?> elements)
      return exchanged(value, each(elements), table, parts -> scala.collection.immutable.Set$.MODULE$.from(seq(parts)));
    if (value instanceof Tuple2<?, ?> pair)
      return exchanged(value, fields(pair), table, parts -> new Tuple2<>(parts.get(0), parts.get(1)));
    if (value instanceof Tuple3<?, ?, ?> triple)
      return exchanged(value, fields(triple), table, parts -> new Tuple3<>(parts.get(0), parts.get(1), parts.get(2)));
    List<TreeNode<?>> inside = new ArrayList<>();
    nodesIn(value, inside);
    for (TreeNode<?> each : inside)
      if (table.containsKey(each)) throw new BridgeException("SQE_CANNOT_REWRITE", "a node inside " + value.getClass().getName());
    return value;
  }

  private static Object exchanged(
      Object whole, Iterable<?> parts, Map<TreeNode<?>, TreeNode<?>> table, Function<List<Object>, Object> made) {
    List<Object> changed = new ArrayList<>();
    boolean same = true;
    for (Object part : parts) {
      if (part instanceof InternalRow) return whole;
      Object after = exchange(part, table);
      same &= after == part;
      changed.add(after);
    }
    return same ? whole : made.apply(changed);
  }

  // ------------------------------------------------------------------ Scala's collections

  public static <T> Seq<T> seq(List<? extends T> elements) {
    return scala.collection.immutable.List$.MODULE$.from((scala.collection.Iterable<T>) CollectionConverters.asScala(elements));
  }

  @SafeVarargs
  public static <T> Seq<T> seq(T... elements) {
    return seq(List.of(elements));
  }

  private static Object map(List<Object> pairs) {
    return scala.collection.immutable.Map$.MODULE$.from((Seq<Tuple2<Object, Object>>) (Seq<?>) seq(pairs));
  }

  public static <T> List<T> list(scala.collection.Iterable<T> elements) {
    return new ArrayList<>(CollectionConverters.asJavaCollection(elements));
  }

  // Java finds these methods of Scala's immutable sequences ambiguous.

  public static <T> T first(scala.collection.Iterable<T> elements) {
    return elements.head();
  }

  public static <T> T at(scala.collection.Seq<T> elements, int place) {
    return elements.apply(place);
  }

  public static int size(scala.collection.Iterable<?> elements) {
    return elements.size();
  }

  public static <T> Iterable<T> each(scala.collection.Iterable<T> elements) {
    return CollectionConverters.asJava(elements);
  }

  /** The values of a node's or a record's fields. */
  public static Iterable<Object> fields(Product product) {
    return () -> (Iterator<Object>) CollectionConverters.asJava(product.productIterator());
  }

  /** A copy of the node with another value for one of its fields. */
  public static <T extends TreeNode<?>> T with(T node, int field, Object value) {
    Object[] fields = new Object[node.productArity()];
    for (int i = 0; i < fields.length; i++) fields[i] = i == field ? value : node.productElement(i);
    return (T) node.makeCopy(fields);
  }

  /** A function of Scala's that is defined where this one does not answer null. */
  public static <A, B> AbstractPartialFunction<A, B> where(Function<? super A, ? extends B> function) {
    return new AbstractPartialFunction<>() {
      public boolean isDefinedAt(A value) {
        return function.apply(value) != null;
      }

      public <X extends A, Y> Y applyOrElse(X value, scala.Function1<X, Y> otherwise) {
        B found = function.apply(value);
        return found == null ? otherwise.apply(value) : (Y) found;
      }
    };
  }

  public static String simpleName(Object object) {
    // Not getSimpleName: it throws for some of Scala's nested classes.
    String name = object.getClass().getName();
    int end = name.endsWith("$") ? name.length() - 1 : name.length();
    int dot = name.lastIndexOf('.', end - 1);
    int dollar = name.lastIndexOf('$', end - 1);
    return name.substring(Math.max(dot, dollar) + 1, end);
  }

  static boolean isChild(LogicalPlan parent, TreeNode<?> node) {
    for (var each : each(parent.children())) if (each == node) return true;
    return false;
  }
}
