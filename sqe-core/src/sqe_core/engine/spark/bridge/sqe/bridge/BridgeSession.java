package sqe.bridge;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.iceberg.common.DynFields;
import org.apache.iceberg.catalog.Namespace;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.catalyst.plans.logical.Command;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.WithCTE;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.CatalogManager;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.apache.spark.sql.execution.CommandExecutionMode;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import sqe.bridge.catalog.Catalogs;
import sqe.bridge.catalog.Maintenance;
import sqe.bridge.catalog.SqeCatalog;
import sqe.bridge.catalog.TableScope;
import sqe.bridge.exec.Work;
import sqe.bridge.plan.Constant;
import sqe.bridge.plan.Divisible;
import sqe.bridge.plan.Explain;
import sqe.bridge.plan.Lineage;
import sqe.bridge.plan.Markers;
import sqe.bridge.plan.Parameters;
import sqe.bridge.plan.PlanHandle;
import sqe.bridge.plan.PlanRewrite;
import sqe.bridge.plan.PlanWalk;
import sqe.bridge.plan.Stars;
import sqe.bridge.secure.Judged;
import sqe.bridge.secure.PolicyZones;
import sqe.bridge.secure.PolicyExpressions;
import sqe.bridge.secure.SafeCopies;
import sqe.bridge.secure.VisibleRows;
import sqe.bridge.secure.WriteCheck;
import sqe.bridge.types.ArrowTypes;
import sqe.bridge.types.IcebergTypes;
import sqe.bridge.types.Output;
import sqe.bridge.types.WriteCasts;

/**
 * One isolated session. Python calls one method for each step and gets JSON back: a round trip costs more than most of
 * the work. Plans stay here and Python knows their numbers.
 */
public final class BridgeSession {
  private static final long PARSE_MILLIS = 60000;
  private static final long MAINTAIN_MILLIS = 24L * 3600 * 1000; // the statement's own deadline ends it before
  private static final long ANALYSE_MILLIS = 24L * 3600 * 1000; // the statement's own timeout cancels by tag
  private static final String CATALOG_PREFIX = "spark.sql.catalog.";
  private static final String EXACT_WRITES = "sqe.exact.writes"; // engine/port.py
  private static final DynFields.UnboundField<scala.collection.mutable.HashMap<String, CatalogPlugin>> LOADED =
      DynFields.builder().hiddenImpl(CatalogManager.class, "catalogs").build();

  private final SparkSession session;
  private final TableScope scope = new TableScope();
  private final Map<Long, PlanHandle> plans = new ConcurrentHashMap<>();
  private final AtomicLong lastPlan = new AtomicLong();
  private final List<String> aliases = new ArrayList<>();
  private Map<String, String> expected = new HashMap<>(); // the session's whole conf, as we left it
  private final Map<String, Integer> overlaid = new HashMap<>(); // how many running statements have set an option
  private volatile boolean abandoned;

  private BridgeSession(SparkSession session) {
    this.session = session;
  }

  /** Takes a new session, which has the pinned settings from the context's (CONF-1). */
  public static BridgeSession open(SparkSession session) {
    BridgeSession opened = new BridgeSession(session);
    opened.remember();
    return opened;
  }

  public SparkSession spark() {
    return session;
  }

  public LogicalPlan plan(long id) {
    return PlanHandle.find(plans, id).plan();
  }

  /** A thread did not end after a cancel. */
  public void abandon() {
    abandoned = true;
  }

  /** Whether a thread got lost in this session, which must not be used again then. */
  public boolean isAbandoned() {
    return abandoned;
  }

  // ------------------------------------------------------------------ plans

  /**
   * What a step of planning gives; the description is written in the same thread, which has the stack for it. A parsed plan
   * has no execution, and no columns: as SQL sees them, before what Arrow cannot carry became text.
   */
  private record Outcome(LogicalPlan plan, QueryExecution execution, StructType columns, PlanWalk walk, byte[] schema, byte[] parameters) {
    static Outcome parsed(LogicalPlan plan) {
      return new Outcome(plan, null, null, PlanWalk.over(plan, false), null, null);
    }

    static Outcome analysed(QueryExecution execution, StructType columns) throws Exception {
      LogicalPlan plan = execution.analyzed();
      PlanWalk walk = PlanWalk.over(plan, true);
      byte[] parameters = walk.hasMarkers() ? Output.arrowSchema(Markers.types(plan)) : null;
      return new Outcome(plan, execution, columns, walk, Output.arrowSchema(ArrowTypes.columns(plan)), parameters);
    }
  }

  /** `released` lists plans that Python forgot since the last call. */
  public String parse(String sql, String parameters, String released) throws Throwable {
    for (JsonNode forgotten : Json.read(released)) plans.remove(forgotten.asLong());
    JsonNode values = Json.read(parameters);
    return answer(null, planned(() -> new Parameters(parser(), values).apply(parser().parsePlan(sql))));
  }

  public String rewrite(long id, String replacements) throws Throwable {
    JsonNode requests = Json.read(replacements);
    return answer(null, planned(() -> new PlanRewrite(parser(), plans).rewrite(PlanHandle.find(plans, id), requests)));
  }

  /** Parses an expression of a policy; `facts` are what it may ask about who sent the statement. */
  public String expression(String sql, String parameters, String facts) throws Throwable {
    JsonNode values = Json.read(parameters);
    JsonNode known = Json.read(facts);
    return answer(null, planned(() -> PolicyExpressions.parse(parser(), sql, values, known)));
  }

  /** The parts of a policy's condition that all have to hold, as expressions of their own. */
  public String conjuncts(long id) throws Throwable {
    return run(
        null,
        PARSE_MILLIS,
        () -> {
          StringBuilder out = new StringBuilder();
          Json.array(out, PolicyExpressions.conjuncts(plan(id)), part -> out.append(answer(null, Outcome.parsed(part))));
          return out.toString();
        });
  }

  /** What a relation's columns are, and what expressions of a policy over it are once analysed. */
  public String judge(String request, String tag) throws Throwable {
    JsonNode asked = Json.read(request);
    return run(
        tag,
        ANALYSE_MILLIS,
        () -> {
          LogicalPlan relation = new PlanRewrite(parser(), plans).relation(asked);
          return Judged.json(this, relation, asked.get("marker").asText(), asked.get("expressions"), plans);
        });
  }

  /**
   * Resolves names and types. Nothing is executed: the mode of the execution says so. `target` is what a policy says of
   * what the statement writes to: `check` what has to hold for written rows, `rows` which of its rows can be changed.
   */
  public String analyse(long id, String tag, String settings, String target) throws Throwable {
    JsonNode written = Json.read(target);
    Map<String, String> overlay = Json.textMap(Json.read(settings));
    Outcome outcome =
        run(
            tag,
            ANALYSE_MILLIS,
            () -> {
              overlay(overlay);
              try {
                return analysed(plan(id), written);
              } finally {
                restore(overlay);
              }
            });
    return answer(tag, outcome);
  }

  private ParserInterface parser() {
    return session.sessionState().sqlParser();
  }

  private Outcome planned(Callable<LogicalPlan> body) throws Throwable {
    return run(null, PARSE_MILLIS, () -> Outcome.parsed(body.call()));
  }

  private Outcome analysed(LogicalPlan unbounded, JsonNode target) throws Exception {
    LogicalPlan parsed = Stars.bounded(unbounded);
    QueryExecution execution =
        target.hasNonNull("rows") ? visibleRows(parsed, target.get("rows")) : resolved(parsed);
    LogicalPlan zoned = PolicyZones.within(execution.analyzed());
    if (zoned != execution.analyzed()) execution = resolved(zoned);
    Stars.check(execution.analyzed());
    StructType columns = execution.analyzed().schema();
    if (!isCommand(execution.analyzed())) {
      LogicalPlan fit = Output.withTransportableColumns(execution.analyzed());
      if (fit != null) execution = resolved(fit);
      LogicalPlan pruned = SafeCopies.within(execution.analyzed());
      if (pruned != execution.analyzed()) execution = resolved(pruned);
    }
    if (target.hasNonNull("check"))
      execution = resolved(WriteCheck.above(execution.analyzed(), target.get("check"), plans));
    LogicalPlan plan = execution.analyzed();
    if (isCommand(plan) && session.sessionState().conf().contains(EXACT_WRITES)) WriteCasts.check(plan);
    return Outcome.analysed(execution, columns);
  }

  private QueryExecution visibleRows(LogicalPlan parsed, JsonNode rows) throws Exception {
    VisibleRows.refusePlaces(parsed);
    // Not checked yet: the condition beside the query may be one that Spark does not take there.
    LogicalPlan changed = VisibleRows.within(session.sessionState().analyzer().execute(parsed), rows, plans);
    if (changed == null) {
      resolved(parsed); // says what is wrong with the statement
      throw new BridgeException("SQE_CANNOT_SECURE", "no rows are changed");
    }
    LogicalPlan secured = resolved(changed).analyzed();
    // The policy is copied as it was decided, before conditions of the statement stand beside it.
    LogicalPlan conditioned = VisibleRows.withCondition(secured, rows.get("marker").asText());
    return resolved(SafeCopies.within(conditioned));
  }

  public QueryExecution resolved(LogicalPlan plan) {
    QueryExecution execution = session.sessionState().executePlan(plan, CommandExecutionMode.SKIP());
    execution.assertAnalyzed();
    return execution;
  }

  public static boolean isCommand(LogicalPlan plan) {
    return plan instanceof WithCTE with ? isCommand(with.plan()) : plan instanceof Command;
  }

  private String answer(String tag, Outcome outcome) {
    long id = lastPlan.incrementAndGet();
    plans.put(id, new PlanHandle(outcome.plan, outcome.execution, tag, outcome.walk.relations));
    StringBuilder out = new StringBuilder("{");
    Json.member(out, "plan").append(id);
    if (outcome.execution != null) {
      boolean command = isCommand(outcome.plan);
      List<StructField> columns = List.of(outcome.columns.fields());
      Json.member(out, "is_command").append(command);
      Json.member(out, "divisible").append(!command && Divisible.is(outcome.plan));
      Json.member(out, "constant").append(!command && Constant.is(outcome.plan));
      Json.array(Json.member(out, "column_types"), columns, each -> Json.string(out, IcebergTypes.text(each.dataType())));
      Json.member(out, "schema", Base64.getEncoder().encodeToString(outcome.schema));
      if (outcome.parameters != null)
        Json.member(out, "parameters", Base64.getEncoder().encodeToString(outcome.parameters));
    }
    Json.member(out, "description").append(outcome.walk.json());
    return out.append('}').toString();
  }

  // ------------------------------------------------------------------ explain, lineage

  public String explain(long id) throws Throwable {
    PlanHandle handle = PlanHandle.find(plans, id);
    return run(handle.tag(), ANALYSE_MILLIS, () -> Explain.json(handle.execution(), aliases));
  }

  public String lineage(long id) throws Throwable {
    return run(null, PARSE_MILLIS, () -> Lineage.json(plan(id)));
  }

  private <T> T run(String tag, long limitMillis, Callable<T> body) throws Throwable {
    return Work.call(this, tag, limitMillis, body);
  }

  // ------------------------------------------------------------------ settings

  /** Sets options for one statement. */
  public synchronized void overlay(Map<String, String> settings) {
    SQLConf conf = session.sessionState().conf();
    settings.forEach(
        (name, value) -> {
          overlaid.merge(name, 1, Integer::sum);
          conf.setConfString(name, value);
        });
  }

  /** A statement that was cancelled may still unwind while the next one runs, so the last one of an option puts it back. */
  public synchronized void restore(Map<String, String> settings) {
    SQLConf conf = session.sessionState().conf();
    for (String name : settings.keySet()) {
      if (overlaid.computeIfPresent(name, (each, count) -> count == 1 ? null : count - 1) != null) continue;
      String usual = expected.get(name);
      if (usual == null) conf.unsetConf(name);
      else conf.setConfString(name, usual);
    }
  }

  /** The settings as they are now are those to compare with. */
  public synchronized void remember() {
    Map<String, String> now = settings();
    for (String name : overlaid.keySet()) {
      if (expected.containsKey(name)) now.put(name, expected.get(name));
      else now.remove(name);
    }
    expected = now;
  }

  private Map<String, String> settings() {
    Map<String, String> settings = session.sessionState().conf().settings();
    synchronized (settings) {
      return new HashMap<>(settings);
    }
  }

  /** Whether the session's whole conf, catalogs included, is as we left it (CONF-1). */
  public synchronized boolean checkSettings() {
    Map<String, String> now = settings();
    if (overlaid.isEmpty()) return now.equals(expected);
    Map<String, String> usual = new HashMap<>(expected);
    now.keySet().removeAll(overlaid.keySet());
    usual.keySet().removeAll(overlaid.keySet());
    return now.equals(usual);
  }

  // ------------------------------------------------------------------ catalogs

  public void mount(String alias, String properties) {
    TableScope.register(alias, scope);
    SQLConf conf = session.sessionState().conf();
    String prefix = CATALOG_PREFIX + alias;
    Map<String, String> given = Json.textMap(Json.read(properties));
    // Iceberg refuses this one for a catalog that is wrapped, and tables are not purged through Spark.
    given.remove("rest-catalog-purge");
    given.forEach((name, value) -> conf.setConfString(prefix + "." + name, value));
    // Iceberg's cache would show other people's commits never, as long as a session keeps reading (iceberg#2319).
    conf.setConfString(prefix + ".cache-enabled", "false");
    conf.setConfString(prefix, SqeCatalog.class.getName());
    aliases.add(alias);
    remember();
  }

  public void unmount(String alias) {
    SQLConf conf = session.sessionState().conf();
    String prefix = CATALOG_PREFIX + alias;
    for (String key : settings().keySet())
      if (key.equals(prefix) || key.startsWith(prefix + ".")) conf.unsetConf(key);
    // Unsetting alone leaves a loaded catalog usable. Only this one is dropped: others would have to log in again.
    CatalogManager manager = session.sessionState().catalogManager();
    CatalogPlugin loaded;
    synchronized (manager) {
      loaded = LOADED.get(manager).remove(alias).getOrElse(() -> null);
    }
    if (loaded instanceof SqeCatalog catalog) Catalogs.close(catalog.icebergCatalog());
    TableScope.forget(alias);
    aliases.remove(alias);
    remember();
  }

  /** The metadata of a mounted catalog; loads the catalog when it is the first use. */
  public Catalogs catalog(String alias) throws Throwable {
    return run(
        null,
        PARSE_MILLIS,
        () -> new Catalogs((SqeCatalog) session.sessionState().catalogManager().catalog(alias)));
  }

  /** Maintains a table with Iceberg's own actions, which run jobs under the statement's tag. */
  public void maintain(String alias, String namespace, String name, String action, String options, String tag) throws Throwable {
    Map<String, String> given = Json.textMap(Json.read(options));
    TableIdentifier identifier = TableIdentifier.of(Namespace.of(Json.textArray(Json.read(namespace))), name);
    run(
        tag,
        MAINTAIN_MILLIS,
        () -> {
          SqeCatalog catalog = (SqeCatalog) session.sessionState().catalogManager().catalog(alias);
          Maintenance.run(session, catalog.icebergCatalog().loadTable(identifier), action, given);
          return null;
        });
  }

  public void enterScope() {
    scope.enter();
  }

  public void exitScope() {
    scope.exit();
  }

  public void close() {
    List.copyOf(aliases).forEach(this::unmount);
    plans.clear();
  }
}
