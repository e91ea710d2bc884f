package sqe.bridge;

import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.Map;
import java.util.Set;
import org.apache.iceberg.Schema;
import org.apache.iceberg.spark.source.SparkTable;
import org.apache.iceberg.types.Types;
import org.apache.spark.sql.AnalysisException;
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
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimeType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.apache.spark.unsafe.Platform;

/**
 * A table with times or nanoseconds, for Spark: times are TIME, nanosecond timestamps BIGINT (Spark has microseconds). It
 * takes no filters, since Iceberg would compare them with other units, and no rows, since they would be stored as integers.
 *
 * Only its scans read the table with plain types. Whoever asks for the Iceberg table, as compaction does, gets the real
 * one, which Spark can neither read nor write.
 */
final class ReadOnlyTable extends SparkTable {
  private static final TimeType TIME = new TimeType(6);

  /** The table with plain types, at the chosen version. */
  final SparkTable plain;

  private final StructType schema;
  private final Set special = new HashSet(); // the columns of such types, or with one inside

  ReadOnlyTable(org.apache.iceberg.Table original, Schema version, SparkTable plain) {
    super(original);
    this.plain = plain;
    this.schema = withTimes(plain.schema(), times(version));
    for (Iterator each = version.columns().iterator(); each.hasNext(); ) {
      Types.NestedField field = (Types.NestedField) each.next();
      if (!PlainTypes.areAll(new Schema(Collections.singletonList(field)))) special.add(field.name());
    }
  }

  /** The names of the columns that are times; those inside of structs stay integers. */
  private static Map times(Schema original) {
    Map times = new HashMap();
    for (Iterator each = original.columns().iterator(); each.hasNext(); ) {
      Types.NestedField field = (Types.NestedField) each.next();
      if (field.type() instanceof Types.TimeType) times.put(field.name(), Boolean.TRUE);
    }
    return times;
  }

  private static StructType withTimes(StructType type, Map times) {
    StructField[] fields = new StructField[type.length()];
    for (int i = 0; i < fields.length; i++) {
      StructField field = type.fields()[i];
      fields[i] =
          times.containsKey(field.name()) ? new StructField(field.name(), TIME, field.nullable(), field.metadata()) : field;
    }
    return new StructType(fields);
  }

  static StructType withIntegers(StructType type) {
    StructField[] fields = new StructField[type.length()];
    for (int i = 0; i < fields.length; i++) {
      StructField field = type.fields()[i];
      fields[i] =
          field.dataType() instanceof TimeType
              ? new StructField(field.name(), DataTypes.LongType, field.nullable(), field.metadata())
              : field;
    }
    return new StructType(fields);
  }

  public StructType schema() {
    return schema;
  }

  public Column[] columns() {
    return CatalogV2Util.structTypeToV2Columns(schema);
  }

  public Set capabilities() {
    return Collections.singleton(TableCapability.BATCH_READ);
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
    return new ReadOnlyTable(table(), table().schema(), plain.copyWithBranch(branch));
  }

  public boolean equals(Object other) {
    return other instanceof ReadOnlyTable && plain.equals(((ReadOnlyTable) other).plain);
  }

  public int hashCode() {
    return plain.hashCode();
  }

  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
    return new Builder(plain.newScanBuilder(options), schema, special);
  }

  public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
    refuse("writes to tables with times or nanoseconds");
    return null;
  }

  public RowLevelOperationBuilder newRowLevelOperationBuilder(RowLevelOperationInfo info) {
    refuse(info.command() + " on tables with times or nanoseconds");
    return null;
  }

  private void refuse(String operation) {
    scala.collection.immutable.Map parameters = scala.collection.immutable.Map$.MODULE$.empty();
    parameters = (scala.collection.immutable.Map) parameters.updated("tableName", name());
    parameters = (scala.collection.immutable.Map) parameters.updated("operation", operation);
    Platform.throwException(new AnalysisException("UNSUPPORTED_FEATURE.TABLE_OPERATION", parameters));
  }

  private static final class Builder implements SupportsPushDownRequiredColumns {
    private final ScanBuilder inner;
    private final Set special;
    private StructType wanted;

    Builder(ScanBuilder inner, StructType wanted, Set special) {
      this.inner = inner;
      this.wanted = wanted;
      this.special = special;
    }

    public void pruneColumns(StructType required) {
      wanted = required;
      ((SupportsPushDownRequiredColumns) inner).pruneColumns(withIntegers(required));
    }

    public Scan build() {
      requireColumnar();
      Scan scan = inner.build();
      Map times = new HashMap();
      for (int i = 0; i < wanted.length(); i++)
        if (wanted.fields()[i].dataType() instanceof TimeType) times.put(wanted.fields()[i].name(), Boolean.TRUE);
      return new TimeScan(scan, withTimes(scan.readSchema(), times));
    }

    /** Iceberg reads such values by the column only, and never together with an array, a map or a struct. */
    private void requireColumnar() {
      boolean found = false;
      boolean complex = false;
      for (int i = 0; i < wanted.length(); i++) {
        StructField field = wanted.fields()[i];
        DataType type = field.dataType();
        complex = complex || type instanceof StructType || type instanceof ArrayType || type instanceof MapType;
        found = found || special.contains(field.name());
      }
      if (found && complex)
        throw new BridgeException("SQE_TIMES_BESIDE_NESTED", "columns of nested types beside times or nanoseconds");
    }
  }
}
