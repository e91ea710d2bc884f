package sqe.bridge.plan;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;
import org.apache.spark.sql.catalyst.plans.logical.*;
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
  private static final String[] KINDS = {"IDENTITY", "TRANSFORMATION", "WINDOW", "AGGREGATION"};
  private static final int IDENTITY = 0;
  private static final int TRANSFORMATION = 1;
  private static final int WINDOW = 2;
  private static final int AGGREGATION = 3;

  /** Expression id -> (source column -> kind). Source columns are JSON arrays of the relation's parts and the column. */
  private final Map<Long, Map<String, Integer>> columns = new HashMap<>();

  private final Map<Long, CTERelationDef> definitions = new HashMap<>(); // by CTE id
  private final Map<Long, List<Map<String, Integer>>> loops = new HashMap<>(); // a map for each column, by loop id
  private final Map<String, Map<String, Integer>> indirect = new LinkedHashMap<>(); // by "FILTER", …
  private boolean recursive;

  private Lineage() {}

  public static String json(LogicalPlan plan) {
    Lineage lineage = new Lineage();
    lineage.walk(plan);
    if (lineage.recursive) lineage.walk(plan); // now the loops know where their columns come from
    return lineage.render(plan);
  }

  // ------------------------------------------------------------------ the walk, children first

  /** What stands below a cover is ours, not the user's. */
  private record Step(TreeNode<?> node, boolean secured, boolean childrenDone) {}

  private void walk(LogicalPlan root) {
    Set<Object> seen = Collections.newSetFromMap(new IdentityHashMap<>());
    ArrayDeque<Step> steps = new ArrayDeque<>();
    steps.push(new Step(root, false, false));
    while (!steps.isEmpty()) {
      Step step = steps.pop();
      if (step.childrenDone) {
        if (step.node instanceof LogicalPlan plan) plan(plan, step.secured);
        continue;
      }
      if (!seen.add(step.node)) continue;
      steps.push(new Step(step.node, step.secured, true));
      boolean cover = step.node instanceof SubqueryAlias alias && Secured.isCover(alias);
      for (TreeNode<?> each : below(step.node)) steps.push(new Step(each, step.secured || cover, false));
    }
  }

  /** What must be done before the node, the last first: definitions, then children, then subqueries. */
  private static List<TreeNode<?>> below(TreeNode<?> node) {
    List<TreeNode<?>> below = Trees.below(node);
    if (node instanceof WithCTE with) {
      below = new ArrayList<>(Trees.list(with.cteDefs()));
      below.add(with.plan());
    }
    Collections.reverse(below);
    return below;
  }

  private void plan(LogicalPlan plan, boolean secured) {
    if (plan instanceof DataSourceV2Relation relation) source(relation);
    else if (plan instanceof CTERelationDef def) definitions.put(def.id(), def);
    else if (plan instanceof CTERelationRef reference) {
      CTERelationDef definition = definitions.get(reference.cteId());
      if (definition != null) copy(definition.output(), plan.output());
    } else if (plan instanceof UnionLoopRef ref) {
      List<Map<String, Integer>> known = loops.get(ref.loopId());
      if (known != null) for (int i = 0; i < known.size(); i++) add(Trees.at(plan.output(), i), known.get(i), IDENTITY);
    } else if (plan instanceof UnionBase) {
      for (LogicalPlan each : Trees.each(plan.children())) copy(each.output(), plan.output());
      if (plan instanceof UnionLoop loop) {
        recursive = true;
        loops.put(loop.id(), Trees.list(plan.output()).stream().map(this::of).toList());
      }
    } else if (plan instanceof Generate generate) {
      Map<String, Integer> from = references((Expression) generate.generator());
      for (Attribute each : Trees.each(generate.generatorOutput())) add(each, from, TRANSFORMATION);
    } else if (plan instanceof Expand expand) rows(plan, expand.projections());
    for (Object expression : Trees.each(plan.expressions())) {
      if (expression instanceof MergeRows.Instruction instruction) rows(plan, instruction.outputs());
      if (expression instanceof Alias alias) {
        Expression child = alias.child();
        add(alias.toAttribute(), references(child), kind(child));
      }
    }
    if (!secured) indirect(plan);
  }

  /** A node that gives several rows for one, each made of expressions in the order of its output. */
  private void rows(LogicalPlan plan, scala.collection.Iterable<? extends scala.collection.Iterable<Expression>> rows) {
    for (scala.collection.Iterable<Expression> each : Trees.each(rows)) {
      List<Expression> row = Trees.list(each);
      List<Attribute> output = Trees.list(plan.output());
      for (int i = 0; i < Math.min(row.size(), output.size()); i++)
        add(output.get(i), references(row.get(i)), kind(row.get(i)));
    }
  }

  private void source(DataSourceV2Relation relation) {
    if (!relation.identifier().isDefined()) return;
    StringBuilder name = new StringBuilder();
    if (relation.catalog().isDefined()) Values.render(name, relation.catalog().get(), false);
    StringBuilder parts = new StringBuilder();
    Values.render(parts, SqeCatalog.real(relation.identifier().get()), false);
    String prefix = name.length() == 0 ? "[" + parts : "[[" + name + "," + parts.substring(1);
    for (Attribute column : Trees.each(relation.output())) {
      StringBuilder key = new StringBuilder(prefix).append(',');
      Json.string(key, column.name());
      of(column).put(key.append(']').toString(), IDENTITY);
    }
  }

  /** What decides which rows there are, and in which order. */
  private void indirect(LogicalPlan plan) {
    if (plan instanceof Filter filter) indirect("FILTER", List.of(filter.condition()));
    else if (plan instanceof Generate generate) indirect("FILTER", List.of((Expression) generate.generator()));
    else if (plan instanceof SetOperation)
      for (LogicalPlan side : Trees.each(plan.children())) indirect("FILTER", Trees.each(side.output()));
    else if (plan instanceof Join join) indirect("JOIN", Trees.each(join.condition().toList()));
    else if (plan instanceof LateralJoin join) indirect("JOIN", Trees.each(join.condition().toList()));
    else if (plan instanceof Aggregate aggregate) indirect("GROUP_BY", Trees.each(aggregate.groupingExpressions()));
    else if (plan instanceof Sort sort) indirect("SORT", Trees.each(sort.order()));
    else if (plan instanceof Window window) {
      indirect("WINDOW", Trees.each(window.partitionSpec()));
      indirect("WINDOW", Trees.each(window.orderSpec()));
    }
  }

  private void indirect(String kind, Iterable<? extends Expression> expressions) {
    for (Expression each : expressions) indirect.computeIfAbsent(kind, found -> new LinkedHashMap<>()).putAll(references(each));
  }

  // ------------------------------------------------------------------ columns

  private Map<String, Integer> of(NamedExpression column) {
    return columns.computeIfAbsent(column.exprId().id(), each -> new LinkedHashMap<>());
  }

  private void copy(scala.collection.Iterable<Attribute> from, scala.collection.Iterable<Attribute> to) {
    Iterator<Attribute> sources = Trees.each(from).iterator();
    Iterator<Attribute> targets = Trees.each(to).iterator();
    while (sources.hasNext() && targets.hasNext()) add(targets.next(), of(sources.next()), IDENTITY);
  }

  private void add(NamedExpression column, Map<String, Integer> from, int kind) {
    Map<String, Integer> known = of(column);
    if (known != from) from.forEach((source, before) -> known.merge(source, Math.max(kind, before), Math::max));
  }

  private static int kind(Expression expression) {
    if (expression instanceof Attribute) return IDENTITY;
    int kind = TRANSFORMATION;
    for (Expression node : Trees.expressions(expression)) {
      if (node instanceof WindowExpression) return WINDOW; // an aggregate function over a window is none over groups
      if (node instanceof AggregateExpression) kind = AGGREGATION;
    }
    return kind;
  }

  /** The source columns of everything that an expression names, its subqueries' results included. */
  private Map<String, Integer> references(Expression expression) {
    Map<String, Integer> found = new LinkedHashMap<>();
    for (Expression node : Trees.expressions(expression)) {
      if (node instanceof Attribute attribute) merge(found, of(attribute));
      if (node instanceof OuterReference outer) merge(found, references((Expression) outer.e()));
      if (node instanceof PlanExpression<?> query)
        for (Attribute each : Trees.each(((LogicalPlan) query.plan()).output())) merge(found, of(each));
    }
    return found;
  }

  private static void merge(Map<String, Integer> found, Map<String, Integer> from) {
    from.forEach((source, kind) -> found.merge(source, kind, Math::max));
  }

  // ------------------------------------------------------------------ the answer

  private String render(LogicalPlan plan) {
    StringBuilder out = new StringBuilder("{\"columns\":[");
    LogicalPlan root = plan instanceof WithCTE with ? with.plan() : plan;
    if (root instanceof V2WriteCommand write) {
      List<Attribute> targets = Trees.list(((LogicalPlan) write.table()).output());
      List<Attribute> sources = Trees.list(write.query().output());
      // Row-level writes put columns of their own before and after; all writes name the table's columns.
      for (int i = 0; i < targets.size(); i++) {
        String name = targets.get(i).name();
        Attribute source = sources.size() == targets.size() ? sources.get(i) : null;
        column(out, name, sources.stream().filter(each -> each.name().equalsIgnoreCase(name)).findFirst().orElse(source));
      }
    } else {
      LogicalPlan query = root instanceof V2CreateTableAsSelectPlan create ? create.query() : root;
      for (Attribute column : Trees.each(query.output())) column(out, column.name(), column);
    }
    out.append("],\"indirect\":{");
    indirect.forEach((kind, sources) -> Json.member(out, kind).append('[').append(String.join(",", sources.keySet())).append(']'));
    return out.append("}}").toString();
  }

  private void column(StringBuilder out, String name, Attribute source) {
    Json.element(out);
    out.append('[');
    Json.string(out, name);
    out.append(",[");
    if (source != null) {
      for (Map.Entry<String, Integer> entry : of(source).entrySet()) {
        Json.element(out);
        String key = entry.getKey();
        out.append(key, 0, key.length() - 1).append(",\"").append(KINDS[entry.getValue()]).append("\"]");
      }
    }
    out.append("]]");
  }
}
