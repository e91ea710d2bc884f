package sqe.bridge.stream;

import java.io.Serializable;
import org.apache.spark.sql.internal.SQLConf;

/** How rows become Arrow; fixed when execution begins, and part of what a task receives. */
public final class StreamFormat implements Serializable {
  final String zone;
  final boolean largeTypes;
  final int maxRows;

  public StreamFormat(SQLConf conf) {
    zone = conf.sessionLocalTimeZone();
    largeTypes = conf.arrowUseLargeVarTypes();
    maxRows = conf.arrowMaxRecordsPerBatch();
  }
}
