package sqe.bridge.time;

import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.iceberg.FileFormat;
import org.apache.iceberg.Schema;
import org.apache.iceberg.formats.BaseFormatModel;
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
import sqe.bridge.BridgeException;

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
    try {
      Method models = FormatModelRegistry.class.getDeclaredMethod("models", new Class[0]);
      models.setAccessible(true);
      Map known = (Map) models.invoke(null, new Object[0]);
      Object rows = known.get(Pair.of(FileFormat.PARQUET, InternalRow.class));
      Field writer = BaseFormatModel.class.getDeclaredField("writerFunction");
      writer.setAccessible(true);
      writer.set(rows, new Writer((BaseFormatModel.WriterFunction) writer.get(rows)));
      readPlain(rows);
      readPlain(known.get(Pair.of(FileFormat.PARQUET, ColumnarBatch.class)));
      installed = true;
    } catch (ReflectiveOperationException otherIceberg) {
      throw new BridgeException("SQE_OTHER_ICEBERG", String.valueOf(otherIceberg));
    }
  }

  private static void readPlain(Object model) throws ReflectiveOperationException {
    Field reader = BaseFormatModel.class.getDeclaredField("readerFunction");
    reader.setAccessible(true);
    reader.set(model, new Reader((BaseFormatModel.ReaderFunction) reader.get(model)));
  }

  private record Reader(BaseFormatModel.ReaderFunction inner) implements BaseFormatModel.ReaderFunction {
    public Object read(Schema wanted, Object file, Object engine, Map constants) {
      return inner.read(wanted, plain((MessageType) file, wanted), engine, constants);
    }
  }

  private record Writer(BaseFormatModel.WriterFunction inner) implements BaseFormatModel.WriterFunction {
    public Object write(Schema table, Object file, Object engine) {
      return inner.write(table, plain((MessageType) file, table), engine);
    }
  }

  private static MessageType plain(MessageType file, Schema schema) {
    List fields = fields(file, schema);
    return fields == null ? file : new MessageType(file.getName(), fields);
  }

  /** The fields, some of them without their annotation; null when all of them are as they were. */
  private static List fields(GroupType group, Schema schema) {
    List fields = new ArrayList();
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
    List fields = fields(group, schema);
    return fields == null ? group : group.withNewFields(fields);
  }

  private static Type plain(PrimitiveType column, Schema schema) {
    LogicalTypeAnnotation annotation = column.getLogicalTypeAnnotation();
    boolean special =
        annotation instanceof LogicalTypeAnnotation.TimeLogicalTypeAnnotation
            || (annotation instanceof LogicalTypeAnnotation.TimestampLogicalTypeAnnotation tlta
                && tlta.getUnit()
                    == LogicalTypeAnnotation.TimeUnit.NANOS);
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
