package sqe.bridge.plan;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.OuterReference;
import org.apache.spark.sql.catalyst.expressions.PlanExpression;
import org.apache.spark.sql.catalyst.expressions.WindowExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.CTERelationDef;
import org.apache.spark.sql.catalyst.plans.logical.CTERelationRef;
import org.apache.spark.sql.catalyst.plans.logical.Expand;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Generate;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MergeRows;
import org.apache.spark.sql.catalyst.plans.logical.Sort;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.catalyst.plans.logical.UnionBase;
import org.apache.spark.sql.catalyst.plans.logical.UnionLoop;
import org.apache.spark.sql.catalyst.plans.logical.UnionLoopRef;
import org.apache.spark.sql.catalyst.plans.logical.V2CreateTableAsSelectPlan;
import org.apache.spark.sql.catalyst.plans.logical.V2WriteCommand;
import org.apache.spark.sql.catalyst.plans.logical.Window;
import org.apache.spark.sql.catalyst.plans.logical.WithCTE;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import sqe.bridge.Json;
import sqe.bridge.catalog.SqeCatalog;
import sqe.bridge.secure.Secured;

/**
 * From which columns of which tables each output column derives, by expression id, from below to above. Every step takes
 * the strongest word of the way: a column that is summed and then copied is an AGGREGATION.
 */
public final class Lineage {
  private static final String[] KINDS = new String[] {"IDENTITY", "TRANSFORMATION", "WINDOW", "AGGREGATION"};
  private static final int IDENTITY = 0;
  private static final int TRANSFORMATION = 1;
  private static final int WINDOW = 2;
  private static final int AGGREGATION = 3;

  /** Expression id -> (source column -> kind). Source columns are JSON arrays of the relation's parts and the column. */
  private final Map columns = new HashMap();

  private final Map definitions = new HashMap(); // CTE id -> CTERelationDef
  private final Map loops = new HashMap(); // loop id -> list of maps, one for each column
  private final Map indirect = new LinkedHashMap(); // "FILTER", … -> (source column -> any)
  private boolean recursive;

  private Lineage() {}

  public static String json(LogicalPlan plan) {
    Lineage lineage = new Lineage();
    lineage.walk(plan);
    if (lineage.recursive) lineage.walk(plan); // now the loops know where their columns come from
    return lineage.render(plan);
  }

  // ------------------------------------------------------------------ the walk, children first

  private static final class Step {
    final TreeNode node;
    final boolean secured; // below a cover: what stands there is ours, not the user's
    final boolean childrenDone;

    Step(TreeNode node, boolean secured, boolean childrenDone) {
      this.node = node;
      this.secured = secured;
      this.childrenDone = childrenDone;
    }
  }

  private void walk(LogicalPlan root) {
    IdentityHashMap seen = new IdentityHashMap();
    ArrayDeque steps = new ArrayDeque();
    steps.push(new Step(root, false, false));
    while (!steps.isEmpty()) {
      Step step = (Step) steps.pop();
      if (step.childrenDone) {
        if (step.node instanceof LogicalPlan plan) plan(plan, step.secured);
        continue;
      }
      if (seen.put(step.node, Boolean.TRUE) != null) continue;
      steps.push(new Step(step.node, step.secured, true));
      boolean cover = step.node instanceof SubqueryAlias alias && Secured.isCover(alias);
      List below = below(step.node);
      for (int i = 0; i < below.size(); i++) steps.push(new Step((TreeNode) below.get(i), step.secured || cover, false));
    }
  }

  /** What must be done before the node, the last first: definitions, then children, then subqueries. */
  private static List below(TreeNode node) {
    List below = new ArrayList();
    if (node instanceof WithCTE with) {
      below.add(with.plan());
      List definitions = Trees.list(with.cteDefs());
      for (int i = definitions.size() - 1; i >= 0; i--) below.add(definitions.get(i));
      return below;
    }
    for (scala.collection.Iterator each = node.productIterator(); each.hasNext(); ) Trees.nodesIn(each.next(), below);
    java.util.Collections.reverse(below);
    return below;
  }



  private void plan(LogicalPlan plan, boolean secured) {
    if (plan instanceof DataSourceV2Relation relation) source(relation);
    else if (plan instanceof CTERelationDef def) definitions.put(Long.valueOf(def.id()), plan);
    else if (plan instanceof CTERelationRef reference) {
      CTERelationDef definition = (CTERelationDef) definitions.get(Long.valueOf(reference.cteId()));
      if (definition != null) copy(definition.output(), plan.output());
    } else if (plan instanceof UnionLoopRef ref) {
      List known = (List) loops.get(Long.valueOf(ref.loopId()));
      if (known != null) for (int i = 0; i < known.size(); i++) add(attribute(plan, i), (Map) known.get(i), IDENTITY);
    } else if (plan instanceof UnionBase) {
      for (scala.collection.Iterator each = plan.children().iterator(); each.hasNext(); )
        copy(((LogicalPlan) each.next()).output(), plan.output());
      if (plan instanceof UnionLoop loop) {
        recursive = true;
        List known = new ArrayList();
        for (int i = 0; i < Trees.list(plan.output()).size(); i++) known.add(of(attribute(plan, i)));
        loops.put(Long.valueOf(loop.id()), known);
      }
    } else if (plan instanceof Generate generate) {
      Map from = references((Expression) generate.generator());
      for (scala.collection.Iterator each = generate.generatorOutput().iterator(); each.hasNext(); )
        add((Attribute) each.next(), from, TRANSFORMATION);
    } else if (plan instanceof Expand expand) rows(plan, expand.projections());
    for (scala.collection.Iterator each = plan.expressions().iterator(); each.hasNext(); ) {
      Object expression = each.next();
      if (expression instanceof MergeRows.Instruction instruction) rows(plan, instruction.outputs());
      if (expression instanceof Alias alias) {
        Expression child = alias.child();
        add(alias.toAttribute(), references(child), kind(child));
      }
    }
    if (!secured) indirect(plan);
  }

  /** A node that gives several rows for one, each made of expressions in the order of its output. */
  private void rows(LogicalPlan plan, scala.collection.Iterable rows) {
    for (scala.collection.Iterator each = rows.iterator(); each.hasNext(); ) {
      List row = Trees.list((scala.collection.Iterable) each.next());
      for (int i = 0; i < row.size() && i < Trees.list(plan.output()).size(); i++)
        add(attribute(plan, i), references((Expression) row.get(i)), kind((Expression) row.get(i)));
    }
  }

  private void source(DataSourceV2Relation relation) {
    if (!relation.identifier().isDefined()) return;
    StringBuilder name = new StringBuilder();
    if (relation.catalog().isDefined()) Values.render(name, relation.catalog().get(), false);
    StringBuilder parts = new StringBuilder();
    Values.render(parts, SqeCatalog.real(relation.identifier().get()), false);
    String prefix = name.length() == 0 ? "[" + parts : "[[" + name + "," + parts.substring(1);
    for (scala.collection.Iterator each = relation.output().iterator(); each.hasNext(); ) {
      Attribute column = (Attribute) each.next();
      StringBuilder key = new StringBuilder(prefix).append(',');
      Json.string(key, column.name());
      of(column).put(key.append(']').toString(), Integer.valueOf(IDENTITY));
    }
  }

  private void indirect(LogicalPlan plan) {
    if (plan instanceof Filter filter) indirect("FILTER", filter.condition());
    else if (plan instanceof Join join && join.condition().isDefined())
      indirect("JOIN", (Expression) join.condition().get());
    else if (plan instanceof Aggregate aggregate) indirect("GROUP_BY", aggregate.groupingExpressions());
    else if (plan instanceof Sort sort) indirect("SORT", sort.order());
    else if (plan instanceof Window window) {
      indirect("WINDOW", window.partitionSpec());
      indirect("WINDOW", window.orderSpec());
    }
  }

  private void indirect(String kind, scala.collection.Iterable expressions) {
    for (scala.collection.Iterator each = expressions.iterator(); each.hasNext(); ) indirect(kind, (Expression) each.next());
  }

  private void indirect(String kind, Expression expression) {
    Map known = (Map) indirect.get(kind);
    if (known == null) {
      known = new LinkedHashMap();
      indirect.put(kind, known);
    }
    known.putAll(references(expression));
  }

  // ------------------------------------------------------------------ columns

  private static Attribute attribute(LogicalPlan plan, int place) {
    return Trees.list(plan.output()).get(place);
  }

  private Map of(NamedExpression column) {
    Long id = Long.valueOf(column.exprId().id());
    Map from = (Map) columns.get(id);
    if (from == null) {
      from = new LinkedHashMap();
      columns.put(id, from);
    }
    return from;
  }

  private void copy(scala.collection.Seq from, scala.collection.Seq to) {
    for (int i = 0; i < from.size() && i < to.size(); i++)
      add((Attribute) to.apply(i), of((Attribute) from.apply(i)), IDENTITY);
  }

  private void add(NamedExpression column, Map from, int kind) {
    Map known = of(column);
    if (known == from) return;
    for (Iterator each = from.entrySet().iterator(); each.hasNext(); ) {
      Map.Entry entry = (Map.Entry) each.next();
      int strongest = Math.max(kind, ((Integer) entry.getValue()).intValue());
      Integer before = (Integer) known.get(entry.getKey());
      if (before != null) strongest = Math.max(strongest, before.intValue());
      known.put(entry.getKey(), Integer.valueOf(strongest));
    }
  }

  private static int kind(Expression expression) {
    if (expression instanceof Attribute) return IDENTITY;
    int kind = TRANSFORMATION;
    ArrayDeque nodes = new ArrayDeque();
    nodes.push(expression);
    IdentityHashMap seen = new IdentityHashMap();
    while (!nodes.isEmpty()) {
      Expression node = (Expression) nodes.pop();
      if (seen.put(node, Boolean.TRUE) != null) continue;
      if (node instanceof AggregateExpression) kind = Math.max(kind, AGGREGATION);
      if (node instanceof WindowExpression) return WINDOW; // an aggregate function over a window is none over groups
      for (scala.collection.Iterator each = node.children().iterator(); each.hasNext(); ) nodes.push(each.next());
    }
    return kind;
  }

  /** The source columns of everything that an expression names, its subqueries' results included. */
  private Map references(Expression expression) {
    Map found = new LinkedHashMap();
    ArrayDeque nodes = new ArrayDeque();
    nodes.push(expression);
    IdentityHashMap seen = new IdentityHashMap();
    while (!nodes.isEmpty()) {
      Expression node = (Expression) nodes.pop();
      if (seen.put(node, Boolean.TRUE) != null) continue;
      if (node instanceof Attribute attribute) merge(found, of(attribute));
      if (node instanceof OuterReference reference) nodes.push(reference.e());
      if (node instanceof PlanExpression planExpression) {
        LogicalPlan plan = (LogicalPlan) planExpression.plan();
        for (scala.collection.Iterator each = plan.output().iterator(); each.hasNext(); )
          merge(found, of((Attribute) each.next()));
      }
      for (scala.collection.Iterator each = node.children().iterator(); each.hasNext(); ) nodes.push(each.next());
    }
    return found;
  }

  private static void merge(Map found, Map from) {
    for (Iterator each = from.entrySet().iterator(); each.hasNext(); ) {
      Map.Entry entry = (Map.Entry) each.next();
      Integer before = (Integer) found.get(entry.getKey());
      int kind = ((Integer) entry.getValue()).intValue();
      if (before == null || before.intValue() < kind) found.put(entry.getKey(), entry.getValue());
    }
  }

  // ------------------------------------------------------------------ the answer

  private String render(LogicalPlan plan) {
    StringBuilder out = new StringBuilder("{\"columns\":[");
    LogicalPlan root = plan instanceof WithCTE with ? with.plan() : plan;
    if (root instanceof V2WriteCommand write) {
      scala.collection.Seq targets = ((LogicalPlan) write.table()).output();
      scala.collection.Seq sources = write.query().output();
      // Row-level writes put columns of their own before and after; all writes name the table's columns.
      for (int i = 0; i < targets.size(); i++) {
        Attribute target = (Attribute) targets.apply(i);
        Attribute source = named(sources, target.name());
        if (source == null && sources.size() == targets.size()) source = (Attribute) sources.apply(i);
        column(out, target.name(), source);
      }
    } else {
      LogicalPlan query = root instanceof V2CreateTableAsSelectPlan vctasp ? vctasp.query() : root;
      for (scala.collection.Iterator each = query.output().iterator(); each.hasNext(); ) {
        Attribute column = (Attribute) each.next();
        column(out, column.name(), column);
      }
    }
    out.append("],\"indirect\":{");
    for (Iterator each = indirect.entrySet().iterator(); each.hasNext(); ) {
      Map.Entry entry = (Map.Entry) each.next();
      Json.member(out, (String) entry.getKey()).append('[');
      for (Iterator sources = ((Map) entry.getValue()).keySet().iterator(); sources.hasNext(); ) {
        Json.element(out);
        out.append((String) sources.next());
      }
      out.append(']');
    }
    return out.append("}}").toString();
  }

  private static Attribute named(scala.collection.Seq columns, String name) {
    for (scala.collection.Iterator each = columns.iterator(); each.hasNext(); ) {
      Attribute column = (Attribute) each.next();
      if (column.name().equalsIgnoreCase(name)) return column;
    }
    return null;
  }

  private void column(StringBuilder out, String name, Attribute source) {
    Json.element(out);
    out.append('[');
    Json.string(out, name);
    out.append(",[");
    if (source != null) {
      for (Iterator each = of(source).entrySet().iterator(); each.hasNext(); ) {
        Map.Entry entry = (Map.Entry) each.next();
        Json.element(out);
        String key = (String) entry.getKey();
        out.append(key.substring(0, key.length() - 1)).append(",\"");
        out.append(KINDS[((Integer) entry.getValue()).intValue()]).append("\"]");
      }
    }
    out.append("]]");
  }
}
