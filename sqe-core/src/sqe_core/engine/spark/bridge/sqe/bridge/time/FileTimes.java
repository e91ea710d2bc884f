package sqe.bridge.time;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.iceberg.FileFormat;
import org.apache.iceberg.Schema;
import org.apache.iceberg.common.DynFields;
import org.apache.iceberg.common.DynMethods;
import org.apache.iceberg.formats.BaseFormatModel;
import org.apache.iceberg.formats.BaseFormatModel.ReaderFunction;
import org.apache.iceberg.formats.BaseFormatModel.WriterFunction;
import org.apache.iceberg.formats.FormatModelRegistry;
import org.apache.iceberg.shaded.org.apache.parquet.schema.GroupType;
import org.apache.iceberg.shaded.org.apache.parquet.schema.LogicalTypeAnnotation;
import org.apache.iceberg.shaded.org.apache.parquet.schema.MessageType;
import org.apache.iceberg.shaded.org.apache.parquet.schema.PrimitiveType;
import org.apache.iceberg.shaded.org.apache.parquet.schema.Type;
import org.apache.iceberg.types.Types;
import org.apache.iceberg.util.Pair;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/**
 * Lets Iceberg's readers and writers for Spark take times and nanoseconds of Parquet files for the integers that they are
 * there. They know every other annotation of a column and refuse these two.
 */
final class FileTimes {
  private static boolean installed;

  private FileTimes() {}

  /** In each JVM that reads or writes, before it does. */
  static synchronized void install() {
    if (installed) return;
    Map<Pair<FileFormat, Class<?>>, Object> models =
        DynMethods.builder("models").hiddenImpl(FormatModelRegistry.class).buildStatic().invoke();
    Object rows = models.get(Pair.of(FileFormat.PARQUET, InternalRow.class));
    DynFields.BoundField<WriterFunction<Object, Object, MessageType>> writer = field("writerFunction", rows);
    WriterFunction<Object, Object, MessageType> usual = writer.get();
    writer.set((table, file, engine) -> usual.write(table, plain(file, table), engine));
    readPlain(rows);
    readPlain(models.get(Pair.of(FileFormat.PARQUET, ColumnarBatch.class)));
    installed = true;
  }

  private static void readPlain(Object model) {
    DynFields.BoundField<ReaderFunction<Object, Object, MessageType>> reader = field("readerFunction", model);
    ReaderFunction<Object, Object, MessageType> usual = reader.get();
    reader.set((wanted, file, engine, constants) -> usual.read(wanted, plain(file, wanted), engine, constants));
  }

  private static <T> DynFields.BoundField<T> field(String name, Object model) {
    return DynFields.builder().hiddenImpl(BaseFormatModel.class, name).build(model);
  }

  private static MessageType plain(MessageType file, Schema schema) {
    List<Type> fields = fields(file, schema);
    return fields == null ? file : new MessageType(file.getName(), fields);
  }

  /** The fields, some of them without their annotation; null when all of them are as they were. */
  private static List<Type> fields(GroupType group, Schema schema) {
    List<Type> fields = new ArrayList<>();
    boolean changed = false;
    for (int i = 0; i < group.getFieldCount(); i++) {
      Type before = group.getType(i);
      Type after = before.isPrimitive() ? plain(before.asPrimitiveType(), schema) : plain(before.asGroupType(), schema);
      changed = changed || after != before;
      fields.add(after);
    }
    return changed ? fields : null;
  }

  private static Type plain(GroupType group, Schema schema) {
    List<Type> fields = fields(group, schema);
    return fields == null ? group : group.withNewFields(fields);
  }

  private static Type plain(PrimitiveType column, Schema schema) {
    LogicalTypeAnnotation annotation = column.getLogicalTypeAnnotation();
    boolean special =
        annotation instanceof LogicalTypeAnnotation.TimeLogicalTypeAnnotation
            || annotation instanceof LogicalTypeAnnotation.TimestampLogicalTypeAnnotation stamp
                && stamp.getUnit() == LogicalTypeAnnotation.TimeUnit.NANOS;
    if (!special || column.getId() == null) return column;
    org.apache.iceberg.types.Type wanted = schema.findType(column.getId().intValue());
    boolean integer =
        wanted == null // a column that is not asked for, which readers are made for all the same
            || wanted instanceof Types.LongType
            || wanted instanceof Types.TimeType
            || wanted instanceof Types.TimestampNanoType;
    return integer ? column.withLogicalTypeAnnotation(null) : column;
  }
}
