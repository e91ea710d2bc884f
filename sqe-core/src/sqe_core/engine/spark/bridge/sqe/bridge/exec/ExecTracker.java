package sqe.bridge.exec;

import java.util.Map;
import org.apache.spark.internal.config.ConfigEntry;
import org.apache.spark.sql.catalyst.QueryPlanningTracker;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.unsafe.Platform;
import scala.Function0;
import scala.Option;

/**
 * Spark reports every rule that it applied here, which is a place where a statement can be stopped between two rules. The
 * statistics themselves are not kept.
 */
public final class ExecTracker extends QueryPlanningTracker {
  private final String tag;
  private int calls;

  ExecTracker(String tag) {
    super(Option.empty());
    this.tag = tag;
  }

  public void recordRuleInvocation(String rule, long nanos, boolean effective) {
    requireRunning();
  }

  /** An InterruptedException, since Spark's many handlers for any other exception let it pass. */
  private void requireRunning() {
    boolean look = Thread.currentThread().isInterrupted() || (++calls & 63) == 0;
    if (look && Running.isCancelled(tag)) Platform.throwException(new InterruptedException("cancelled"));
  }

  /** Runs the body such that a cancel of the statement ends it. */
  <T> T within(SparkSession session, Function0<T> body) {
    return SQLConf.withExistingConf(new Conf(session), body);
  }

  /**
   * The session's settings as a thread that plans a statement sees them. Spark looks into them all the time, also inside
   * of a single rule, which makes them the place to stop planning that would not end by itself.
   */
  private final class Conf extends SQLConf {
    Conf(SparkSession session) {
      Map<String, String> current = session.sessionState().conf().settings();
      synchronized (current) {
        settings().putAll(current);
      }
    }

    public <T> T getConf(ConfigEntry<T> entry) {
      requireRunning();
      return super.getConf(entry);
    }
  }
}
