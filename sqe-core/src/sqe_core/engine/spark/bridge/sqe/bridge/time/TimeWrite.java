package sqe.bridge.time;

import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.iceberg.PartitionField;
import org.apache.iceberg.Schema;
import org.apache.iceberg.TableProperties;
import org.apache.iceberg.common.DynFields;
import org.apache.iceberg.spark.SparkWriteOptions;
import org.apache.iceberg.types.Types;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.distributions.Distribution;
import org.apache.spark.sql.connector.expressions.SortOrder;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.write.*;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import sqe.bridge.BridgeException;

/**
 * A write of rows with times or nanoseconds. Iceberg's own is planned over the table with plain types and told the real
 * ones last, since it asks Spark for them before, which has no words for them; so files say what they hold.
 */
final class TimeWrite implements RequiresDistributionAndOrdering {
  private static final String SCHEMA = "writeSchema"; // of Iceberg's write, whose class is derived from where it stands

  private final RequiresDistributionAndOrdering inner;
  private final StructType type;

  private TimeWrite(RequiresDistributionAndOrdering inner, StructType type) {
    this.inner = inner;
    this.type = type;
  }

  static WriteBuilder builder(TimesTable table, LogicalWriteInfo info) {
    StructType plain = (StructType) TimeTypes.withIntegers(info.schema());
    LogicalWriteInfo told =
        new LogicalWriteInfoImpl(info.queryId(), plain, options(table, info), info.rowIdSchema(), info.metadataSchema());
    return new Builder(table.plain.newWriteBuilder(told), table.version, info.schema());
  }

  private static CaseInsensitiveStringMap options(TimesTable table, LogicalWriteInfo info) {
    Map<String, String> options = new HashMap<>(info.options().asCaseSensitiveMap());
    String usual = table.table().properties().get(TableProperties.DEFAULT_FILE_FORMAT);
    String asked = info.options().get(SparkWriteOptions.WRITE_FORMAT);
    String format = asked != null ? asked : usual == null ? "parquet" : usual;
    if (format.equalsIgnoreCase("avro")) throw new BridgeException("SQE_TIMES_IN_AVRO", "times in Avro files");
    if (hasComputedPartitions(table)) {
      // Spark cannot compute a bucket of a time, so rows come in any order and Iceberg keeps each partition's file open.
      options.put(SparkWriteOptions.DISTRIBUTION_MODE, "none");
      options.put(SparkWriteOptions.FANOUT_ENABLED, "true");
    }
    return new CaseInsensitiveStringMap(options);
  }

  private static boolean hasComputedPartitions(TimesTable table) {
    for (PartitionField field : table.table().spec().fields()) {
      Types.NestedField source = table.version.findField(field.sourceId());
      boolean plain = source == null || PlainTypes.areAll(new Schema(source));
      if (!plain && !field.transform().isIdentity()) return true;
    }
    return false;
  }

  /** Adds rows, or puts them in the place of all there are. */
  private record Builder(WriteBuilder inner, Schema version, StructType rows) implements SupportsTruncate {
    public WriteBuilder truncate() {
      ((SupportsTruncate) inner).truncate();
      return this;
    }

    public Write build() {
      RequiresDistributionAndOrdering write = (RequiresDistributionAndOrdering) inner.build();
      Class<?> type = write.getClass();
      DynFields.BoundField<Schema> schema =
          DynFields.builder().hiddenImpl(type, SCHEMA).hiddenImpl(type.getSuperclass(), SCHEMA).build(write);
      schema.set(real(schema.get()));
      return new TimeWrite(write, rows);
    }

    private Schema real(Schema written) {
      List<Types.NestedField> fields = new ArrayList<>();
      for (Types.NestedField field : written.columns()) {
        Types.NestedField original = version.findField(field.fieldId());
        fields.add(original == null ? field : original);
      }
      return new Schema(written.schemaId(), fields);
    }
  }

  public String description() {
    return inner.description();
  }

  public Distribution requiredDistribution() {
    return inner.requiredDistribution();
  }

  public boolean distributionStrictlyRequired() {
    return inner.distributionStrictlyRequired();
  }

  public int requiredNumPartitions() {
    return inner.requiredNumPartitions();
  }

  public long advisoryPartitionSizeInBytes() {
    return inner.advisoryPartitionSizeInBytes();
  }

  public SortOrder[] requiredOrdering() {
    return inner.requiredOrdering();
  }

  public CustomMetric[] supportedCustomMetrics() {
    return inner.supportedCustomMetrics();
  }

  public CustomTaskMetric[] reportDriverMetrics() {
    return inner.reportDriverMetrics();
  }

  public BatchWrite toBatch() {
    return new Rows(inner.toBatch(), type);
  }

  private record Rows(BatchWrite inner, StructType type) implements BatchWrite {
    public DataWriterFactory createBatchWriterFactory(PhysicalWriteInfo info) {
      return new Factory(inner.createBatchWriterFactory(info), type);
    }

    public boolean useCommitCoordinator() {
      return inner.useCommitCoordinator();
    }

    public void onDataWriterCommit(WriterCommitMessage message) {
      inner.onDataWriterCommit(message);
    }

    public void commit(WriterCommitMessage[] messages) {
      inner.commit(messages);
    }

    public void commit(WriterCommitMessage[] messages, WriteSummary summary) {
      inner.commit(messages, summary);
    }

    public void abort(WriterCommitMessage[] messages) {
      inner.abort(messages);
    }
  }

  private record Factory(DataWriterFactory inner, StructType type) implements DataWriterFactory {
    public DataWriter<InternalRow> createWriter(int partition, long task) {
      FileTimes.install();
      return new Writer((DataWriter<InternalRow>) inner.createWriter(partition, task), new TimeRows(type, false));
    }
  }

  private record Writer(DataWriter<InternalRow> inner, TimeRows rows) implements DataWriter<InternalRow> {
    public void write(InternalRow row) throws IOException {
      inner.write(rows.converted(row));
    }

    public WriterCommitMessage commit() throws IOException {
      return inner.commit();
    }

    public void abort() throws IOException {
      inner.abort();
    }

    public void close() throws IOException {
      inner.close();
    }

    public CustomTaskMetric[] currentMetricsValues() {
      return inner.currentMetricsValues();
    }
  }
}
