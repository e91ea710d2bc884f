package sqe.bridge.stream;

import java.io.Serializable;
import org.apache.spark.sql.internal.SQLConf;

/** How rows become Arrow; fixed when execution begins, and part of what a task receives. */
public record StreamFormat(String zone, boolean largeTypes, int maxRows) implements Serializable {
  public static StreamFormat of(SQLConf conf) {
    return new StreamFormat(conf.sessionLocalTimeZone(), conf.arrowUseLargeVarTypes(), conf.arrowMaxRecordsPerBatch());
  }
}
