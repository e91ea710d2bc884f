package sqe.bridge.exec;

import java.util.Map;
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
    Map<String, String> current = session.sessionState().conf().settings();
    synchronized (current) {
      settings().putAll(current);
    }
  }

  /** Runs the body such that a cancel of the tracker's statement ends it. */
  static <T> T within(SparkSession session, ExecTracker tracker, Function0<T> body) {
    return SQLConf.withExistingConf(new ExecConf(session, tracker), body);
  }

  public <T> T getConf(ConfigEntry<T> entry) {
    tracker.requireRunning();
    return super.getConf(entry);
  }
}
