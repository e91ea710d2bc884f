package sqe.bridge.exec;

import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.SparkContext;
import sqe.bridge.stream.StreamHub;

/**
 * Ends the JVM when cancelled statements do not let go of it. Java cannot end a thread that never looks at its interrupt
 * flag, such as one in a regular expression; a few of them would keep the engine from everybody (LIM-7, LIM-9). The
 * supervisor starts a new one at once.
 */
public final class Watchdog implements Runnable {
  /** The exit code that tells the supervisor (launcher.py). */
  private static final int EXIT_CODE = 86;

  private static final long LOOK_MILLIS = 1000;
  private static final long GRACE_NANOS = 5000L * 1000 * 1000;
  private static final Map<Long, String> TASKS = new ConcurrentHashMap<>(); // the tags of running tasks
  private static final Map<Thread, Long> ABANDONED = new ConcurrentHashMap<>(); // their CPU time when last looked at

  private final ThreadMXBean threads = ManagementFactory.getThreadMXBean();
  private final Map<Long, Long> cancelledSince = new HashMap<>(); // when that was seen of a task
  private final int slots;
  private final long patienceNanos;
  private long lookedAt = System.nanoTime();
  private long blockedSince;

  private Watchdog(int slots, long patienceMillis) {
    this.slots = slots;
    this.patienceNanos = patienceMillis * 1000 * 1000;
  }

  /** `slots` is how many tasks run at once in this JVM, 0 when they run elsewhere. */
  public static void open(int slots, long patienceMillis) {
    int threads = slots > 0 ? slots : Runtime.getRuntime().availableProcessors();
    StreamHub.later(new Watchdog(threads, patienceMillis), LOOK_MILLIS);
  }

  static void taskStarted(long task, String tag) {
    TASKS.put(task, tag);
  }

  static void taskEnded(long task) {
    TASKS.remove(task);
  }

  /** Nobody waits for this thread any more. */
  static void abandoned(Thread thread) {
    ABANDONED.put(thread, 0L);
  }

  static void released(Thread thread) {
    ABANDONED.remove(thread);
  }

  public void run() {
    try {
      look(System.nanoTime());
    } finally {
      StreamHub.later(this, LOOK_MILLIS);
    }
  }

  private void look(long now) {
    int stuck = stuckTasks(now) + busyThreads(now - lookedAt);
    lookedAt = now;
    if (2 * stuck < slots) blockedSince = 0;
    else if (blockedSince == 0) blockedSince = now;
    else if (now - blockedSince > patienceNanos) {
      System.err.println("SQE ends this JVM: " + stuck + " of " + slots + " threads are held by cancelled statements");
      Runtime.getRuntime().halt(EXIT_CODE);
    }
  }

  private int stuckTasks(long now) {
    int stuck = 0;
    cancelledSince.keySet().retainAll(TASKS.keySet());
    for (Map.Entry<Long, String> task : TASKS.entrySet()) {
      Long since = cancelledSince.get(task.getKey());
      if (since != null) {
        // A task that was told to end before it had begun goes on, and Spark tells it no second time.
        SparkContext.getOrCreate().killTaskAttempt(task.getKey(), true, "cancelled");
        if (now - since > GRACE_NANOS) stuck++;
      } else if (Running.isCancelled(task.getValue())) cancelledSince.put(task.getKey(), now);
    }
    return stuck;
  }

  /** One that waits for a server holds nothing back. */
  private int busyThreads(long elapsed) {
    int busy = 0;
    for (Map.Entry<Thread, Long> entry : ABANDONED.entrySet()) {
      long used = threads.getThreadCpuTime(entry.getKey().getId());
      long before = entry.getValue();
      if (used < 0) continue;
      if (ABANDONED.replace(entry.getKey(), before, used) && before > 0 && 2 * (used - before) > elapsed) busy++;
    }
    return busy;
  }
}
