package sqe.bridge;

import java.util.Collections;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import org.apache.iceberg.Schema;
import org.apache.iceberg.spark.source.SparkTable;
import org.apache.iceberg.types.Type;
import org.apache.iceberg.types.Types;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.read.SupportsPushDownRequiredColumns;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimeType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * A table with times or nanoseconds, for Spark: times are TIME, nanosecond timestamps BIGINT (Spark has microseconds). It
 * takes no filters, since Iceberg would compare them with other units, and no writes, since they would store integers.
 */
final class ReadOnlyTable implements Table, SupportsRead {
  private static final TimeType TIME = new TimeType(6);

  /** The table with plain types, at the chosen version. */
  final SparkTable plain;

  private final StructType schema;

  ReadOnlyTable(SparkTable plain, Schema original) {
    this.plain = plain;
    this.schema = withTimes(plain.schema(), times(original));
  }

  /** The names of the columns that are times; those inside of structs stay integers. */
  private static Map times(Schema original) {
    Map times = new HashMap();
    for (java.util.Iterator each = original.columns().iterator(); each.hasNext(); ) {
      Types.NestedField field = (Types.NestedField) each.next();
      if (((Type) field.type()) instanceof Types.TimeType) times.put(field.name(), Boolean.TRUE);
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

  public String name() {
    return plain.name();
  }

  public StructType schema() {
    return schema;
  }

  public Transform[] partitioning() {
    return plain.partitioning();
  }

  public Map properties() {
    return plain.properties();
  }

  public Set capabilities() {
    return Collections.singleton(TableCapability.BATCH_READ);
  }

  public String toString() {
    return plain.toString();
  }

  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
    return new Builder(plain.newScanBuilder(options), schema);
  }

  private static final class Builder implements SupportsPushDownRequiredColumns {
    private final ScanBuilder inner;
    private StructType wanted;

    Builder(ScanBuilder inner, StructType wanted) {
      this.inner = inner;
      this.wanted = wanted;
    }

    public void pruneColumns(StructType required) {
      wanted = required;
      ((SupportsPushDownRequiredColumns) inner).pruneColumns(withIntegers(required));
    }

    public Scan build() {
      Scan scan = inner.build();
      Map times = new HashMap();
      for (int i = 0; i < wanted.length(); i++)
        if (wanted.fields()[i].dataType() instanceof TimeType) times.put(wanted.fields()[i].name(), Boolean.TRUE);
      return new TimeScan(scan, withTimes(scan.readSchema(), times));
    }
  }
}
