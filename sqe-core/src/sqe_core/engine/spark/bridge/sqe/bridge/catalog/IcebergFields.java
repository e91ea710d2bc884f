package sqe.bridge.catalog;

import java.lang.reflect.Field;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.Schema;
import org.apache.iceberg.spark.TimeTravel;
import org.apache.iceberg.spark.source.SparkTable;
import org.apache.iceberg.util.SnapshotUtil;
import sqe.bridge.BridgeException;
import sqe.bridge.time.TimesTable;

/** What Iceberg's classes keep to themselves. */
public final class IcebergFields {
  private IcebergFields() {}

  /** The version that a table was loaded at by a clause or a selector, or null for the current one. */
  static TimeTravel timeTravel(SparkTable table) {
    try {
      return (TimeTravel) field().get(table);
    } catch (ReflectiveOperationException otherIceberg) {
      throw new BridgeException("SQE_OTHER_ICEBERG", String.valueOf(otherIceberg));
    }
  }

  public static boolean isTimeTravel(SparkTable table) {
    try {
      return field().get(table) != null;
    } catch (ReflectiveOperationException otherIceberg) {
      return true; // whoever expects no version refuses
    }
  }

  /** The columns that a table shows, at the version it was loaded at. */
  public static Schema schema(SparkTable table) {
    if (table instanceof TimesTable timesTable) return timesTable.version;
    boolean older = table.table() instanceof BaseTable && isTimeTravel(table) && table.snapshotId() != null;
    return older ? SnapshotUtil.schemaFor(table.table(), table.snapshotId()) : table.table().schema();
  }

  private static Field field() throws ReflectiveOperationException {
    Field field = SparkTable.class.getDeclaredField("timeTravel");
    field.setAccessible(true);
    return field;
  }
}
