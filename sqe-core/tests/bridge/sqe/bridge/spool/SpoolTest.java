package sqe.bridge.spool;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import org.apache.arrow.memory.RootAllocator;
import org.apache.arrow.vector.BigIntVector;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.arrow.vector.ipc.ArrowStreamWriter;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import sqe.bridge.Json;
import sqe.bridge.plan.Trees;

class SpoolTest {
  @TempDir Path folder;

  private Path written(int batches) throws IOException {
    Path file = folder.resolve("rows");
    try (var allocator = new RootAllocator();
        var numbers = new BigIntVector("n", allocator);
        var root = new VectorSchemaRoot(List.of(numbers));
        var writer = new ArrowStreamWriter(root, null, Files.newOutputStream(file))) {
      for (int batch = 0; batch < batches; batch++) {
        for (int i = 0; i < 3; i++) numbers.setSafe(i, 3L * batch + i);
        root.setRowCount(3);
        writer.writeBatch();
      }
    }
    return file;
  }

  @Test
  void rowsComeBackBatchByBatch() throws Exception {
    Path file = written(2);
    try (SpoolReader reader = new SpoolReader(Spools.open(file.toString()))) {
      for (long expected = 0; expected < 6; expected += 3) {
        assertTrue(reader.next());
        assertEquals(3, reader.get().numRows());
        assertEquals(expected + 2, reader.get().getRow(2).getLong(0));
        reader.get().closeIfFreeable(); // as Spark does; the next batch comes in the same vectors
      }
      assertFalse(reader.next());
    }
    var relation = SpoolTable.relation(Json.read("{\"token\": \"t\", \"files\": [\"" + file + "\"]}"));
    assertEquals("n", Trees.first(relation.output()).name());
  }

  @Test
  void aFileThatIsGoneOrCutOffIsAnError() throws Exception {
    Path file = written(2);
    byte[] bytes = Files.readAllBytes(file);
    Files.write(file, Arrays.copyOf(bytes, bytes.length - 60));
    try (SpoolReader reader = new SpoolReader(Spools.open(file.toString()))) {
      assertTrue(reader.next());
      assertThrows(IOException.class, reader::next);
    }
    Files.delete(file);
    var request = Json.read("{\"token\": \"t\", \"files\": [\"" + file + "\"]}");
    assertThrows(NoSuchFileException.class, () -> SpoolTable.relation(request));
  }
}
