package sqe.bridge.time;

import java.util.Set;
import org.apache.iceberg.Transaction;
import org.apache.iceberg.spark.source.SparkTable;
import org.apache.iceberg.spark.source.StagedSparkTable;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.types.StructType;

/** A table with times or nanoseconds that is made with its first rows. */
public final class StagedTimesTable extends StagedSparkTable {
  private final TimesTable table;

  private StagedTimesTable(Transaction transaction, TimesTable table) {
    super(transaction);
    this.table = table;
  }

  public static StagedSparkTable of(Transaction transaction) {
    if (PlainTypes.areAll(transaction.table().schema())) return new StagedSparkTable(transaction);
    SparkTable plain = new SparkTable(PlainTypes.over(transaction.table()));
    return new StagedTimesTable(transaction, new TimesTable(transaction.table(), transaction.table().schema(), plain));
  }

  public StructType schema() {
    return table.schema();
  }

  public Column[] columns() {
    return table.columns();
  }

  public Set<TableCapability> capabilities() {
    return table.capabilities();
  }

  public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
    return table.newWriteBuilder(info);
  }
}
