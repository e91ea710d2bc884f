package sqe.bridge.plan;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.analysis.RelationTimeTravel;
import org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute;
import org.apache.spark.sql.catalyst.analysis.UnresolvedFunctionName;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.catalyst.plans.logical.CreateTable;
import org.apache.spark.sql.catalyst.plans.logical.CreateTableAsSelect;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.ReplaceTable;
import org.apache.spark.sql.catalyst.plans.logical.ReplaceTableAsSelect;
import org.apache.spark.sql.catalyst.trees.CurrentOrigin;
import org.apache.spark.sql.catalyst.trees.Origin;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.catalyst.types.DataTypeUtils$;
import org.apache.spark.sql.execution.arrow.ArrowConverters$;
import org.apache.spark.sql.types.StructType;
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
  private final Map plans; // id -> PlanHandle
  private final IdentityHashMap exchanged = new IdentityHashMap(); // node -> its replacement
  private final IdentityHashMap travels = new IdentityHashMap(); // nodes whose time travel goes with them
  private final IdentityHashMap absent = new IdentityHashMap(); // names of tables that were not there when it was decided

  public PlanRewrite(ParserInterface parser, Map plans) {
    this.parser = parser;
    this.plans = plans;
  }

  public LogicalPlan rewrite(PlanHandle handle, JsonNode replacements) throws Exception {
    // A command of Iceberg is named by itself and by nothing below it; everything else once.
    Map byIndex = new HashMap();
    for (JsonNode request : replacements) {
      int index = request.get("index").asInt(-1);
      if (index < 0 || index >= handle.relations.size())
        throw new BridgeException("SQE_NO_SUCH_RELATION", "index " + index);
      if (byIndex.put(Integer.valueOf(index), request) != null)
        throw new BridgeException("SQE_REPLACED_TWICE", "index " + index);
      PlanWalk.Relation relation = handle.relations.get(index);
      exchanged.put(relation.node(), replacement(relation, request));
    }
    return apply(handle.plan);
  }

  protected TreeNode exchange(TreeNode node) {
    return (TreeNode) exchanged.get(node);
  }

  protected TreeNode finish(TreeNode before, TreeNode after) {
    // The clause stands inside the secured text, on the raw table (NAME-5).
    if (before instanceof RelationTimeTravel travel && travels.containsKey(travel.relation()))
      return ((RelationTimeTravel) after).relation();
    if (before instanceof ReplaceTableAsSelect select && absent.containsKey(select.name()))
      return created((ReplaceTableAsSelect) after);
    if (before instanceof ReplaceTable table && absent.containsKey(table.name()))
      return created((ReplaceTable) after);
    if (before instanceof CreateTableAsSelect query && absent.containsKey(query.name()))
      return created((CreateTableAsSelect) after);
    if (before instanceof CreateTable create && absent.containsKey(create.name()))
      return created((CreateTable) after);
    return after;
  }

  /** OR REPLACE where nothing is: a table that somebody makes meanwhile is not replaced, which nobody decided on. */
  private static LogicalPlan created(ReplaceTableAsSelect plan) {
    if (!plan.orCreate()) return plan;
    return new CreateTableAsSelect(
        plan.name(), plan.partitioning(), plan.query(), plan.tableSpec(), plan.writeOptions(), false, false);
  }

  private static LogicalPlan created(ReplaceTable plan) {
    if (!plan.orCreate()) return plan;
    return new CreateTable(plan.name(), plan.columns(), plan.partitioning(), plan.tableSpec(), false);
  }

  /** IF NOT EXISTS where nothing is: who made it, and whether its rows were written, is not to be guessed afterwards. */
  private static LogicalPlan created(CreateTableAsSelect plan) {
    return new CreateTableAsSelect(
        plan.name(), plan.partitioning(), plan.query(), plan.tableSpec(), plan.writeOptions(), false, false);
  }

  private static LogicalPlan created(CreateTable plan) {
    return new CreateTable(plan.name(), plan.columns(), plan.partitioning(), plan.tableSpec(), false);
  }

  private LogicalPlan replacement(PlanWalk.Relation relation, JsonNode request) throws Exception {
    String kind = request.get("kind").asText();
    List name = Json.texts(request.get("name"));
    if (kind.equals("target")) {
      if (request.get("absent").asBoolean()) absent.put(relation.node(), Boolean.TRUE);
      return renamed(relation, Json.texts(request.get("parts")), name);
    }
    if (!(relation.node() instanceof UnresolvedRelation))
      throw new BridgeException("SQE_CANNOT_REWRITE", "a " + relation.kind() + " is no relation to read");
    travels.put(relation.node(), Boolean.TRUE);
    if (request.has("restriction")) return Secured.cover(restricted(request), name);
    if (kind.equals("sql")) return Secured.cover(parse(request.get("sql").asText()), name);
    if (kind.equals("plan")) return Secured.cover(inlined(request), name);
    if (kind.equals("rows")) return Secured.cover(rows(Base64.getDecoder().decode(request.get("rows").asText())), name);
    if (kind.equals("spool")) return Secured.cover(SpoolTable.relation(request), name);
    throw new BridgeException("SQE_BAD_REQUEST", "replacement " + kind);
  }

  private LogicalPlan restricted(JsonNode request) throws Exception {
    JsonNode restriction = request.get("restriction");
    return new Restricted(restriction).over(relation(request), restriction, plans);
  }

  /** What a policy restricts: a table, or the plan of a view. */
  public LogicalPlan relation(JsonNode request) throws Exception {
    if (request.get("kind").asText().equals("plan")) return inlined(request);
    LogicalPlan everything = parse(request.get("sql").asText());
    if (!(everything instanceof Project) || Trees.list(everything.children()).size() != 1)
      throw new BridgeException("SQE_BAD_REQUEST", "no table");
    return Trees.first(everything.children());
  }

  private LogicalPlan parse(String sql) throws Exception {
    Origin before = CurrentOrigin.get();
    CurrentOrigin.set(ours());
    try {
      return parser.parsePlan(sql);
    } finally {
      CurrentOrigin.set(before);
    }
  }

  /** The origin of what is not in the user's text. */
  public static Origin ours() {
    Option none = Option.empty();
    return new Origin(none, none, none, none, none, Option.apply(OBJECT_TYPE), Option.apply("secured"), none, none, none);
  }

  private LogicalPlan inlined(JsonNode request) {
    PlanHandle handle = (PlanHandle) plans.get(Long.valueOf(request.get("plan").asLong()));
    if (handle == null) throw new BridgeException("SQE_NO_SUCH_PLAN", "an inlined plan");
    JsonNode columns = request.get("columns");
    if (columns == null || columns.isNull()) return handle.plan;
    List list = new ArrayList();
    for (var each : columns) {
      UnresolvedAttribute column = new UnresolvedAttribute(Trees.seq(each.get(0).asText()));
      list.add(alias(column, each.get(1).asText()));
    }
    return new Project(Trees.seq(list), handle.plan);
  }

  public static Alias alias(org.apache.spark.sql.catalyst.expressions.Expression expression, String name) {
    scala.collection.immutable.Seq none = Trees.seq(new ArrayList());
    return new Alias(
        expression, name, org.apache.spark.sql.catalyst.expressions.NamedExpression.newExprId(), none, Option.empty(), none);
  }

  private static LogicalPlan rows(byte[] arrow) throws Exception {
    scala.Tuple2 stream = ArrowConverters$.MODULE$.fromIPCStream(arrow);
    CloseableIterator each = (CloseableIterator) stream._1();
    StructType schema = (StructType) stream._2();
    List rows = new ArrayList();
    try {
      UnsafeProjection projection = UnsafeProjection.create(schema);
      while (each.hasNext()) rows.add(projection.apply((InternalRow) each.next()).copy());
    } finally {
      each.close();
    }
    return new LocalRelation(Trees.seq(new ArrayList<Attribute>(Trees.list(DataTypeUtils$.MODULE$.toAttributes(schema)))), Trees.seq(rows), false, Option.empty());
  }

  private static LogicalPlan renamed(PlanWalk.Relation relation, List parts, List visibleName) {
    LogicalPlan node = relation.node();
    if (node instanceof UnresolvedFunctionName || !hasPartsFirst(node))
      throw new BridgeException("SQE_CANNOT_REWRITE", "the name of a " + Trees.simpleName(node));
    Object[] fields = new Object[node.productArity()];
    for (int i = 0; i < fields.length; i++) fields[i] = node.productElement(i);
    fields[0] = Trees.seq(parts);
    LogicalPlan renamed = node.makeCopy(fields);
    if (!relation.aliased() && PlanWalk.isRowLevelTarget(relation.holder(), relation.field()))
      return Secured.cover(renamed, visibleName);
    return renamed;
  }

  private static boolean hasPartsFirst(LogicalPlan node) {
    String field = node.productArity() == 0 ? "" : node.productElementName(0);
    return PlanWalk.isIcebergCommand(node)
        || (Trees.simpleName(node).startsWith("Unresolved") && (field.equals("multipartIdentifier") || field.equals("nameParts")));
  }
}
