package sqe.bridge.catalog;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import org.apache.iceberg.BlobMetadata;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.FileScanTask;
import org.apache.iceberg.StatisticsFile;
import org.apache.iceberg.Table;
import org.apache.iceberg.io.CloseableIterable;
import org.apache.iceberg.transforms.Transforms;
import org.apache.iceberg.types.Comparators;
import org.apache.iceberg.types.Conversions;
import org.apache.iceberg.types.Type;
import org.apache.iceberg.types.Type.TypeID;
import org.apache.iceberg.types.Types;
import sqe.bridge.Json;

/** What the metadata of a table tells of its rows and columns; no file of rows is read, and no job runs. */
final class TableStatistics {
  private static final Set<TypeID> BOUNDED =
      Set.of(TypeID.INTEGER, TypeID.LONG, TypeID.FLOAT, TypeID.DOUBLE, TypeID.DECIMAL, TypeID.DATE, TypeID.TIMESTAMP);
  private static final Set<TypeID> SIZED = Set.of(TypeID.STRING, TypeID.BINARY, TypeID.FIXED);

  private final Table table;
  private final Map<Integer, Long> sizes = new HashMap<>();
  private final Map<Integer, Long> nulls = new HashMap<>();
  private final Map<Integer, Object> lows = new HashMap<>();
  private final Map<Integer, Object> highs = new HashMap<>();
  private final Set<Integer> unknown = new HashSet<>(); // columns of which a file says nothing
  private long rows;

  private TableStatistics(Table table) {
    this.table = table;
  }

  static String json(Table table) throws IOException {
    TableStatistics found = new TableStatistics(table);
    try (CloseableIterable<FileScanTask> tasks = table.newScan().includeColumnStats().planFiles()) {
      for (FileScanTask task : tasks) if (task.start() == 0) found.add(task.file());
    }
    return found.json();
  }

  private void add(DataFile file) {
    rows += file.recordCount();
    for (Types.NestedField field : table.schema().columns()) {
      int id = field.fieldId();
      Long absent = file.nullValueCounts() == null ? null : file.nullValueCounts().get(id);
      if (absent == null) unknown.add(id);
      else nulls.merge(id, absent, Long::sum);
      if (file.columnSizes() != null && file.columnSizes().containsKey(id))
        sizes.merge(id, file.columnSizes().get(id), Long::sum);
      boolean empty = absent != null && absent == file.recordCount();
      bound(lows, field, file.lowerBounds(), -1, empty);
      bound(highs, field, file.upperBounds(), 1, empty);
    }
  }

  /** Keeps the lowest bound for a `sign` of -1, the highest for 1. */
  private void bound(
      Map<Integer, Object> bounds, Types.NestedField field, Map<Integer, ByteBuffer> of, int sign, boolean empty) {
    if (!BOUNDED.contains(field.type().typeId())) return;
    ByteBuffer written = of == null ? null : of.get(field.fieldId());
    if (written == null) {
      if (!empty) unknown.add(field.fieldId());
      return;
    }
    Comparator<Object> order = Comparators.forType((Type.PrimitiveType) field.type());
    Object value = Conversions.fromByteBuffer(field.type(), written);
    bounds.merge(field.fieldId(), value, (one, other) -> sign * order.compare(one, other) >= 0 ? one : other);
  }

  private String json() {
    Map<Integer, Long> distinct = distinct();
    StringBuilder out = new StringBuilder("{");
    Json.member(out, "rows").append(rows);
    Json.array(
        Json.member(out, "columns"),
        table.schema().columns(),
        field -> {
          int id = field.fieldId();
          out.append('{');
          Json.member(out, "name", field.name());
          if (SIZED.contains(field.type().typeId()) && sizes.containsKey(id)) Json.member(out, "size").append(sizes.get(id));
          if (distinct.containsKey(id)) Json.member(out, "distinct").append(distinct.get(id));
          if (!unknown.contains(id)) {
            if (nulls.containsKey(id)) Json.member(out, "nulls").append(nulls.get(id));
            if (lows.containsKey(id)) Json.member(out, "low", text(field.type(), lows.get(id)));
            if (highs.containsKey(id)) Json.member(out, "high", text(field.type(), highs.get(id)));
          }
          out.append('}');
        });
    return out.append('}').toString();
  }

  private static String text(Type type, Object value) {
    return Transforms.identity().toHumanString(type, value);
  }

  /** How many values there are of each column, where somebody counted them for the current snapshot. */
  private Map<Integer, Long> distinct() {
    Map<Integer, Long> found = new HashMap<>();
    if (table.currentSnapshot() == null) return found;
    for (StatisticsFile file : table.statisticsFiles()) {
      if (file.snapshotId() != table.currentSnapshot().snapshotId()) continue;
      for (BlobMetadata blob : file.blobMetadata()) {
        String count = blob.properties().get("ndv");
        if (count != null && blob.fields().size() == 1) found.put(blob.fields().get(0), Long.parseLong(count));
      }
    }
    return found;
  }
}
