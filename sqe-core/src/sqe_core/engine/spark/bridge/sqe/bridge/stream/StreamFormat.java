package sqe.bridge.stream;

import java.io.Serializable;
import org.apache.spark.sql.internal.SQLConf;

/** How rows become Arrow; fixed when execution begins, and part of what a task receives. */
public record StreamFormat(String zone, boolean largeTypes, int maxRows) implements Serializable {
  /** Instants travel as such: what a session calls its time is no matter of theirs. */
  public static final String ZONE = "UTC";

  public static StreamFormat of(SQLConf conf) {
    return new StreamFormat(ZONE, conf.arrowUseLargeVarTypes(), conf.arrowMaxRecordsPerBatch());
  }
}
