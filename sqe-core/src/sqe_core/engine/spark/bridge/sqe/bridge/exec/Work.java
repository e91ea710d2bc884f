package sqe.bridge.exec;

import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.classic.SparkSession;
import sqe.bridge.BridgeException;
import sqe.bridge.BridgeSession;
import sqe.bridge.CancelledException;

/**
 * Runs parsing and analysis in threads of our own: with a deep stack, with the session active in that thread and in no
 * other (ENF-3), and apart from the py4j threads, which an interrupt must never reach.
 */
public final class Work {
  private static final long GRACE_MILLIS = 2000;
  private static final ExecutorService POOL = Executors.newCachedThreadPool(Daemons.named("sqe-plan", Daemons.DEEP_BYTES));

  private Work() {}

  private static final class Job<T> implements Callable<T> {
    private final SparkSession session;
    private final String tag;
    private final Callable<T> body;
    private volatile Thread thread;
    private boolean abandoned;

    Job(SparkSession session, String tag, Callable<T> body) {
      this.session = session;
      this.tag = tag;
      this.body = body;
    }

    public T call() throws Exception {
      SparkContext context = session.sparkContext();
      thread = Thread.currentThread();
      if (tag != null) Running.enter(tag);
      SparkSession.setActiveSession(session);
      try {
        if (tag != null) context.addJobTag(tag);
        return body.call();
      } finally {
        if (tag != null) context.removeJobTag(tag);
        SparkSession.clearActiveSession();
        if (tag != null) Running.leave(tag);
        release();
      }
    }

    private synchronized void release() {
      if (abandoned) Watchdog.released(thread);
      thread = null;
    }

    synchronized void abandon() {
      abandoned = true;
      if (thread != null) Watchdog.abandoned(thread);
    }
  }

  /** Runs the body and returns its answer. A tag makes it cancellable; the time limit holds without one, too. */
  public static <T> T call(BridgeSession owner, String tag, long limitMillis, Callable<T> body) throws Throwable {
    Job<T> job = new Job<>(owner.spark(), tag, body);
    FutureTask<T> task = new FutureTask<>(job);
    POOL.execute(task);
    long deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(limitMillis);
    long cancelledAt = 0;
    while (true) {
      try {
        T answer = task.get(100, TimeUnit.MILLISECONDS);
        if (tag != null && Running.isCancelled(tag)) throw new CancelledException();
        return answer;
      } catch (ExecutionException failed) {
        if (tag != null && Running.isCancelled(tag)) throw new CancelledException();
        throw failed.getCause();
      } catch (TimeoutException later) {
        long now = System.nanoTime();
        boolean cancelled = tag != null && Running.isCancelled(tag);
        if (cancelled && cancelledAt == 0) cancelledAt = now;
        boolean stuck = cancelled && now - cancelledAt > TimeUnit.MILLISECONDS.toNanos(GRACE_MILLIS);
        if (stuck || now > deadline) {
          // Java cannot end a thread that does not look at its interrupt flag; the session goes with it.
          task.cancel(true);
          job.abandon();
          owner.abandon();
          if (stuck) throw new CancelledException();
          throw new BridgeException("SQE_PLANNING_TIMEOUT", "planning took longer than " + limitMillis + " ms");
        }
      }
    }
  }
}
