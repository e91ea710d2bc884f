package sqe.bridge.exec;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.*;
import org.apache.spark.sql.types.StructType;
import scala.Enumeration;
import scala.Function0;
import scala.Option;
import sqe.bridge.BridgeSession;
import sqe.bridge.CancelledException;
import sqe.bridge.Failures;
import sqe.bridge.Json;
import sqe.bridge.plan.Constant;
import sqe.bridge.stream.StreamBatch;
import sqe.bridge.stream.StreamEncoder;
import sqe.bridge.stream.StreamFormat;
import sqe.bridge.stream.StreamHub;
import sqe.bridge.stream.StreamReader;
import sqe.bridge.stream.StreamSink;
import sqe.bridge.types.ArrowTypes;

/**
 * One statement while it is executed, on a thread of its own, so that whoever asked for it can leave at any time.
 *
 * A small result is the answer of the call that asked for it; a larger one is fetched over a socket (`StreamReader`).
 */
public final class Exec implements Runnable {
  private static final int INLINE_BYTES = 1 << 16;
  private static final long INLINE_MILLIS = 200;
  private static final long WRITE_GRACE_MILLIS = 5000;
  private static final long ABANDON_MILLIS = 2000;
  private static final long ATTACH_MILLIS = 30000;
  private static final int ASKED_AFTERWARDS = 10;
  private static final String POOL_KEY = "spark.scheduler.pool";
  private static final Map<String, String> NO_BROADCASTS = Map.of("spark.sql.autoBroadcastJoinThreshold", "-1");

  private static final Set<String> TOO_BIG = // rows, bytes, memory of a side; what reaches the driver before it is one
      Set.of("_LEGACY_ERROR_TEMP_2248", "_LEGACY_ERROR_TEMP_2249", "_LEGACY_ERROR_TEMP_2250", "SQE_TOO_BIG_TO_COLLECT");

  private static final Map<String, Exec> STATEMENTS = new ConcurrentHashMap<>(); // by tag
  private static final AtomicInteger ABANDONED = new AtomicInteger();
  private static final ExecutorService THREADS =
      Executors.newCachedThreadPool(Daemons.named("sqe-execute", Daemons.DEEP_BYTES)); // the optimizer recurses

  public final String tag;
  public final StreamSink sink;
  final ExecProgress progress = new ExecProgress();
  private final BridgeSession owner;
  private final SparkSession session;
  private final LogicalPlan plan;
  private final Map<String, String> settings;
  private final boolean command;
  private final StructType type;
  private final StreamFormat format;
  private final byte[] schema;
  private volatile Long affected;

  // Guarded by this.
  private boolean running; // past planning
  private Thread thread;
  private boolean ended;
  private boolean abandoned;
  private boolean forgotten;
  private boolean attached;
  private long cancelledAt;

  private Exec(BridgeSession owner, LogicalPlan plan, String tag, Map<String, String> settings) throws Exception {
    this.owner = owner;
    this.session = owner.spark();
    this.plan = plan;
    this.tag = tag;
    this.settings = settings;
    command = BridgeSession.isCommand(plan);
    type = ArrowTypes.columns(plan);
    format = StreamFormat.of(session.sessionState().conf());
    schema = StreamEncoder.schemaMessage(type, format);
    sink = StreamHub.newSink(tag);
  }

  // ---- what Python calls

  /** Executes an analysed plan. `settings` is a JSON object of texts. The answer is read by execution.py. */
  public static byte[] execute(BridgeSession owner, long plan, String tag, String settings) throws Exception {
    Exec statement;
    try {
      statement = new Exec(owner, owner.plan(plan), tag, Json.textMap(Json.read(settings)));
    } catch (Throwable error) {
      return failed(error);
    }
    STATEMENTS.put(tag, statement);
    THREADS.execute(statement);
    return statement.answer();
  }

  /** Ends a statement in whatever phase it is. Idempotent, from any thread. */
  public static void cancel(String tag) {
    Running.cancel(tag);
    Exec statement = find(tag);
    if (statement != null) statement.cancelled();
  }

  /** How far the statement is: five counts of stages and tasks, rows, bytes; empty when it is over. */
  public static String progress(String tag) {
    Exec statement = find(tag);
    return statement == null ? "" : statement.progressText();
  }

  public String progressText() {
    return progress.text() + "," + sink.rows() + "," + sink.bytes();
  }

  /** How many threads go on although nobody waits for them any more. */
  public static int abandoned() {
    return ABANDONED.get();
  }

  static Exec find(String tag) {
    return STATEMENTS.get(tag);
  }

  public static Exec of(StreamSink sink) {
    Exec statement = find(sink.tag);
    return statement != null && statement.sink == sink ? statement : null;
  }

  // ---- the answer

  private byte[] answer() throws Exception {
    try {
      while (true) {
        List<StreamBatch> small = sink.small(INLINE_BYTES, INLINE_MILLIS);
        if (small != null) {
          forget();
          return inline(small);
        }
        if (!command || !sink.isOpen()) return streamed();
        if (graceIsOver()) sink.cancel();
      }
    } catch (CancelledException cancelled) {
      forget();
      return new byte[] {StreamReader.CANCELLED};
    } catch (Throwable error) {
      forget();
      return failed(error);
    }
  }

  private static byte[] failed(Throwable error) throws IOException {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    out.write(StreamReader.FAILURE);
    out.write(Failures.describe(error).getBytes(StandardCharsets.UTF_8));
    return out.toByteArray();
  }

  private DataOutputStream begin(ByteArrayOutputStream bytes, char kind) throws IOException {
    DataOutputStream out = new DataOutputStream(bytes);
    out.write(kind);
    out.writeLong(affected == null ? -1 : affected);
    out.writeInt(schema.length);
    out.write(schema);
    return out;
  }

  private byte[] inline(List<StreamBatch> batches) throws IOException {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    DataOutputStream out = begin(bytes, 'I');
    byte[] window = sink.window();
    if (window != null) frame(out, StreamReader.WINDOW, window, 0, window.length);
    for (StreamBatch batch : batches) frame(out, StreamReader.BATCH, batch.data, batch.offset, batch.length);
    byte[] last = progressText().getBytes(StandardCharsets.UTF_8);
    frame(out, StreamReader.END, last, 0, last.length);
    return bytes.toByteArray();
  }

  private static void frame(DataOutputStream out, byte kind, byte[] body, int offset, int length) throws IOException {
    out.write(kind);
    out.writeLong(length);
    out.write(body, offset, length);
  }

  private byte[] streamed() throws IOException {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    DataOutputStream out = begin(bytes, 'R');
    out.writeLong(sink.number);
    out.write(sink.token);
    StreamHub.later(this::endUnattached, ATTACH_MILLIS);
    return bytes.toByteArray();
  }

  /** A reader has come; false when there is one already. */
  public synchronized boolean attach() {
    if (attached || forgotten) return false;
    attached = true;
    return true;
  }

  private void endUnattached() {
    if (!attach()) return;
    cancel(tag);
    forget();
  }

  /** Nobody will ask for this statement again. */
  public void forget() {
    synchronized (this) {
      if (forgotten) return;
      forgotten = true;
    }
    STATEMENTS.remove(tag, this);
    StreamHub.forget(sink);
  }

  // ---- cancelling

  private void cancelled() {
    synchronized (this) {
      if (ended || cancelledAt != 0) return;
      cancelledAt = System.nanoTime();
      // A write may just be committing; what it comes to is worth a short wait.
      if (!command || !running) sink.cancel();
    }
    StreamHub.later(new Again(), 50);
  }

  private synchronized boolean isAsked() {
    return cancelledAt != 0;
  }

  private synchronized boolean graceIsOver() {
    return cancelledAt != 0 && System.nanoTime() - cancelledAt > WRITE_GRACE_MILLIS * 1000000;
  }

  /**
   * Libraries swallow interrupts, and a statement may begin another job: ask until the thread has ended, and some seconds
   * longer. Who is interrupted while a job is on its way to the scheduler leaves it behind, and no one would end it.
   */
  private final class Again implements Runnable {
    private long pause = 50;
    private int asked; // since the thread has ended

    public void run() {
      boolean over = isEnded();
      Running.cancel(tag);
      if (over && ++asked > ASKED_AFTERWARDS) return;
      pause = over ? 500 : Math.min(2 * pause, 5000);
      StreamHub.later(this, pause);
    }
  }

  private synchronized boolean isEnded() {
    boolean late = cancelledAt != 0 && System.nanoTime() - cancelledAt > ABANDON_MILLIS * 1000000;
    if (!ended && late && !abandoned) {
      // Java cannot end a thread that does not look at its interrupt flag; the session goes with it.
      abandoned = true;
      ABANDONED.incrementAndGet();
      if (thread != null) Watchdog.abandoned(thread);
      owner.abandon();
    }
    return ended;
  }

  private void requireRunning() {
    if (Running.isCancelled(tag)) throw new CancelledException();
  }

  // ---- the statement's own thread

  public void run() {
    synchronized (this) {
      thread = Thread.currentThread();
    }
    ExecQuery query = new ExecQuery(session.sparkContext(), sink, type, format);
    Throwable failure = null;
    try {
      runAs(query);
    } catch (Throwable error) {
      failure = error;
    }
    // Only now: whoever gets the end may send the next statement, into a session that is as it was.
    if (failure == null) sink.finish(query.partitions());
    else if (Running.isCancelled(tag)) sink.cancel();
    else sink.fail(failure);
    end();
    // Who asks already goes on after the end; otherwise it ended before `cancelled` was called.
    if (failure != null && !isAsked() && Running.isCancelled(tag)) StreamHub.later(new Again(), 50);
  }

  private void runAs(ExecQuery query) throws Throwable {
    SparkContext context = session.sparkContext();
    boolean overlaid = false;
    try {
      Running.enter(tag);
      SparkSession.setActiveSession(session);
      context.setLocalProperties(new Properties());
      context.addJobTag(tag);
      context.setInterruptOnCancel(true);
      String pool = settings.remove(POOL_KEY);
      if (pool != null) context.setLocalProperty(POOL_KEY, pool);
      owner.overlay(settings);
      overlaid = true;
      if (command) runCommand(query);
      else runQuery(query);
    } finally {
      if (overlaid) owner.restore(settings);
      context.setLocalProperties(new Properties());
      SparkSession.clearActiveSession();
      Running.leave(tag);
    }
  }

  private synchronized void end() {
    if (abandoned) ABANDONED.decrementAndGet();
    if (abandoned) Watchdog.released(thread);
    ended = true;
  }

  /** Optimises and plans; cancelling ends that too. Nothing runs. */
  private QueryExecution planned(LogicalPlan logical) {
    ExecTracker tracker = new ExecTracker(tag);
    // SKIP: a command runs when its physical plan is collected, so that planning and running stay apart.
    Enumeration.Value mode = CommandExecutionMode$.MODULE$.SKIP();
    // Without the phase that reloads tables: what was decided on is what is read (ENF-13).
    QueryExecution execution =
        new QueryExecution(session, logical, tracker, mode, RemoveShuffleFiles$.MODULE$, false);
    tracker.within(session, execution::executedPlan);
    requireRunning();
    return execution;
  }

  private void runQuery(ExecQuery query) throws Exception {
    if (Constant.is(plan)) {
      // To optimise and plan it takes ten times as long as to compute it.
      requireRunning();
      query.runConstant(plan);
      return;
    }
    attempt(
        planned(plan),
        execution -> {
          SparkPlan physical = execution.executedPlan();
          return query.runHere(physical) || named(execution, () -> query.run(physical)) != null;
        });
  }

  private void runCommand(ExecQuery query) throws Throwable {
    ExecWrite write = ExecWrite.of(plan);
    QueryExecution first = planned(plan);
    first.executedPlan();
    if (write != null && write.mustCount(first.optimizedPlan())) {
      write.counted(count(write.countPlan(session)));
    }
    synchronized (this) {
      requireRunning();
      running = true;
    }
    // From here on the jobs are cancelled but this thread is not interrupted: it may be in the middle of a commit.
    Running.leave(tag);
    requireRunning();
    InternalRow[] rows = ExecWrite.marked(tag, () -> attempt(first, Exec::collected));
    if (write != null) affected = write.affected(tag);
    query.deliver(rows);
  }

  /** Counts before a write what cannot be told afterwards; the relation in the plan is at the snapshot it will read. */
  private long count(LogicalPlan counting) throws Exception {
    return attempt(planned(counting), Exec::collected)[0].getLong(0);
  }

  private static InternalRow[] collected(QueryExecution execution) {
    return named(execution, execution.executedPlan()::executeCollect);
  }

  /**
   * Spark guesses how big the sides of a join are, and gives every task the whole of one that is small. What is guessed
   * too low fails before a row was made or written; then the same plan runs again, with both sides sorted.
   */
  private <T> T attempt(QueryExecution execution, Attempt<T> body) throws Exception {
    try {
      return body.with(execution);
    } catch (Throwable error) {
      if (!sink.isUntouched() || !Failures.has(error, TOO_BIG)) throw error;
      requireRunning();
      owner.overlay(NO_BROADCASTS);
      try {
        return body.with(planned(execution.logical()));
      } finally {
        owner.restore(NO_BROADCASTS);
      }
    }
  }

  private interface Attempt<T> {
    T with(QueryExecution execution) throws Exception;
  }

  private static <T> T named(QueryExecution execution, Function0<T> body) {
    // The name replaces the description of the jobs, which must hold no SQL (ISO-9).
    return SQLExecution$.MODULE$.withNewExecutionId(execution, Option.apply("statement"), body);
  }
}
