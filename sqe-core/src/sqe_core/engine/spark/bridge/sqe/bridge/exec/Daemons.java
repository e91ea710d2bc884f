package sqe.bridge.exec;

import java.util.concurrent.ThreadFactory;

/** Threads of our own. They inherit no thread locals: Spark would hand on the caller's session and job tags. */
public final class Daemons {
  /** For what recurses as deep as a plan is; only touched pages cost memory. */
  static final long DEEP_BYTES = 64L << 20;

  private Daemons() {}

  public static ThreadFactory named(String name) {
    return named(name, 0);
  }

  static ThreadFactory named(String name, long stackBytes) {
    return job -> {
      Thread thread = new Thread(null, job, name, stackBytes, false);
      thread.setDaemon(true);
      return thread;
    };
  }
}
