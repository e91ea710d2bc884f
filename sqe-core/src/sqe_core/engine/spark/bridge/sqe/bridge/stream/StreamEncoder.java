package sqe.bridge.stream;

import java.nio.ByteBuffer;
import java.nio.channels.WritableByteChannel;
import java.util.Arrays;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.arrow.vector.VectorUnloader;
import org.apache.arrow.vector.compression.NoCompressionCodec;
import org.apache.arrow.vector.ipc.WriteChannel;
import org.apache.arrow.vector.ipc.message.MessageSerializer;
import org.apache.arrow.vector.types.pojo.Schema;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.execution.arrow.ArrowWriter;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.ArrowUtils$;
import scala.collection.Iterator;
import sqe.bridge.types.ArrowTypes;
import sqe.bridge.types.Output;

/**
 * Turns rows into Arrow messages of bounded size. Spark's own converter bounds the rows of a batch only, and ten
 * thousand wide rows are a gigabyte.
 */
public final class StreamEncoder implements AutoCloseable {
  /** A batch ends with the row that reaches this many bytes. */
  static final int BATCH_BYTES = 1 << 20;

  private static final long FLUSH_NANOS = 500L * 1000 * 1000;

  private final StructType type;
  private final Schema schema;
  private final BufferAllocator allocator;
  private final int maxRows;
  private final Buffer buffer = new Buffer();
  private VectorSchemaRoot root;
  private ArrowWriter writer;
  private long remaining;

  public StreamEncoder(StructType type, StreamFormat format, long maxTotal) {
    this.type = type;
    schema = schema(type, format);
    maxRows = format.maxRows() > 0 ? format.maxRows() : Integer.MAX_VALUE;
    remaining = maxTotal;
    allocator = ArrowUtils$.MODULE$.rootAllocator().newChildAllocator("sqe", 0, Long.MAX_VALUE);
    open();
  }

  private void open() {
    root = VectorSchemaRoot.create(schema, allocator);
    writer = ArrowWriters.into(root, type);
  }

  static Schema schema(StructType type, StreamFormat format) {
    return ArrowTypes.schema(type, format.zone(), format.largeTypes());
  }

  /** The schema as the first message of an Arrow stream. */
  public static byte[] schemaMessage(StructType type, StreamFormat format) throws Exception {
    Output.requireReadable(type);
    return Output.message(schema(type, format));
  }

  /** The next batch, null when there are no rows left. */
  public StreamBatch next(Iterator<? extends InternalRow> rows) throws Exception {
    if (remaining <= 0 || !rows.hasNext()) return null;
    long bytes = 0;
    int count = 0;
    long started = System.nanoTime();
    do {
      InternalRow row = rows.next();
      writer.write(row);
      count++;
      remaining--;
      if (row instanceof UnsafeRow unsafeRow) bytes += unsafeRow.getSizeInBytes();
      else if ((count & 15) == 0) bytes = writer.sizeInBytes();
      // A reader wants to see the rows of a slow query as they come.
      if ((count & 15) == 0 && System.nanoTime() - started > FLUSH_NANOS) break;
    } while (count < maxRows && bytes < BATCH_BYTES && remaining > 0 && rows.hasNext());
    writer.finish();
    try (var batch = new VectorUnloader(root, true, NoCompressionCodec.INSTANCE, true).getRecordBatch()) {
      MessageSerializer.serialize(new WriteChannel(buffer), batch);
    }
    if (bytes > 8L * BATCH_BYTES) {
      // One huge row must not hold its memory until the task ends.
      root.close();
      open();
    } else {
      writer.reset();
    }
    return buffer.batch(count);
  }

  public void close() {
    buffer.release();
    root.close();
    allocator.close();
  }

  /** Collects one message in an array of the pool, in a larger one if it must be. */
  private static final class Buffer implements WritableByteChannel {
    private byte[] bytes;
    private int length;

    public int write(ByteBuffer source) {
      int count = source.remaining();
      if (bytes == null) bytes = StreamBuffers.take();
      if (bytes.length - length < count) {
        byte[] larger = Arrays.copyOf(bytes, Math.addExact(length, Math.addExact(count, count >> 2)));
        StreamBuffers.give(bytes);
        bytes = larger;
      }
      source.get(bytes, length, count);
      length += count;
      return count;
    }

    /** Hands the message over: the array itself when it is well filled, else a copy. */
    StreamBatch batch(int rows) {
      StreamBatch batch;
      if (length > bytes.length / 2) {
        batch = new StreamBatch(bytes, 0, length, rows);
        bytes = null;
      } else {
        batch = new StreamBatch(Arrays.copyOf(bytes, length), 0, length, rows);
      }
      length = 0;
      return batch;
    }

    void release() {
      StreamBuffers.give(bytes);
      bytes = null;
    }

    public boolean isOpen() {
      return true;
    }

    public void close() {}
  }
}
