package sqe.bridge.stream;

import java.io.Serializable;
import org.apache.spark.SparkEnv;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.Platform;
import scala.collection.Iterator;
import scala.runtime.AbstractFunction2;
import sqe.bridge.CancelledException;

/** What runs on the executors: encodes the rows of one partition and hands them over as they come. */
public final class StreamTask extends AbstractFunction2<TaskContext, Iterator<InternalRow>, Object> implements Serializable {
  private final long number;
  private final byte[] token;
  private final StructType type;
  private final StreamFormat format;
  private final long maxRows;

  public StreamTask(StreamSink sink, StructType type, StreamFormat format, long maxRows) {
    this.number = sink.number;
    this.token = sink.token;
    this.type = type;
    this.format = format;
    this.maxRows = maxRows;
  }

  /** Nothing of the result travels as the task's result. */
  public Object apply(TaskContext context, Iterator<InternalRow> rows) {
    try {
      run(context, rows);
    } catch (Throwable error) {
      Platform.throwException(error);
    }
    return Boolean.TRUE;
  }

  private void run(TaskContext context, Iterator<InternalRow> rows) throws Exception {
    Channel channel = channel(context);
    try (StreamEncoder encoder = new StreamEncoder(type, format, maxRows)) {
      for (StreamBatch batch; (batch = encoder.next(rows)) != null; ) {
        context.killTaskIfInterrupted();
        if (!channel.push(batch)) return;
      }
      channel.finish();
    } catch (InterruptedException interrupted) {
      context.killTaskIfInterrupted();
      throw interrupted;
    }
  }

  private Channel channel(TaskContext context) {
    if ("driver".equals(SparkEnv.get().executorId())) {
      StreamSink sink = StreamHub.find(number, token);
      if (sink == null) throw new CancelledException();
      return new Local(sink, context.partitionId(), context.taskAttemptId());
    }
    return new StreamRemote(number, token, context);
  }

  /** A task's way to the driver. */
  interface Channel {
    /** Hands a batch over; false when another attempt's rows are used and this task may stop. */
    boolean push(StreamBatch batch) throws Exception;

    /** The partition is complete. */
    void finish() throws Exception;
  }

  /** The way to the driver when the task runs in the driver's JVM. */
  private record Local(StreamSink sink, int partition, long attempt) implements Channel {
    public boolean push(StreamBatch batch) throws Exception {
      return sink.push(partition, attempt, batch);
    }

    public void finish() throws Exception {
      sink.complete(partition, attempt);
    }
  }
}
