package sqe.bridge.spool;

import java.io.IOException;
import java.nio.channels.ReadableByteChannel;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.vector.ValueVector;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.arrow.vector.ipc.ArrowStreamReader;
import org.apache.arrow.vector.types.pojo.Schema;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.util.ArrowUtils;
import org.apache.spark.sql.vectorized.ArrowColumnVector;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/** Reads an Arrow stream batch by batch; one batch is in memory at a time, outside of the heap. */
final class SpoolReader implements PartitionReader<ColumnarBatch> {
  private final BufferAllocator allocator;
  private final ArrowStreamReader reader;
  private ColumnarBatch batch;
  private boolean closed;

  SpoolReader(ReadableByteChannel rows) {
    allocator = ArrowUtils.rootAllocator().newChildAllocator("sqe-spool", 0, Long.MAX_VALUE);
    reader = new ArrowStreamReader(rows, allocator);
  }

  Schema schema() throws IOException {
    return reader.getVectorSchemaRoot().getSchema();
  }

  public boolean next() throws IOException {
    TaskContext task = TaskContext.get();
    if (task != null) task.killTaskIfInterrupted();
    if (!reader.loadNextBatch()) return false;
    VectorSchemaRoot root = reader.getVectorSchemaRoot();
    if (batch == null) batch = new ColumnarBatch(columns(root));
    batch.setNumRows(root.getRowCount());
    return true;
  }

  /** The vectors stay the same from batch to batch; only their buffers change. */
  private static ColumnVector[] columns(VectorSchemaRoot root) {
    return root.getFieldVectors().stream().map(Column::new).toArray(ColumnVector[]::new);
  }

  /** Spark closes the columns of each batch when it has read them, but the next batch comes in the same vectors. */
  private static final class Column extends ArrowColumnVector {
    Column(ValueVector vector) {
      super(vector);
    }

    public void closeIfFreeable() {}

    public void close() {}
  }

  public ColumnarBatch get() {
    return batch;
  }

  public void close() throws IOException {
    if (closed) return;
    closed = true;
    try (allocator) {
      reader.close();
    }
  }
}
