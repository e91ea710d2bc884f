package sqe.bridge.time;

import java.io.IOException;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimeType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarArray;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.sql.vectorized.ColumnarMap;
import org.apache.spark.unsafe.types.UTF8String;

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

    public PartitionReader createReader(InputPartition partition) {
      FileTimes.install();
      return new Reader(inner.createReader(partition), schema);
    }

    public PartitionReader createColumnarReader(InputPartition partition) {
      FileTimes.install();
      return new Reader(inner.createColumnarReader(partition), schema);
    }
  }

  private static final class Reader implements PartitionReader {
    private final PartitionReader inner;
    private final StructType schema;
    private final TimeRows rows;

    Reader(PartitionReader inner, StructType schema) {
      this.inner = inner;
      this.schema = schema;
      rows = new TimeRows(schema, true);
    }

    public boolean next() throws IOException {
      return inner.next();
    }

    public Object get() {
      Object read = inner.get();
      return read instanceof ColumnarBatch cb ? batch(cb) : rows.converted((InternalRow) read);
    }

    private Object batch(ColumnarBatch batch) {
      ColumnVector[] columns = new ColumnVector[batch.numCols()];
      for (int i = 0; i < columns.length; i++) {
        columns[i] = batch.column(i);
        if (schema.fields()[i].dataType() instanceof TimeType) columns[i] = new Times(columns[i]);
      }
      return new ColumnarBatch(columns, batch.numRows());
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

  private static final class Times extends ColumnVector {
    private final ColumnVector micros;

    Times(ColumnVector micros) {
      super(new TimeType(6));
      this.micros = micros;
    }

    public long getLong(int row) {
      return micros.getLong(row) * TimeRows.NANOS_PER_MICRO;
    }

    public boolean hasNull() {
      return micros.hasNull();
    }

    public int numNulls() {
      return micros.numNulls();
    }

    public boolean isNullAt(int row) {
      return micros.isNullAt(row);
    }

    public void close() {
      micros.close();
    }

    public boolean getBoolean(int row) {
      throw new UnsupportedOperationException();
    }

    public byte getByte(int row) {
      throw new UnsupportedOperationException();
    }

    public short getShort(int row) {
      throw new UnsupportedOperationException();
    }

    public int getInt(int row) {
      throw new UnsupportedOperationException();
    }

    public float getFloat(int row) {
      throw new UnsupportedOperationException();
    }

    public double getDouble(int row) {
      throw new UnsupportedOperationException();
    }

    public ColumnarArray getArray(int row) {
      throw new UnsupportedOperationException();
    }

    public ColumnarMap getMap(int row) {
      throw new UnsupportedOperationException();
    }

    public Decimal getDecimal(int row, int precision, int scale) {
      throw new UnsupportedOperationException();
    }

    public UTF8String getUTF8String(int row) {
      throw new UnsupportedOperationException();
    }

    public byte[] getBinary(int row) {
      throw new UnsupportedOperationException();
    }

    public ColumnVector getChild(int ordinal) {
      throw new UnsupportedOperationException();
    }
  }
}
