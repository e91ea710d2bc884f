package sqe.bridge.time;

import java.io.IOException;
import java.util.function.UnaryOperator;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.read.*;
import org.apache.spark.sql.execution.vectorized.OnHeapColumnVector;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimeType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/** A scan whose times leave it as Spark keeps them, in nanoseconds; Iceberg's files have microseconds. */
final class TimeScan implements Scan, Batch {
  private final Scan scan;
  private final StructType schema;

  TimeScan(Scan scan, StructType schema) {
    this.scan = scan;
    this.schema = schema;
  }

  public StructType readSchema() {
    return schema;
  }

  public String description() {
    return scan.description();
  }

  public Batch toBatch() {
    return this;
  }

  public CustomMetric[] supportedCustomMetrics() {
    return scan.supportedCustomMetrics();
  }

  public CustomTaskMetric[] reportDriverMetrics() {
    return scan.reportDriverMetrics();
  }

  public Scan.ColumnarSupportMode columnarSupportMode() {
    return scan.columnarSupportMode();
  }

  public InputPartition[] planInputPartitions() {
    return scan.toBatch().planInputPartitions();
  }

  public PartitionReaderFactory createReaderFactory() {
    return new Factory(scan.toBatch().createReaderFactory(), schema);
  }

  private record Factory(PartitionReaderFactory inner, StructType schema) implements PartitionReaderFactory {
    public boolean supportColumnarReads(InputPartition partition) {
      return inner.supportColumnarReads(partition);
    }

    public PartitionReader<InternalRow> createReader(InputPartition partition) {
      FileTimes.install();
      TimeRows rows = new TimeRows(schema, true);
      return new Reader<>(inner.createReader(partition), rows::converted);
    }

    public PartitionReader<ColumnarBatch> createColumnarReader(InputPartition partition) {
      FileTimes.install();
      return new Reader<>(inner.createColumnarReader(partition), this::converted);
    }

    /** The batch with copies of its columns of times. */
    private ColumnarBatch converted(ColumnarBatch batch) {
      ColumnVector[] columns = new ColumnVector[batch.numCols()];
      for (int i = 0; i < columns.length; i++) {
        columns[i] = batch.column(i);
        if (schema.fields()[i].dataType() instanceof TimeType) columns[i] = inNanoseconds(columns[i], batch.numRows());
      }
      return new ColumnarBatch(columns, batch.numRows());
    }

    private static ColumnVector inNanoseconds(ColumnVector micros, int rows) {
      OnHeapColumnVector nanos = new OnHeapColumnVector(rows, TimeTypes.TIME);
      for (int row = 0; row < rows; row++) {
        if (micros.isNullAt(row)) nanos.putNull(row);
        else nanos.putLong(row, micros.getLong(row) * TimeRows.NANOS_PER_MICRO);
      }
      return nanos;
    }
  }

  private record Reader<T>(PartitionReader<T> inner, UnaryOperator<T> change) implements PartitionReader<T> {
    public boolean next() throws IOException {
      return inner.next();
    }

    public T get() {
      return change.apply(inner.get());
    }

    public CustomTaskMetric[] currentMetricsValues() {
      return inner.currentMetricsValues();
    }

    public void initMetricsValues(CustomTaskMetric[] metrics) {
      inner.initMetricsValues(metrics);
    }

    public void close() throws IOException {
      inner.close();
    }
  }
}
