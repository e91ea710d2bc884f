package sqe.bridge.stream;

import org.apache.arrow.vector.BaseFixedWidthVector;
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
import org.apache.spark.sql.execution.arrow.*;
import org.apache.spark.sql.types.*;

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
    if (type instanceof TimeType)
      return new Fixed<>((TimeMicroVector) vector, (to, at, row, place) -> to.setSafe(at, row.getLong(place) / NANOS_PER_MICRO));
    if (type instanceof YearMonthIntervalType)
      return new Fixed<>((IntervalMonthDayNanoVector) vector, (to, at, row, place) -> to.setSafe(at, row.getInt(place), 0, 0L));
    if (type instanceof LongType && vector instanceof TimeStampVector nanos)
      return new Fixed<>(nanos, (to, at, row, place) -> to.setSafe(at, row.getLong(place)));
    if (vector instanceof FixedSizeBinaryVector bytes)
      return new Fixed<>(bytes, (to, at, row, place) -> to.setSafe(at, row.getBinary(place)));
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
    if (!(type instanceof StructType row)) return ArrowWriter$.MODULE$.createFieldWriter(vector);
    StructVector struct = (StructVector) vector;
    ArrowFieldWriter[] fields = new ArrowFieldWriter[row.length()];
    for (int i = 0; i < fields.length; i++) fields[i] = writer(struct.getChildByOrdinal(i), row.fields()[i].dataType());
    return new StructWriter(struct, fields);
  }

  /** Puts the value that a row has at a place into a vector. */
  private interface Setter<V> {
    void set(V vector, int at, SpecializedGetters row, int place);
  }

  private static final class Fixed<V extends BaseFixedWidthVector> extends ArrowFieldWriter {
    private final V vector;
    private final Setter<V> setter;

    Fixed(V vector, Setter<V> setter) {
      this.vector = vector;
      this.setter = setter;
    }

    public ValueVector valueVector() {
      return vector;
    }

    public void setNull() {
      vector.setNull(count());
    }

    public void setValue(SpecializedGetters row, int place) {
      setter.set(vector, count(), row, place);
    }
  }
}
