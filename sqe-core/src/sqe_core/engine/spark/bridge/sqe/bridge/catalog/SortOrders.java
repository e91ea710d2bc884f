package sqe.bridge.catalog;

import com.fasterxml.jackson.databind.JsonNode;
import org.apache.iceberg.NullOrder;
import org.apache.iceberg.Schema;
import org.apache.iceberg.SortOrder;
import org.apache.iceberg.SortOrderBuilder;
import sqe.bridge.BridgeException;
import sqe.bridge.Json;

/** The sort order that a table is made with, which Spark's CREATE TABLE cannot say. */
final class SortOrders {
  /** A list of [column, "asc" or "desc", "first" or "last"]. It is for SQE's own parts and becomes no property of the table. */
  static final String PROPERTY = "sqe.sorted-by";

  private SortOrders() {}

  static SortOrder read(Schema schema, String written) {
    if (written == null) return SortOrder.unsorted();
    SortOrder.Builder order = SortOrder.builderFor(schema).caseSensitive(false);
    write(order, schema, written);
    return order.build();
  }

  static void write(SortOrderBuilder<?> order, Schema schema, String written) {
    for (JsonNode field : Json.read(written)) {
      String column = field.get(0).asText();
      if (schema.caseInsensitiveFindField(column) == null) throw new BridgeException("SQE_NO_SORT_COLUMN", column);
      NullOrder nulls = field.get(2).asText().equals("first") ? NullOrder.NULLS_FIRST : NullOrder.NULLS_LAST;
      if (field.get(1).asText().equals("desc")) order.desc(column, nulls);
      else order.asc(column, nulls);
    }
  }
}
