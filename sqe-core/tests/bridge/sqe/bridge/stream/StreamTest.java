package sqe.bridge.stream;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.arrow.memory.RootAllocator;
import org.apache.arrow.vector.BigIntVector;
import org.apache.arrow.vector.ipc.ArrowStreamReader;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.parser.CatalystSqlParser$;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import sqe.bridge.BridgeException;
import sqe.bridge.CancelledException;

class StreamTest {
  private static final StreamFormat FORMAT = StreamFormat.of(new SQLConf());

  private static List<StreamBatch> encoded(StructType type, List<InternalRow> rows, long most) throws Exception {
    List<StreamBatch> batches = new ArrayList<>();
    try (StreamEncoder encoder = new StreamEncoder(type, FORMAT, most)) {
      var each = scala.jdk.javaapi.CollectionConverters.asScala(rows.iterator());
      for (StreamBatch batch; (batch = encoder.next(each)) != null; ) batches.add(batch);
    }
    return batches;
  }

  private static List<InternalRow> numbers(int count) {
    return IntStream.range(0, count)
        .mapToObj(i -> (InternalRow) new GenericInternalRow(new Object[] {(long) i, UTF8String.fromString("t" + i)}))
        .collect(Collectors.toList());
  }

  private static final StructType TYPE = (StructType) CatalystSqlParser$.MODULE$.parseDataType("struct<n:bigint,t:string>");

  @Test
  void batchesAreOneArrowStream() throws Exception {
    ByteArrayOutputStream stream = new ByteArrayOutputStream();
    stream.write(StreamEncoder.schemaMessage(TYPE, FORMAT));
    List<StreamBatch> batches = encoded(TYPE, numbers(25000), Long.MAX_VALUE);
    assertTrue(batches.size() > 1, "bounded");
    for (StreamBatch batch : batches) stream.write(batch.data, batch.offset, batch.length);
    long next = 0;
    try (var allocator = new RootAllocator();
        var reader = new ArrowStreamReader(new ByteArrayInputStream(stream.toByteArray()), allocator)) {
      while (reader.loadNextBatch()) {
        BigIntVector vector = (BigIntVector) reader.getVectorSchemaRoot().getVector(0);
        for (int i = 0; i < vector.getValueCount(); i++) assertEquals(next++, vector.get(i));
      }
    }
    assertEquals(25000, next);
  }

  @Test
  void noMoreRowsThanAreWanted() throws Exception {
    assertEquals(7, encoded(TYPE, numbers(100), 7).get(0).rows);
    assertEquals(List.of(), encoded(TYPE, List.of(), 7));
  }

  @Test
  void wideRowsEndABatchEarly() throws Exception {
    UTF8String wide = UTF8String.fromString("x".repeat(1 << 19));
    List<InternalRow> rows = new ArrayList<>();
    for (int i = 0; i < 64; i++) rows.add(new GenericInternalRow(new Object[] {1L, wide}));
    assertTrue(encoded(TYPE, rows, Long.MAX_VALUE).size() >= 4);
  }

  private static StreamBatch batch(int rows) {
    return new StreamBatch(new byte[rows], 0, rows, rows);
  }

  @Test
  void partitionsComeInOrderWhateverOrderTheyEndIn() throws Throwable {
    StreamHub.newSink("other");
    StreamSink sink = new StreamSink(1, "tag");
    assertTrue(sink.push(1, 11, batch(2)));
    sink.complete(1, 11);
    assertNull(sink.poll(1), "the first is not there yet");
    assertTrue(sink.push(0, 10, batch(1)));
    assertEquals(1, sink.poll(1).rows);
    sink.complete(0, 10);
    assertEquals(2, sink.poll(1).rows);
    assertNull(sink.poll(1));
    sink.finish(2);
    assertEquals(StreamBatch.END, sink.poll(1));
    assertEquals(3, sink.rows());
  }

  @Test
  void whatIsMadeTouchesItBeforeItIsSent() throws Throwable {
    StreamSink sink = new StreamSink(1, "tag");
    assertTrue(sink.isUntouched());
    sink.push(0, 10, batch(1));
    assertEquals(0, sink.rows());
    assertEquals(false, sink.isUntouched());
    sink.complete(0, 10);
    sink.finish(1);
    assertEquals(1, sink.poll(1).rows);
    assertEquals(StreamBatch.END, sink.poll(1));
    assertEquals(false, sink.isUntouched());
  }

  @Test
  void ofTwoAttemptsOneIsSent() throws Throwable {
    StreamSink sink = new StreamSink(1, "tag");
    sink.push(0, 10, batch(1));
    sink.push(0, 11, batch(3));
    sink.complete(0, 11);
    assertEquals(false, sink.push(0, 10, batch(1)), "the other one is whole");
    sink.finish(1);
    assertEquals(List.of(3), sink.small(1000, 1).stream().map(each -> ((StreamBatch) each).rows).toList());
  }

  @Test
  void whatFailedIsToldToTheReaderAndTheTasks() throws Throwable {
    StreamSink cancelled = new StreamSink(1, "tag");
    cancelled.push(0, 10, batch(1));
    cancelled.cancel();
    assertThrows(CancelledException.class, () -> cancelled.poll(1));
    assertThrows(CancelledException.class, () -> cancelled.push(0, 10, batch(1)));
    assertEquals(0, cancelled.held()[0]);
  }

  @Test
  void spilledBatchesComeBackAndAreNoPlainTextOnDisk(@TempDir Path folder) throws Exception {
    for (boolean encrypted : new boolean[] {false, true}) {
      StreamSpill spill = new StreamSpill(folder.toFile(), 1000, 0, encrypted);
      byte[] bytes = new byte[300];
      Arrays.fill(bytes, (byte) 7);
      StreamBatch first = new StreamBatch(bytes, 0, 300, 1);
      StreamBatch second = new StreamBatch(bytes, 100, 200, 1);
      first.place = spill.append(first);
      second.place = spill.append(second);
      assertEquals(300, second.place);
      assertEquals(500, spill.length());
      assertEquals(0, folder.toFile().list().length, "nothing has a name");
      assertTrue(Arrays.equals(bytes, Arrays.copyOf(spill.read(first).data, 300)));
      assertTrue(Arrays.equals(new byte[200], xor(Arrays.copyOf(spill.read(second).data, 200), (byte) 7)));
      assertNotNull(assertThrows(BridgeException.class, () -> spill.append(new StreamBatch(new byte[501], 0, 501, 1))));
      spill.close();
      assertThrows(IOException.class, () -> spill.read(first), "it is closed");
      assertThrows(BridgeException.class, () -> spill.append(second));
    }
    StreamSpill full = new StreamSpill(folder.toFile(), 1000, Long.MAX_VALUE / 2, false);
    BridgeException refused = assertThrows(BridgeException.class, () -> full.append(batch(1)), "the disk is for others");
    assertEquals("SQE_RESULT_SPILL_FULL", refused.condition);
  }

  @Test
  void aResultIsForWhoKnowsItsToken() throws Throwable {
    StreamSink sink = StreamHub.newSink("tag");
    sink.push(0, 10, batch(1));
    assertEquals(sink, StreamHub.find(sink.number, sink.token.clone()));
    assertNull(StreamHub.find(sink.number, new byte[16]));
    assertNull(StreamHub.find(sink.number + 1, sink.token));
    StreamHub.forget(sink);
    assertNull(StreamHub.find(sink.number, sink.token), "it is over");
    assertEquals(0, sink.held()[0]);
    assertThrows(CancelledException.class, () -> sink.push(0, 10, batch(1)));
  }

  private static byte[] xor(byte[] bytes, byte with) {
    for (int i = 0; i < bytes.length; i++) bytes[i] ^= with;
    return bytes;
  }
}
