package sqe.bridge.time;

import java.util.Set;
import org.apache.iceberg.Schema;
import org.apache.iceberg.Transaction;
import org.apache.iceberg.spark.source.SparkTable;
import org.apache.iceberg.spark.source.StagedSparkTable;
import org.apache.spark.sql.connector.catalog.CatalogV2Util;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.MetadataColumn;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.read.SupportsPushDownRequiredColumns;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.RowLevelOperationBuilder;
import org.apache.spark.sql.connector.write.RowLevelOperationInfo;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import sqe.bridge.catalog.Operations;

/**
 * A table with times or nanoseconds, for Spark: times are TIME, nanosecond timestamps BIGINT (Spark has microseconds). It
 * takes no filters, since Iceberg would compare them with other units, and its rows are read and added, not changed.
 *
 * Only its scans and writes see the table with plain types. Whoever asks for the Iceberg table, as compaction does, gets
 * the real one, which Spark can neither read nor write.
 */
public final class TimesTable extends SparkTable {
  /** The table with plain types, at the chosen version. */
  public final SparkTable plain;

  /** Its columns in Iceberg's own types. */
  public final Schema version;

  private final StructType schema;

  public TimesTable(org.apache.iceberg.Table original, Schema version, SparkTable plain) {
    super(original);
    this.plain = plain;
    this.version = version;
    this.schema = (StructType) TimeTypes.withTimes(plain.schema(), version.asStruct());
  }

  public StructType schema() {
    return schema;
  }

  public Column[] columns() {
    return CatalogV2Util.structTypeToV2Columns(schema);
  }

  public Set<TableCapability> capabilities() {
    return Set.of(TableCapability.BATCH_READ, TableCapability.BATCH_WRITE, TableCapability.TRUNCATE);
  }

  public MetadataColumn[] metadataColumns() {
    return new MetadataColumn[0]; // some have the type of the partition, which may be such a type again
  }

  public Long snapshotId() {
    return plain == null ? null : plain.snapshotId();
  }

  public String branch() {
    return plain == null ? null : plain.branch();
  }

  public SparkTable copyWithBranch(String branch) {
    return new TimesTable(table(), table().schema(), plain.copyWithBranch(branch));
  }

  public boolean equals(Object other) {
    return other instanceof TimesTable tt && plain.equals(tt.plain);
  }

  public int hashCode() {
    return plain.hashCode();
  }

  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
    return new Builder(plain.newScanBuilder(options), version);
  }

  public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
    return TimeWrite.builder(this, info);
  }

  public RowLevelOperationBuilder newRowLevelOperationBuilder(RowLevelOperationInfo info) {
    Operations.refuse(this, info.command() + " while it has times or nanoseconds");
    return null;
  }

  private record Builder(ScanBuilder inner, Schema version) implements SupportsPushDownRequiredColumns {
    public void pruneColumns(StructType required) {
      ((SupportsPushDownRequiredColumns) inner).pruneColumns((StructType) TimeTypes.withIntegers(required));
    }

    public Scan build() {
      Scan scan = inner.build();
      return new TimeScan(scan, (StructType) TimeTypes.withTimes(scan.readSchema(), version.asStruct()));
    }
  }

  /** A table that is made with its first rows, with times or nanoseconds or without. */
  public static StagedSparkTable staged(Transaction transaction) {
    if (PlainTypes.areAll(transaction.table().schema())) return new StagedSparkTable(transaction);
    SparkTable plain = new SparkTable(PlainTypes.over(transaction.table()));
    return new Staged(transaction, new TimesTable(transaction.table(), transaction.table().schema(), plain));
  }

  private static final class Staged extends StagedSparkTable {
    private final TimesTable table;

    Staged(Transaction transaction, TimesTable table) {
      super(transaction);
      this.table = table;
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
}
