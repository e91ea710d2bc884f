package sqe.bridge.exec;

import org.apache.spark.internal.config.ConfigEntry;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.internal.SQLConf;
import scala.Function0;

/**
 * The session's settings as a thread that plans a statement sees them. Spark looks into them all the time, also inside
 * of a single rule, which makes them the place to stop planning that would not end by itself.
 */
public final class ExecConf extends SQLConf {
  private final ExecTracker tracker;

  private ExecConf(SparkSession session, ExecTracker tracker) {
    this.tracker = tracker;
    java.util.Map current = session.sessionState().conf().settings();
    synchronized (current) {
      settings().putAll(current);
    }
  }

  /** Runs the body such that a cancel of the tracker's statement ends it. */
  static Object within(SparkSession session, ExecTracker tracker, Function0 body) {
    return SQLConf.withExistingConf(new ExecConf(session, tracker), body);
  }

  public Object getConf(ConfigEntry entry) {
    tracker.requireRunning();
    return super.getConf(entry);
  }
}
