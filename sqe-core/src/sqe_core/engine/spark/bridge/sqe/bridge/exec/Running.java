package sqe.bridge.exec;

import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import org.apache.spark.SparkContext;
import sqe.bridge.CancelledException;

/** Which threads work for which statement, so that a statement can be cancelled in every phase (ISO-9, LIM-7). */
public final class Running {
  private static final int REMEMBERED = 4096;
  private static final Map<String, Set<Thread>> THREADS = new HashMap<>(); // by tag
  private static final Map<String, Boolean> CANCELLED = remembered();

  private Running() {}

  /** The current thread begins to work for a statement; throws when that was cancelled before. */
  public static synchronized void enter(String tag) {
    if (CANCELLED.containsKey(tag)) throw new CancelledException();
    THREADS.computeIfAbsent(tag, each -> new HashSet<>()).add(Thread.currentThread());
  }

  /** The current thread is done with it. Clears an interrupt that came too late, which would hit the next statement. */
  public static synchronized void leave(String tag) {
    Set<Thread> threads = THREADS.get(tag);
    if (threads != null && threads.remove(Thread.currentThread()) && threads.isEmpty()) THREADS.remove(tag);
    if (CANCELLED.containsKey(tag)) Thread.interrupted();
  }

  public static synchronized boolean isCancelled(String tag) {
    return CANCELLED.containsKey(tag);
  }

  /** Ends what runs under the tag and what would start under it later. Idempotent, from any thread. */
  public static void cancel(String tag) {
    synchronized (Running.class) {
      CANCELLED.put(tag, Boolean.TRUE);
      // Under the lock, so that no thread has left and works for somebody else when the interrupt arrives.
      THREADS.getOrDefault(tag, Set.of()).forEach(Thread::interrupt);
    }
    SparkContext.getOrCreate().cancelJobsWithTag(tag);
  }

  /** Forgets the oldest entry when there are thousands. */
  static <K, V> Map<K, V> remembered() {
    return new LinkedHashMap<>() {
      protected boolean removeEldestEntry(Map.Entry<K, V> eldest) {
        return size() > REMEMBERED;
      }
    };
  }
}
