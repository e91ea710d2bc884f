package sqe.bridge.plan;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.IdentityHashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.CatalystIdentifier;
import org.apache.spark.sql.catalyst.analysis.Parameter;
import org.apache.spark.sql.catalyst.analysis.RelationTimeTravel;
import org.apache.spark.sql.catalyst.analysis.UnresolvedFunction;
import org.apache.spark.sql.catalyst.analysis.UnresolvedFunctionName;
import org.apache.spark.sql.catalyst.analysis.UnresolvedGenerator;
import org.apache.spark.sql.catalyst.analysis.UnresolvedIdentifier;
import org.apache.spark.sql.catalyst.analysis.UnresolvedNamespace;
import org.apache.spark.sql.catalyst.analysis.UnresolvedProcedure;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.analysis.UnresolvedSubqueryColumnAliases;
import org.apache.spark.sql.catalyst.analysis.UnresolvedTable;
import org.apache.spark.sql.catalyst.analysis.UnresolvedTableOrView;
import org.apache.spark.sql.catalyst.analysis.UnresolvedTableValuedFunction;
import org.apache.spark.sql.catalyst.analysis.UnresolvedView;
import org.apache.spark.sql.catalyst.expressions.ApplyFunctionExpression;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.InheritAnalysisRules;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedArgumentExpression;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression;
import org.apache.spark.sql.catalyst.expressions.TryEval;
import org.apache.spark.sql.catalyst.expressions.objects.Invoke;
import org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke;
import org.apache.spark.sql.catalyst.plans.logical.Command;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.ParsedStatement;
import org.apache.spark.sql.catalyst.plans.logical.Sample;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.catalyst.plans.logical.UnresolvedHint;
import org.apache.spark.sql.catalyst.plans.logical.UnresolvedWith;
import org.apache.spark.sql.catalyst.trees.Origin;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.ObjectType;
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

  private static final class Visit {
    final TreeNode node;
    final int depth;
    final int parent; // the plan that holds it, over any expressions in between
    final String slot;
    String holder = "";
    String field = "";
    boolean aliased;
    boolean builtin; // inside of what one of Spark's own functions stands for
    RelationTimeTravel travel;
    Scope scope;

    Visit(TreeNode node, int depth, int parent, String slot) {
      this.node = node;
      this.depth = depth;
      this.parent = parent;
      this.slot = slot;
    }
  }

  private static final Set<String> OTHER_NAMES = Set.of("multipartIdentifier", "nameParts", "tableName");

  public final List<Relation> relations = new ArrayList<>();
  private final boolean analysed;
  private final ArrayDeque<Visit> stack = new ArrayDeque<>();
  private final Set<TreeNode> seen = Collections.newSetFromMap(new IdentityHashMap<>());
  private final Map<TreeNode, Set<Integer>> places = new IdentityHashMap<>(); // the ids of the plans above a plan
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
    walk.stack.push(new Visit(plan, 1, -1, ""));
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
    List<TreeNode> found = new ArrayList<>();
    boolean transparent = plan instanceof SubqueryAlias || plan instanceof RelationTimeTravel;
    boolean passesAlias =
        plan instanceof RelationTimeTravel || plan instanceof Sample || plan instanceof UnresolvedSubqueryColumnAliases;
    for (int i = 0; i < plan.productArity(); i++) {
      String name = plan.productElementName(i);
      found.clear();
      Trees.nodesIn(plan.productElement(i), found);
      for (int k = 0; k < found.size(); k++) {
        TreeNode node = (TreeNode) found.get(k);
        Visit child = new Visit(node, visit.depth + 1, id, name);
        child.holder = transparent ? visit.holder : Trees.simpleName(plan);
        child.field = transparent ? visit.field : name;
        child.aliased = plan instanceof SubqueryAlias || (passesAlias && visit.aliased);
        child.travel = plan instanceof RelationTimeTravel rtt ? rtt : null;
        child.scope = scope(visit.scope, plan, node, name, k);
        next.add(child);
      }
    }
    // Some nodes compute children that are no fields of theirs.
    unlisted(visit, plan.children(), "children", id, next);
    unlisted(visit, plan.innerChildren(), "innerChildren", id, next);
    for (int i = next.size() - 1; i >= 0; i--) stack.push(next.get(i));
  }

  /** An analysed plan that stands below two others is looked at below both: what is above it differs. */
  private boolean isNew(Visit visit) {
    if (!analysed || !(visit.node instanceof LogicalPlan)) return seen.add(visit.node);
    return places.computeIfAbsent(visit.node, each -> new HashSet<>()).add(visit.parent);
  }

  private void unlisted(Visit visit, scala.collection.Iterable nodes, String slot, int id, List<Visit> next) {
    for (Object node : Trees.each(nodes)) {
      boolean listed = !(node instanceof LogicalPlan);
      for (int i = 0; i < next.size() && !listed; i++) listed = next.get(i).node == node;
      if (listed) continue;
      Visit child = new Visit((TreeNode) node, visit.depth + 1, id, slot);
      child.holder = Trees.simpleName(visit.node);
      child.field = slot;
      child.scope = visit.scope;
      next.add(child);
    }
  }

  /** Spark's CTESubstitution: a definition sees the earlier ones, and itself when it may recurse; the query sees all. */
  private static Scope scope(Scope outer, LogicalPlan plan, TreeNode node, String field, int place) {
    if (plan instanceof UnresolvedWith with) {
      boolean definition = field.equals("cteRelations");
      int visible = definition ? place + (with.allowRecursion() ? 1 : 0) : Trees.list(with.cteRelations()).size();
      String[] names = new String[visible];
      for (int i = 0; i < visible; i++) names[i] = Trees.list(with.cteRelations()).get(i)._1();
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
    if (plan instanceof UnresolvedRelation relation)
      relation(visit, plan, "relation", relation.multipartIdentifier());
    else if (plan instanceof UnresolvedTable table) relation(visit, plan, "table", table.multipartIdentifier());
    else if (plan instanceof UnresolvedTableOrView tableOrView)
      relation(visit, plan, "table_or_view", tableOrView.multipartIdentifier());
    else if (plan instanceof UnresolvedView view) relation(visit, plan, "view", view.multipartIdentifier());
    else if (plan instanceof UnresolvedIdentifier identifier)
      relation(visit, plan, "identifier", identifier.nameParts());
    else if (plan instanceof UnresolvedNamespace namespace)
      relation(visit, plan, "namespace", namespace.multipartIdentifier());
    else if (plan instanceof UnresolvedProcedure procedure) relation(visit, plan, "other", procedure.nameParts());
    else if (plan instanceof UnresolvedFunctionName name) relation(visit, plan, "other", name.multipartIdentifier());
    else if (isIcebergCommand(plan)) {
      visit.holder = Trees.simpleName(plan);
      visit.field = "table";
      relation(visit, plan, "table", (scala.collection.Seq) plan.productElement(0));
    } else otherNames(visit, plan);
  }

  /** Iceberg's own ALTER TABLE commands carry the table's name as their first field. */
  static boolean isIcebergCommand(LogicalPlan plan) {
    return plan instanceof Command
        && plan.productArity() > 0
        && plan.productElementName(0).equals("table")
        && plan.productElement(0) instanceof scala.collection.Seq;
  }

  /** Names in commands that nobody rewrites; whoever sees one refuses. */
  private void otherNames(Visit visit, LogicalPlan plan) {
    for (int i = 0; i < plan.productArity(); i++) {
      Object value = plan.productElement(i);
      if (value instanceof scala.Option option && option.isDefined()) value = option.get();
      String field = plan.productElementName(i);
      scala.collection.Seq parts = null;
      if (value instanceof CatalystIdentifier identifier) parts = identifier.nameParts();
      else if (value instanceof scala.collection.Seq seq
          && (OTHER_NAMES.contains(field) || (plan instanceof Command && field.equals("name"))))
        parts = seq;
      if (parts == null || parts.isEmpty() || !(parts.head() instanceof String)) continue;
      Visit inside = new Visit(plan, visit.depth, visit.parent, visit.slot);
      inside.holder = Trees.simpleName(plan);
      inside.field = field;
      relation(inside, plan, "other", parts);
    }
  }

  private void relation(Visit visit, LogicalPlan plan, String kind, scala.collection.Seq parts) {
    relations.add(new Relation(plan, kind, visit.holder, visit.field, visit.aliased));
    Json.element(relationTexts);
    relationTexts.append('{');
    Json.member(relationTexts, "kind", kind);
    Json.strings(Json.member(relationTexts, "parts"), parts);
    Json.member(relationTexts, "holder", visit.holder);
    Json.member(relationTexts, "field", visit.field);
    if (visit.aliased) Json.member(relationTexts, "aliased").append(true);
    if (plan instanceof UnresolvedRelation relation) {
      boolean cte = parts.size() == 1 && visit.scope != null && visit.scope.binds((String) parts.head());
      if (cte) Json.member(relationTexts, "cte").append(true);
      if (relation.isStreaming()) Json.member(relationTexts, "streaming").append(true);
      Map options = new LinkedHashMap(relation.options().asCaseSensitiveMap());
      // Spark's parser puts this one on every target of a write.
      if (isWriteTarget(visit.holder, visit.field)) options.remove(UnresolvedRelation.REQUIRED_WRITE_PRIVILEGES());
      if (!options.isEmpty()) Json.map(Json.member(relationTexts, "options"), options);
    }
    if (visit.travel != null) TimeTravels.write(Json.member(relationTexts, "time_travel"), visit.travel);
    start(relationTexts, plan.origin());
    relationTexts.append('}');
  }

  private static boolean isWriteTarget(String holder, String field) {
    return isRowLevelTarget(holder, field)
        || (field.equals("table")
            && (holder.equals("InsertIntoStatement")
                || holder.equals("OverwriteByExpression")
                || holder.equals("OverwritePartitionsDynamic")
                || holder.equals("AppendData")));
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
      // A policy's guard is what it extends, and stands in analysed plans only.
      else expressionClasses.add((expression instanceof Shield ? TryEval.class : expression.getClass()).getName());
      call(expression);
    }
    List<Visit> next = new ArrayList<>();
    // What such a function stands for is analysed and run; its own fields keep a state from before.
    boolean replaced = expression instanceof InheritAnalysisRules;
    if (replaced && !markers) markers = Markers.within(expression); // a coercion may have left it there alone
    for (int i = 0; !replaced && i < expression.productArity(); i++) {
      List<TreeNode> found = new ArrayList<>();
      Trees.nodesIn(expression.productElement(i), found);
      String name = expression.productElementName(i);
      for (TreeNode each : found) next.add(below(visit, expression, each, name));
    }
    for (TreeNode node : Trees.each(expression.children())) {
      boolean listed = false;
      for (int i = 0; i < next.size() && !listed; i++) listed = next.get(i).node == node;
      if (!listed) next.add(below(visit, expression, node, "children"));
    }
    for (int i = next.size() - 1; i >= 0; i--) stack.push(next.get(i));
  }

  private void call(Expression expression) {
    if (expression instanceof UnresolvedFunction call) {
      function(call.nameParts(), false, call.arguments(), call.origin());
    } else if (expression instanceof UnresolvedGenerator call) {
      function(call.name().nameParts(), true, call.children(), call.origin());
    } else if (expression instanceof ApplyFunctionExpression call) {
      function(Trees.seq(call.function().canonicalName()), false, call.children(), call.origin());
    } else if (expression instanceof StaticInvoke call) {
      function(names(owner(call), call.functionName()), false, call.arguments(), call.origin());
    } else if (expression instanceof Invoke call) {
      function(names(owner(call), call.functionName()), false, call.arguments(), call.origin());
    } else if (expression instanceof Parameter parameter) parameters.add(parameter.name());
  }

  private static scala.collection.Iterable names(String owner, String method) {
    return Trees.seq(List.of(owner, method));
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

  private static Visit below(Visit visit, Expression expression, TreeNode node, String field) {
    Visit child = new Visit(node, visit.depth + 1, visit.parent, node instanceof LogicalPlan ? "subquery" : visit.slot);
    child.holder = Trees.simpleName(expression);
    child.field = field;
    boolean binds = !(node instanceof LogicalPlan) || expression instanceof SubqueryExpression;
    child.scope = binds ? visit.scope : null;
    child.builtin = !(node instanceof LogicalPlan) && (visit.builtin || expression instanceof InheritAnalysisRules);
    return child;
  }

  private void function(
      scala.collection.Iterable parts, boolean tableValued, scala.collection.Iterable arguments, Origin origin) {
    Json.element(functions);
    functions.append('{');
    Json.strings(Json.member(functions, "parts"), parts);
    if (tableValued) Json.member(functions, "table_valued").append(true);
    Json.member(functions, "literals").append('[');
    for (scala.collection.Iterator each = arguments.iterator(); each.hasNext(); ) {
      Json.element(functions);
      argument((Expression) each.next());
    }
    functions.append(']');
    Json.member(functions, "calls").append('{');
    int place = 0;
    for (scala.collection.Iterator each = arguments.iterator(); each.hasNext(); place++) {
      Object argument = each.next();
      if (!(argument instanceof UnresolvedFunction)) continue;
      scala.collection.Seq name = ((UnresolvedFunction) argument).nameParts();
      if (name.size() == 1) Json.member(functions, String.valueOf(place), ((String) name.head()).toLowerCase(java.util.Locale.ROOT));
    }
    functions.append('}');
    start(functions, origin);
    functions.append('}');
  }

  private void argument(Expression argument) {
    if (argument instanceof NamedArgumentExpression expression) argument = expression.value();
    if (argument instanceof UnresolvedFunction function) {
      int mark = functions.length();
      if (!options(function)) {
        functions.setLength(mark);
        functions.append("null");
      }
    } else if (argument instanceof Literal literal) Values.literal(functions, literal);
    else LiteralNumbers.write(functions, argument);
  }

  /** `map('k', 'v', …)` of literals only, as option maps are written. */
  private boolean options(UnresolvedFunction call) {
    if (Trees.list(call.nameParts()).size() != 1 || !"map".equalsIgnoreCase(Trees.first(call.nameParts()))) return false;
    List entries = Trees.list(call.arguments());
    functions.append('{');
    for (int i = 0; i + 1 < entries.size(); i += 2) {
      if (!(entries.get(i) instanceof Literal) || !(entries.get(i + 1) instanceof Literal)) return false;
      Json.member(functions, String.valueOf(((Literal) entries.get(i)).value()));
      Values.literal(functions, (Literal) entries.get(i + 1));
    }
    functions.append('}');
    return entries.size() % 2 == 0;
  }
}
