package sqe.bridge;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.UndeclaredThrowableException;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import java.util.regex.Pattern;
import org.apache.commons.lang3.exception.ExceptionUtils;
import org.apache.spark.QueryContext;
import org.apache.spark.SparkException;
import org.apache.spark.SparkThrowable;
import org.apache.spark.sql.AnalysisException;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.trees.SQLQueryContext;
import sqe.bridge.plan.Trees;

/** Describes an exception as JSON. Its text goes to the server's log only (ERR-1), its parts to `query.errors`. */
public final class Failures {
  private static final int MAX_RAW = 20000;

  // No exception of these comes from a value of a table or of a statement (OBS-2), as java.net.URISyntaxException does.
  private static final Pattern OF_SERVICES =
      Pattern.compile(
          "software\\.amazon\\.awssdk\\.(?!thirdparty)|org\\.apache\\.(?:hadoop\\.hive\\.metastore|thrift)\\.|java\\.sql\\."
              + "|javax\\.net\\.ssl\\.|java\\.net\\.(?:Connect|UnknownHost|NoRouteToHost|SocketTimeout|Socket)Exception$"
              + "|org\\.apache\\.iceberg\\.hive\\.RuntimeMetaException$");

  // As it begins: what a failed task says may end in a user's words, and is in the job's text.
  private static final Pattern TOO_BIG_TO_COLLECT =
      Pattern.compile(
          "(?:Job aborted due to stage failure: )?Total size of serialized results of \\d+ tasks \\([^()]*\\)"
              + " is bigger than spark\\.driver\\.maxResultSize\\b");

  private Failures() {}

  public static String describe(Throwable thrown) {
    List<Throwable> chain = ExceptionUtils.getThrowableList(thrown);
    Throwable told = telling(chain);
    StringBuilder out = new StringBuilder("{");
    Json.member(out, "condition", condition(told));
    if (told instanceof SparkThrowable throwable) spark(out, throwable);
    if (told instanceof BridgeException exception) Json.map(Json.member(out, "parameters"), exception.parameters);
    if (told instanceof ParseException parsing) parsePosition(out, parsing);
    Json.array(Json.member(out, "causes"), chain, each -> Json.string(out, cause(each)));
    Json.member(out, "raw", raw(chain));
    return out.append('}').toString();
  }

  /** What an operator may read of it: its class and place; the text of a service or of its client, which knows no rows. */
  private static String cause(Throwable thrown) {
    String name = thrown.getClass().getName();
    if (OF_SERVICES.matcher(name).lookingAt()) return name + ": " + thrown.getMessage();
    StackTraceElement[] stack = thrown.getStackTrace();
    return stack.length == 0 ? name : name + " at " + stack[0];
  }

  /**
   * The exception of the chain that says most. Wrappers speak of jobs and stages, or of an internal error, and the reason
   * is below; above a reason that is Spark's own, nothing counts.
   */
  private static Throwable telling(List<Throwable> chain) {
    for (Throwable each : chain) if (isOwn(each)) return each;
    for (Throwable each : chain) {
      if (each instanceof Error || each instanceof InterruptedException) return each;
      if (each instanceof SparkThrowable throwable && condition(each) != null && !isWrapper(throwable)) return each;
    }
    for (Throwable each : chain) if (each.getClass().getName().startsWith("org.apache.iceberg.")) return each;
    for (Throwable each : chain) {
      boolean wrapper =
          each instanceof SparkThrowable
              || each.getClass() == RuntimeException.class && each != chain.get(chain.size() - 1)
              || each instanceof InvocationTargetException
              || each instanceof UndeclaredThrowableException
              || each instanceof ExecutionException;
      if (!wrapper) return each;
    }
    Throwable told = chain.get(0);
    for (Throwable each : chain) if (each instanceof SparkThrowable spark && spark.getCondition() != null) told = each;
    return told;
  }

  private static boolean isOwn(Throwable thrown) {
    return thrown instanceof BridgeException || thrown instanceof CancelledException || isTooBigToCollect(thrown);
  }

  /** Of what has to come to the driver as a whole, which Spark gives no condition. */
  private static boolean isTooBigToCollect(Throwable thrown) {
    return thrown instanceof SparkException spark
        && spark.getCondition() == null
        && TOO_BIG_TO_COLLECT.matcher(String.valueOf(spark.getMessage())).lookingAt();
  }

  private static boolean isWrapper(SparkThrowable thrown) {
    String condition = thrown.getCondition();
    // Spark's scheduler throws some without any.
    return condition == null
        || condition.equals("FAILED_EXECUTE_UDF")
        || condition.equals("TASK_WRITE_FAILED")
        || condition.startsWith("FAILED_READ_FILE")
        || condition.startsWith("INTERNAL_ERROR")
        || condition.startsWith("_LEGACY_ERROR");
  }

  /** Whether one of the causes has one of these conditions. */
  public static boolean has(Throwable thrown, Set<String> conditions) {
    return ExceptionUtils.stream(thrown).anyMatch(each -> conditions.contains(condition(each)));
  }

  private static String condition(Throwable thrown) {
    if (thrown instanceof CancelledException) return "SQE_CANCELLED";
    if (thrown instanceof BridgeException exception) return exception.condition;
    if (isTooBigToCollect(thrown)) return "SQE_TOO_BIG_TO_COLLECT";
    String condition = thrown instanceof SparkThrowable spark ? spark.getCondition() : null;
    return condition == null ? Trees.simpleName(thrown) : condition;
  }

  private static void spark(StringBuilder out, SparkThrowable thrown) {
    try {
      Json.member(out, "sql_state", thrown.getSqlState());
      Map<String, String> parameters = thrown.getMessageParameters();
      if (parameters != null) Json.map(Json.member(out, "parameters"), parameters);
      QueryContext[] contexts = thrown.getQueryContext();
      if (contexts == null || contexts.length == 0) return;
      QueryContext context = contexts[0];
      Json.member(out, "object_type", context.objectType());
      if (!(context instanceof SQLQueryContext place) || place.sqlText().isEmpty()) return;
      String text = place.sqlText().get();
      Json.member(out, "text", text);
      Json.member(out, "fragment", fragment(text, context.startIndex(), context.stopIndex()));
      Json.member(out, "start").append(context.startIndex());
    } catch (RuntimeException unsupported) {
      // Some exceptions throw when asked for parts that they do not have.
    }
  }

  /** Spark cuts its own fragment by UTF-16 units although the places count code points. */
  private static String fragment(String text, int start, int stop) {
    int length = text.codePointCount(0, text.length());
    if (start < 0 || stop < start || stop >= length) return null;
    return text.substring(text.offsetByCodePoints(0, start), text.offsetByCodePoints(0, stop + 1));
  }

  /** A syntax error has a line and a column; the offset in the text counts code points, as all offsets do. */
  private static void parsePosition(StringBuilder out, ParseException thrown) {
    if (!thrown.line().isDefined() || !thrown.startPosition().isDefined()) return;
    Json.member(out, "line").append(thrown.line().get());
    Json.member(out, "column").append(thrown.startPosition().get());
    if (thrown.command().isDefined()) Json.member(out, "command", thrown.command().get());
  }

  private static String raw(List<Throwable> chain) {
    StringBuilder text = new StringBuilder();
    for (Throwable thrown : chain) {
      if (text.length() > 0) text.append("\ncaused by ");
      text.append(thrown.getClass().getName()).append(": ");
      // The message of an AnalysisException ends with the whole plan.
      text.append(thrown instanceof AnalysisException analysis ? analysis.getSimpleMessage() : thrown.getMessage());
      for (StackTraceElement each : Arrays.stream(thrown.getStackTrace()).limit(25).toList()) text.append("\n  at ").append(each);
    }
    return text.length() > MAX_RAW ? text.substring(0, MAX_RAW) : text.toString();
  }
}
