package sqe.bridge.catalog;

import org.apache.iceberg.BaseTable;
import org.apache.iceberg.Schema;
import org.apache.iceberg.common.DynFields;
import org.apache.iceberg.spark.TimeTravel;
import org.apache.iceberg.spark.source.SparkTable;
import org.apache.iceberg.util.SnapshotUtil;
import sqe.bridge.time.TimesTable;

/** What Iceberg's classes keep to themselves. */
public final class IcebergFields {
  private static final DynFields.UnboundField<TimeTravel> TIME_TRAVEL =
      DynFields.builder().hiddenImpl(SparkTable.class, "timeTravel").build();

  private IcebergFields() {}

  /** The version that a table was loaded at by a clause or a selector, or null for the current one. */
  public static TimeTravel timeTravel(SparkTable table) {
    return TIME_TRAVEL.get(table);
  }

  /** The columns that a table shows, at the version it was loaded at. */
  public static Schema schema(SparkTable table) {
    if (table instanceof TimesTable timesTable) return timesTable.version;
    boolean older = table.table() instanceof BaseTable && timeTravel(table) != null && table.snapshotId() != null;
    return older ? SnapshotUtil.schemaFor(table.table(), table.snapshotId()) : table.table().schema();
  }
}
