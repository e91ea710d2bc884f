package sqe.bridge.plan;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Collections;
import java.util.HashSet;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Callable;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.analysis.RelationTimeTravel;
import org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute;
import org.apache.spark.sql.catalyst.analysis.UnresolvedFunctionName;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.catalyst.plans.logical.*;
import org.apache.spark.sql.catalyst.trees.CurrentOrigin;
import org.apache.spark.sql.catalyst.trees.Origin;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.catalyst.types.DataTypeUtils$;
import org.apache.spark.sql.execution.arrow.ArrowConverters$;
import org.apache.spark.sql.util.CloseableIterator;
import scala.Option;
import sqe.bridge.BridgeException;
import sqe.bridge.Json;
import sqe.bridge.secure.Restricted;
import sqe.bridge.secure.Secured;
import sqe.bridge.spool.SpoolTable;

/** Exchanges names of a plan, addressed by index, for secured plans or internal names. */
public final class PlanRewrite extends Rebuild {
  /** Marks error contexts that lie in text of ours, not in the user's (ERR-3). */
  static final String OBJECT_TYPE = "SQE";

  private final ParserInterface parser;
  private final Map<Long, PlanHandle> plans; // by number
  private final Map<TreeNode<?>, LogicalPlan> exchanged = new IdentityHashMap<>();
  private final Set<TreeNode<?>> travels = identities(); // nodes whose time travel goes with them
  private final Set<TreeNode<?>> absent = identities(); // names of tables that were not there when it was decided

  public PlanRewrite(ParserInterface parser, Map<Long, PlanHandle> plans) {
    this.parser = parser;
    this.plans = plans;
  }

  private static Set<TreeNode<?>> identities() {
    return Collections.newSetFromMap(new IdentityHashMap<>());
  }

  public LogicalPlan rewrite(PlanHandle handle, JsonNode replacements) throws Exception {
    // A command of Iceberg is named by itself and by nothing below it; everything else once.
    Set<Integer> replaced = new HashSet<>();
    for (JsonNode request : replacements) {
      int index = request.get("index").asInt(-1);
      if (index < 0 || index >= handle.relations().size())
        throw new BridgeException("SQE_NO_SUCH_RELATION", "index " + index);
      if (!replaced.add(index)) throw new BridgeException("SQE_REPLACED_TWICE", "index " + index);
      PlanWalk.Relation relation = handle.relations().get(index);
      exchanged.put(relation.node(), replacement(relation, request));
    }
    return apply(handle.plan());
  }

  protected TreeNode<?> exchange(TreeNode<?> node) {
    return exchanged.get(node);
  }

  protected TreeNode<?> finish(TreeNode<?> before, TreeNode<?> after) {
    // The clause stands inside the secured text, on the raw table (NAME-5).
    if (before instanceof RelationTimeTravel travel && travels.contains(travel.relation()))
      return ((RelationTimeTravel) after).relation();
    return before instanceof V2CreateTablePlan create && absent.contains(create.name()) ? created(after) : after;
  }

  /**
   * OR REPLACE where nothing is: a table that somebody makes meanwhile is not replaced, which nobody decided on. IF NOT
   * EXISTS where nothing is: who made it, and whether its rows were written, is not to be guessed afterwards.
   */
  private static TreeNode<?> created(TreeNode<?> plan) {
    if (plan instanceof ReplaceTableAsSelect made && made.orCreate())
      return new CreateTableAsSelect(
          made.name(), made.partitioning(), made.query(), made.tableSpec(), made.writeOptions(), false, false);
    if (plan instanceof ReplaceTable made && made.orCreate())
      return new CreateTable(made.name(), made.columns(), made.partitioning(), made.tableSpec(), false);
    if (plan instanceof CreateTableAsSelect made)
      return new CreateTableAsSelect(
          made.name(), made.partitioning(), made.query(), made.tableSpec(), made.writeOptions(), false, false);
    if (plan instanceof CreateTable made)
      return new CreateTable(made.name(), made.columns(), made.partitioning(), made.tableSpec(), false);
    return plan;
  }

  private LogicalPlan replacement(PlanWalk.Relation relation, JsonNode request) throws Exception {
    String kind = request.get("kind").asText();
    List<String> name = Json.texts(request.get("name"));
    if (kind.equals("target")) {
      if (request.get("absent").asBoolean()) absent.add(relation.node());
      return renamed(relation, Json.texts(request.get("parts")), name);
    }
    if (!(relation.node() instanceof UnresolvedRelation))
      throw new BridgeException("SQE_CANNOT_REWRITE", "a " + relation.kind() + " is no relation to read");
    travels.add(relation.node());
    JsonNode restriction = request.get("restriction");
    if (restriction != null)
      return Secured.cover(new Restricted(restriction, plans).over(relation(request)), name);
    if (kind.equals("sql")) return Secured.cover(parse(request.get("sql").asText()), name);
    if (kind.equals("plan")) return Secured.cover(inlined(request), name);
    if (kind.equals("rows")) return Secured.cover(rows(Base64.getDecoder().decode(request.get("rows").asText())), name);
    if (kind.equals("spool")) return Secured.cover(SpoolTable.relation(request), name);
    throw new BridgeException("SQE_BAD_REQUEST", "replacement " + kind);
  }

  /** What a policy restricts: a table, or the plan of a view. */
  public LogicalPlan relation(JsonNode request) throws Exception {
    if (request.get("kind").asText().equals("plan")) return inlined(request);
    if (!(parse(request.get("sql").asText()) instanceof Project everything))
      throw new BridgeException("SQE_BAD_REQUEST", "no table");
    return everything.child();
  }

  private LogicalPlan parse(String sql) throws Exception {
    return ours(() -> parser.parsePlan(sql));
  }

  /** Parses what is not in the user's text. */
  public static <T> T ours(Callable<T> body) throws Exception {
    Option<Object> none = Option.empty();
    Option<String> unknown = Option.empty();
    Option<String> type = Option.apply(OBJECT_TYPE);
    Origin before = CurrentOrigin.get();
    CurrentOrigin.set(
        new Origin(
            none, none, none, none, unknown, type, Option.apply("secured"), Option.empty(), Option.empty(), Option.empty()));
    try {
      return body.call();
    } finally {
      CurrentOrigin.set(before);
    }
  }

  private LogicalPlan inlined(JsonNode request) {
    LogicalPlan plan = PlanHandle.find(plans, request.get("plan").asLong()).plan();
    JsonNode columns = request.get("columns");
    if (columns == null || columns.isNull()) return plan;
    List<NamedExpression> list = new ArrayList<>();
    for (JsonNode each : columns) list.add(alias(new UnresolvedAttribute(Trees.seq(each.get(0).asText())), each.get(1).asText()));
    return new Project(Trees.seq(list), plan);
  }

  public static Alias alias(Expression expression, String name) {
    return new Alias(expression, name, NamedExpression.newExprId(), Trees.seq(), Option.empty(), Trees.seq());
  }

  private static LogicalPlan rows(byte[] arrow) throws Exception {
    var stream = ArrowConverters$.MODULE$.fromIPCStream(arrow);
    List<InternalRow> rows = new ArrayList<>();
    try (CloseableIterator<InternalRow> each = stream._1()) {
      UnsafeProjection projection = UnsafeProjection.create(stream._2());
      while (each.hasNext()) rows.add(projection.apply(each.next()).copy());
    }
    List<AttributeReference> columns = Trees.list(DataTypeUtils$.MODULE$.toAttributes(stream._2()));
    return new LocalRelation(Trees.<Attribute>seq(columns), Trees.seq(rows), false, Option.empty());
  }

  private static LogicalPlan renamed(PlanWalk.Relation relation, List<String> parts, List<String> visibleName) {
    LogicalPlan node = relation.node();
    if (node instanceof UnresolvedFunctionName || !hasPartsFirst(node))
      throw new BridgeException("SQE_CANNOT_REWRITE", "the name of a " + Trees.simpleName(node));
    LogicalPlan renamed = Trees.with(node, 0, Trees.seq(parts));
    boolean covered = !relation.aliased() && PlanWalk.isRowLevelTarget(relation.holder(), relation.field());
    return covered ? Secured.cover(renamed, visibleName) : renamed;
  }

  private static boolean hasPartsFirst(LogicalPlan node) {
    String field = node.productArity() == 0 ? "" : node.productElementName(0);
    return PlanWalk.isIcebergCommand(node)
        || (Trees.simpleName(node).startsWith("Unresolved") && (field.equals("multipartIdentifier") || field.equals("nameParts")));
  }
}
