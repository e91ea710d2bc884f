package sqe.bridge.stream;

import org.apache.arrow.vector.FixedSizeBinaryVector;
import org.apache.arrow.vector.IntervalMonthDayNanoVector;
import org.apache.arrow.vector.TimeMicroVector;
import org.apache.arrow.vector.TimeStampVector;
import org.apache.arrow.vector.ValueVector;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.arrow.vector.complex.ListVector;
import org.apache.arrow.vector.complex.MapVector;
import org.apache.arrow.vector.complex.StructVector;
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters;
import org.apache.spark.sql.execution.arrow.ArrayWriter;
import org.apache.spark.sql.execution.arrow.ArrowFieldWriter;
import org.apache.spark.sql.execution.arrow.ArrowWriter;
import org.apache.spark.sql.execution.arrow.ArrowWriter$;
import org.apache.spark.sql.execution.arrow.MapWriter;
import org.apache.spark.sql.execution.arrow.StructWriter;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimeType;
import org.apache.spark.sql.types.YearMonthIntervalType;

/** Writes Spark's values into the vectors that `ArrowTypes` chose; Spark's own writers know one vector for each type. */
final class ArrowWriters {
  private static final long NANOS_PER_MICRO = 1000;

  private ArrowWriters() {}

  static ArrowWriter into(VectorSchemaRoot root, StructType type) {
    ArrowFieldWriter[] writers = new ArrowFieldWriter[type.length()];
    for (int i = 0; i < writers.length; i++) writers[i] = writer(root.getVector(i), type.fields()[i].dataType());
    return new ArrowWriter(root, writers);
  }

  private static ArrowFieldWriter writer(ValueVector vector, DataType type) {
    if (type instanceof TimeType) return new Times((TimeMicroVector) vector);
    if (type instanceof YearMonthIntervalType) return new Months((IntervalMonthDayNanoVector) vector);
    if (type instanceof LongType && vector instanceof TimeStampVector stampVector) return new Nanoseconds(stampVector);
    if (vector instanceof FixedSizeBinaryVector binaryVector) return new Fixed(binaryVector);
    if (type instanceof MapType mapType) {
      MapVector map = (MapVector) vector;
      StructVector entries = (StructVector) map.getDataVector();
      return new MapWriter(
          map,
          entries,
          writer(entries.getChildByOrdinal(0), mapType.keyType()),
          writer(entries.getChildByOrdinal(1), mapType.valueType()));
    }
    if (type instanceof ArrayType arrayType) {
      ListVector list = (ListVector) vector;
      return new ArrayWriter(list, writer(list.getDataVector(), arrayType.elementType()));
    }
    if (!(type instanceof StructType)) return ArrowWriter$.MODULE$.createFieldWriter(vector);
    StructVector struct = (StructVector) vector;
    ArrowFieldWriter[] fields = new ArrowFieldWriter[((StructType) type).length()];
    for (int i = 0; i < fields.length; i++)
      fields[i] = writer(struct.getChildByOrdinal(i), ((StructType) type).fields()[i].dataType());
    return new StructWriter(struct, fields);
  }

  private static final class Times extends ArrowFieldWriter {
    private final TimeMicroVector vector;

    Times(TimeMicroVector vector) {
      this.vector = vector;
    }

    public ValueVector valueVector() {
      return vector;
    }

    public void setNull() {
      vector.setNull(count());
    }

    public void setValue(SpecializedGetters row, int place) {
      vector.setSafe(count(), row.getLong(place) / NANOS_PER_MICRO);
    }
  }

  private static final class Months extends ArrowFieldWriter {
    private final IntervalMonthDayNanoVector vector;

    Months(IntervalMonthDayNanoVector vector) {
      this.vector = vector;
    }

    public ValueVector valueVector() {
      return vector;
    }

    public void setNull() {
      vector.setNull(count());
    }

    public void setValue(SpecializedGetters row, int place) {
      vector.setSafe(count(), row.getInt(place), 0, 0L);
    }
  }

  private static final class Nanoseconds extends ArrowFieldWriter {
    private final TimeStampVector vector;

    Nanoseconds(TimeStampVector vector) {
      this.vector = vector;
    }

    public ValueVector valueVector() {
      return vector;
    }

    public void setNull() {
      vector.setNull(count());
    }

    public void setValue(SpecializedGetters row, int place) {
      vector.setSafe(count(), row.getLong(place));
    }
  }

  private static final class Fixed extends ArrowFieldWriter {
    private final FixedSizeBinaryVector vector;

    Fixed(FixedSizeBinaryVector vector) {
      this.vector = vector;
    }

    public ValueVector valueVector() {
      return vector;
    }

    public void setNull() {
      vector.setNull(count());
    }

    public void setValue(SpecializedGetters row, int place) {
      vector.setSafe(count(), row.getBinary(place));
    }
  }
}
