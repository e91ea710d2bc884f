package sqe.bridge.plan;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.IdentityHashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.CatalystIdentifier;
import org.apache.spark.sql.catalyst.analysis.*;
import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.sql.catalyst.expressions.objects.Invoke;
import org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke;
import org.apache.spark.sql.catalyst.plans.logical.*;
import org.apache.spark.sql.catalyst.trees.Origin;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.ObjectType;
import scala.collection.Seq;
import sqe.bridge.BridgeException;
import sqe.bridge.Json;
import sqe.bridge.secure.Shield;

/**
 * Describes a plan as JSON in one walk over all fields of all nodes, without recursion: the depth of a plan is the
 * user's choice, the stack is ours.
 */
public final class PlanWalk {
  /** One name in a parsed plan; its place in the list is its address in a rewrite. */
  record Relation(LogicalPlan node, String kind, String holder, String field, boolean aliased) {}

  /** The names of the common table expressions that a node can see: the innermost first. */
  private record Scope(Scope outer, String[] names) {
    boolean binds(String name) {
      boolean caseSensitive = SQLConf.get().caseSensitiveAnalysis();
      for (Scope scope = this; scope != null; scope = scope.outer)
        for (String bound : scope.names) if (caseSensitive ? bound.equals(name) : bound.equalsIgnoreCase(name)) return true;
      return false;
    }
  }

  /**
   * A node to look at. `parent` is the plan that holds it, over any expressions in between, `builtin` whether it is inside of
   * what one of Spark's own functions stands for.
   */
  private record Visit(
      TreeNode<?> node,
      int depth,
      int parent,
      String slot,
      String holder,
      String field,
      boolean aliased,
      boolean builtin,
      RelationTimeTravel travel,
      Scope scope) {}

  /** What holds a name, as its first field, and what that is the name of. */
  private static final Map<Class<?>, String> NAMED =
      Map.of(
          UnresolvedRelation.class, "relation",
          UnresolvedTable.class, "table",
          UnresolvedTableOrView.class, "table_or_view",
          UnresolvedView.class, "view",
          UnresolvedIdentifier.class, "identifier",
          UnresolvedNamespace.class, "namespace",
          UnresolvedProcedure.class, "other",
          UnresolvedFunctionName.class, "other");

  private static final Set<String> WRITES =
      Set.of("InsertIntoStatement", "OverwriteByExpression", "OverwritePartitionsDynamic", "AppendData");

  private static final Set<String> OTHER_NAMES = Set.of("multipartIdentifier", "nameParts", "tableName");

  public final List<Relation> relations = new ArrayList<>();
  private final boolean analysed;
  private final ArrayDeque<Visit> stack = new ArrayDeque<>();
  private final Set<TreeNode<?>> seen = Collections.newSetFromMap(new IdentityHashMap<>());
  private final Map<TreeNode<?>, Set<Integer>> places = new IdentityHashMap<>(); // the ids of the plans above a plan
  private final Set<String> expressionClasses = new LinkedHashSet<>();
  private final Set<String> hints = new LinkedHashSet<>();
  private final Set<String> parameters = new LinkedHashSet<>();
  private final StringBuilder nodes = new StringBuilder("[");
  private final StringBuilder relationTexts = new StringBuilder("[");
  private final StringBuilder functions = new StringBuilder("[");
  private boolean markers;
  private int nodeCount;
  private int expressionCount;
  private int deepest;

  private PlanWalk(boolean analysed) {
    this.analysed = analysed;
  }

  public static PlanWalk over(LogicalPlan plan, boolean analysed) {
    PlanWalk walk = new PlanWalk(analysed);
    walk.stack.push(new Visit(plan, 1, -1, "", "", "", false, false, null, null));
    while (!walk.stack.isEmpty()) {
      Visit visit = walk.stack.pop();
      if (!walk.isNew(visit)) continue;
      walk.deepest = Math.max(walk.deepest, visit.depth);
      if (visit.node instanceof Expression expression) walk.expression(visit, expression);
      else if (visit.node instanceof LogicalPlan logicalPlan) walk.plan(visit, logicalPlan);
      else throw new BridgeException("SQE_UNKNOWN_NODE", visit.node.getClass().getName());
    }
    return walk;
  }

  /** Whether the statement is only described: there are parameters without values. */
  public boolean hasMarkers() {
    return markers;
  }

  public String json() {
    StringBuilder out = new StringBuilder(nodes.length() + 512).append('{');
    Json.member(out, "nodes").append(nodes).append(']');
    Json.strings(Json.member(out, "expressions"), expressionClasses);
    Json.member(out, "relations").append(relationTexts).append(']');
    Json.member(out, "functions").append(functions).append(']');
    Json.strings(Json.member(out, "hints"), hints);
    Json.strings(Json.member(out, "parameters"), parameters);
    Json.member(out, "expression_count").append(expressionCount);
    Json.member(out, "depth").append(deepest);
    return out.append('}').toString();
  }

  // ------------------------------------------------------------------ plans

  private void plan(Visit visit, LogicalPlan plan) {
    int id = nodeCount++;
    Json.element(nodes);
    nodes.append('[').append(visit.parent).append(',');
    Json.string(nodes, visit.slot);
    nodes.append(',');
    Json.string(nodes, plan.getClass().getName());
    nodes.append(',');
    fields(plan);
    nodes.append(']');
    if (plan instanceof UnresolvedHint hint) hints.add(hint.name());
    if (plan instanceof UnresolvedTableValuedFunction call) {
      function(call.name(), true, call.functionArgs(), plan.origin());
    }
    if (!analysed) named(visit, plan);
    children(visit, plan, id);
  }

  private void children(Visit visit, LogicalPlan plan, int id) {
    List<Visit> next = new ArrayList<>();
    List<TreeNode<?>> found = new ArrayList<>();
    RelationTimeTravel travel = plan instanceof RelationTimeTravel clause ? clause : null;
    boolean transparent = plan instanceof SubqueryAlias || travel != null;
    boolean passesAlias = travel != null || plan instanceof Sample || plan instanceof UnresolvedSubqueryColumnAliases;
    boolean aliased = plan instanceof SubqueryAlias || (passesAlias && visit.aliased);
    for (int i = 0; i < plan.productArity(); i++) {
      String name = plan.productElementName(i);
      String holder = transparent ? visit.holder : Trees.simpleName(plan);
      String field = transparent ? visit.field : name;
      found.clear();
      Trees.nodesIn(plan.productElement(i), found);
      for (int k = 0; k < found.size(); k++) {
        Scope scope = scope(visit.scope, plan, found.get(k), name, k);
        next.add(new Visit(found.get(k), visit.depth + 1, id, name, holder, field, aliased, false, travel, scope));
      }
    }
    // Some nodes compute children that are no fields of theirs.
    unlisted(visit, plan.children(), "children", id, next);
    unlisted(visit, plan.innerChildren(), "innerChildren", id, next);
    push(next);
  }

  private void push(List<Visit> next) {
    for (int i = next.size() - 1; i >= 0; i--) stack.push(next.get(i));
  }

  /** An analysed plan that stands below two others is looked at below both: what is above it differs. */
  private boolean isNew(Visit visit) {
    if (!analysed || !(visit.node instanceof LogicalPlan)) return seen.add(visit.node);
    return places.computeIfAbsent(visit.node, each -> new HashSet<>()).add(visit.parent);
  }

  private static void unlisted(
      Visit visit, scala.collection.Iterable<? extends TreeNode<?>> nodes, String slot, int id, List<Visit> next) {
    for (TreeNode<?> node : Trees.each(nodes))
      if (node instanceof LogicalPlan && !isListed(node, next))
        next.add(new Visit(node, visit.depth + 1, id, slot, Trees.simpleName(visit.node), slot, false, false, null, visit.scope));
  }

  private static boolean isListed(TreeNode<?> node, List<Visit> next) {
    for (Visit each : next) if (each.node == node) return true;
    return false;
  }

  /** Spark's CTESubstitution: a definition sees the earlier ones, and itself when it may recurse; the query sees all. */
  private static Scope scope(Scope outer, LogicalPlan plan, TreeNode<?> node, String field, int place) {
    if (plan instanceof UnresolvedWith with) {
      boolean definition = field.equals("cteRelations");
      int visible = definition ? place + (with.allowRecursion() ? 1 : 0) : Trees.size(with.cteRelations());
      String[] names = new String[visible];
      for (int i = 0; i < visible; i++) names[i] = Trees.at(with.cteRelations(), i)._1();
      return new Scope(outer, names);
    }
    // The substitution walks children and expressions only; a plan in another field binds nothing.
    if (node instanceof LogicalPlan && !(plan instanceof RelationTimeTravel) && !Trees.isChild(plan, node)) return null;
    return outer;
  }

  private void fields(LogicalPlan plan) {
    nodes.append('{');
    int start = nodes.length();
    try {
      if (!NodeFields.write(nodes, plan, analysed)) {
        boolean expressions = plan instanceof Command || plan instanceof ParsedStatement;
        for (int i = 0; i < plan.productArity(); i++) {
          int mark = nodes.length();
          Json.member(nodes, plan.productElementName(i));
          if (!Values.render(nodes, plan.productElement(i), expressions)) nodes.setLength(mark);
        }
      }
    } catch (RuntimeException odd) {
      // A field that cannot be shown hides nothing: the node's class and its children are judged.
      nodes.setLength(start);
      Json.member(nodes, "unreadable", odd.getClass().getName());
    }
    nodes.append('}');
  }

  // ------------------------------------------------------------------ names

  private void named(Visit visit, LogicalPlan plan) {
    String kind = NAMED.get(plan.getClass());
    if (kind != null) relation(visit, plan, kind, (Seq<?>) plan.productElement(0));
    else if (isIcebergCommand(plan)) relation(own(visit, "table"), plan, "table", (Seq<?>) plan.productElement(0));
    else otherNames(visit, plan);
  }

  /** Iceberg's own ALTER TABLE commands carry the table's name as their first field. */
  static boolean isIcebergCommand(LogicalPlan plan) {
    return plan instanceof Command
        && plan.productArity() > 0
        && plan.productElementName(0).equals("table")
        && plan.productElement(0) instanceof Seq;
  }

  /** Names in commands that nobody rewrites; whoever sees one refuses. */
  private void otherNames(Visit visit, LogicalPlan plan) {
    for (int i = 0; i < plan.productArity(); i++) {
      Object value = plan.productElement(i);
      if (value instanceof scala.Some<?> some) value = some.get();
      String field = plan.productElementName(i);
      boolean named = OTHER_NAMES.contains(field) || (plan instanceof Command && field.equals("name"));
      if (value instanceof CatalystIdentifier identifier) value = identifier.nameParts();
      else if (!named) continue;
      if (value instanceof Seq<?> parts && !parts.isEmpty() && Trees.first(parts) instanceof String)
        relation(own(visit, field), plan, "other", parts);
    }
  }

  /** The place of a name that a command holds itself. */
  private static Visit own(Visit visit, String field) {
    String holder = Trees.simpleName(visit.node);
    return new Visit(visit.node, visit.depth, visit.parent, visit.slot, holder, field, false, false, null, null);
  }

  private void relation(Visit visit, LogicalPlan plan, String kind, Seq<?> parts) {
    relations.add(new Relation(plan, kind, visit.holder, visit.field, visit.aliased));
    Json.element(relationTexts);
    relationTexts.append('{');
    Json.member(relationTexts, "kind", kind);
    Json.strings(Json.member(relationTexts, "parts"), parts);
    Json.member(relationTexts, "holder", visit.holder);
    Json.member(relationTexts, "field", visit.field);
    if (visit.aliased) Json.member(relationTexts, "aliased").append(true);
    if (plan instanceof UnresolvedRelation relation) {
      boolean cte = parts.size() == 1 && visit.scope != null && visit.scope.binds((String) Trees.first(parts));
      if (cte) Json.member(relationTexts, "cte").append(true);
      if (relation.isStreaming()) Json.member(relationTexts, "streaming").append(true);
      Map<String, String> options = new LinkedHashMap<>(relation.options().asCaseSensitiveMap());
      // Spark's parser puts this one on every target of a write.
      if (isWriteTarget(visit.holder, visit.field)) options.remove(UnresolvedRelation.REQUIRED_WRITE_PRIVILEGES());
      if (!options.isEmpty()) Json.map(Json.member(relationTexts, "options"), options);
    }
    if (visit.travel != null) TimeTravels.write(Json.member(relationTexts, "time_travel"), visit.travel);
    start(relationTexts, plan.origin());
    relationTexts.append('}');
  }

  private static boolean isWriteTarget(String holder, String field) {
    return isRowLevelTarget(holder, field) || (field.equals("table") && WRITES.contains(holder));
  }

  /** Targets whose columns the statement can name with the table's name before them. */
  static boolean isRowLevelTarget(String holder, String field) {
    return (field.equals("table") && (holder.equals("UpdateTable") || holder.equals("DeleteFromTable")))
        || (field.equals("targetTable") && holder.equals("MergeIntoTable"));
  }

  private static void start(StringBuilder out, Origin origin) {
    if (origin.startIndex().isDefined()) Json.member(out, "start").append(origin.startIndex().get());
  }

  // ------------------------------------------------------------------ expressions

  private void expression(Visit visit, Expression expression) {
    expressionCount++;
    if (!(visit.builtin && isOfSpark(expression))) {
      if (Markers.is(expression)) markers = true;
      // A policy's guard goes by the name of Spark's, as which it works; it stands in analysed plans only.
      else expressionClasses.add((expression instanceof Shield ? TryEval.class : expression.getClass()).getName());
      call(expression);
    }
    List<Visit> next = new ArrayList<>();
    List<TreeNode<?>> found = new ArrayList<>();
    // What such a function stands for is analysed and run; its own fields keep a state from before.
    boolean replaced = expression instanceof InheritAnalysisRules;
    if (replaced && !markers) markers = Markers.within(expression); // a coercion may have left it there alone
    for (int i = 0; !replaced && i < expression.productArity(); i++) {
      found.clear();
      Trees.nodesIn(expression.productElement(i), found);
      String name = expression.productElementName(i);
      for (TreeNode<?> each : found) next.add(below(visit, expression, each, name));
    }
    for (TreeNode<?> each : Trees.each(expression.children()))
      if (!isListed(each, next)) next.add(below(visit, expression, each, "children"));
    push(next);
  }

  private void call(Expression expression) {
    if (expression instanceof UnresolvedFunction call) {
      function(call.nameParts(), false, call.arguments(), call.origin());
    } else if (expression instanceof UnresolvedGenerator call) {
      function(call.name().nameParts(), true, call.children(), call.origin());
    } else if (expression instanceof ApplyFunctionExpression call) {
      function(Trees.seq(call.function().canonicalName()), false, call.children(), call.origin());
    } else if (expression instanceof StaticInvoke call) {
      function(Trees.seq(owner(call), call.functionName()), false, call.arguments(), call.origin());
    } else if (expression instanceof Invoke call) {
      function(Trees.seq(owner(call), call.functionName()), false, call.arguments(), call.origin());
    } else if (expression instanceof Parameter parameter) parameters.add(parameter.name());
  }

  /** The class whose method is called. */
  private static String owner(Expression call) {
    if (call instanceof StaticInvoke invoke) return invoke.staticObject().getName();
    DataType target = ((Invoke) call).targetObject().dataType();
    return target instanceof ObjectType ot ? ot.cls().getName() : target.catalogString();
  }

  private static boolean isOfSpark(Expression expression) {
    boolean call = expression instanceof StaticInvoke || expression instanceof Invoke;
    return call && owner(expression).startsWith("org.apache.spark.sql.catalyst.");
  }

  private static Visit below(Visit visit, Expression expression, TreeNode<?> node, String field) {
    boolean query = node instanceof LogicalPlan;
    String slot = query ? "subquery" : visit.slot;
    boolean builtin = !query && (visit.builtin || expression instanceof InheritAnalysisRules);
    Scope scope = !query || expression instanceof SubqueryExpression ? visit.scope : null;
    String holder = Trees.simpleName(expression);
    return new Visit(node, visit.depth + 1, visit.parent, slot, holder, field, false, builtin, null, scope);
  }

  private void function(Seq<String> parts, boolean tableValued, Seq<Expression> arguments, Origin origin) {
    Json.element(functions);
    functions.append('{');
    Json.strings(Json.member(functions, "parts"), parts);
    if (tableValued) Json.member(functions, "table_valued").append(true);
    Json.member(functions, "literals").append('[');
    for (Expression each : Trees.each(arguments)) {
      Json.element(functions);
      argument(each);
    }
    functions.append(']');
    Json.member(functions, "calls").append('{');
    int place = 0;
    for (Expression each : Trees.each(arguments)) {
      if (each instanceof UnresolvedFunction call && Trees.size(call.nameParts()) == 1)
        Json.member(functions, String.valueOf(place), Trees.first(call.nameParts()).toLowerCase(Locale.ROOT));
      place++;
    }
    functions.append('}');
    start(functions, origin);
    functions.append('}');
  }

  private void argument(Expression argument) {
    if (argument instanceof NamedArgumentExpression expression) argument = expression.value();
    if (argument instanceof UnresolvedFunction function && isOptions(function)) options(Trees.list(function.arguments()));
    else if (argument instanceof Literal literal) Values.literal(functions, literal);
    else LiteralNumbers.write(functions, argument);
  }

  /** `map('k', 'v', …)` of literals only, as option maps are written. */
  private static boolean isOptions(UnresolvedFunction call) {
    return Trees.size(call.nameParts()) == 1
        && "map".equalsIgnoreCase(Trees.first(call.nameParts()))
        && Trees.size(call.arguments()) % 2 == 0
        && Trees.list(call.arguments()).stream().allMatch(Literal.class::isInstance);
  }

  private void options(List<Expression> entries) {
    functions.append('{');
    for (int i = 0; i < entries.size(); i += 2) {
      Object key = ((Literal) entries.get(i)).value();
      Values.literal(Json.member(functions, String.valueOf(key)), (Literal) entries.get(i + 1));
    }
    functions.append('}');
  }
}
