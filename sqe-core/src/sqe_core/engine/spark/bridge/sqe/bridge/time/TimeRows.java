package sqe.bridge.time;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters;
import org.apache.spark.sql.catalyst.util.ArrayBasedMapData;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.catalyst.util.MapData;
import org.apache.spark.sql.types.*;

/** Rows with times from the microseconds of files to the nanoseconds that Spark counts, and back. */
final class TimeRows {
  static final long NANOS_PER_MICRO = 1000;

  private final DataType[] types;
  private final boolean[] timed; // whether a time is in the column, at any depth
  private final boolean reading;

  /** `reading` is from files to Spark. */
  TimeRows(StructType type, boolean reading) {
    this.reading = reading;
    types = new DataType[type.length()];
    timed = new boolean[types.length];
    for (int i = 0; i < types.length; i++) {
      types[i] = type.fields()[i].dataType();
      timed[i] = TimeTypes.hasTime(types[i]);
    }
  }

  InternalRow converted(InternalRow row) {
    Object[] values = new Object[types.length];
    for (int i = 0; i < values.length; i++)
      if (!row.isNullAt(i)) values[i] = timed[i] ? value(row, i, types[i]) : row.get(i, types[i]);
    return new GenericInternalRow(values);
  }

  private Object value(SpecializedGetters from, int place, DataType type) {
    if (from.isNullAt(place)) return null;
    if (type instanceof TimeType) {
      long time = from.getLong(place);
      return reading ? time * NANOS_PER_MICRO : time / NANOS_PER_MICRO;
    }
    if (type instanceof ArrayType arrayType) return array(from.getArray(place), arrayType.elementType());
    if (type instanceof MapType mapType) {
      MapData map = from.getMap(place);
      return new ArrayBasedMapData(
          array(map.keyArray(), mapType.keyType()), array(map.valueArray(), mapType.valueType()));
    }
    if (!(type instanceof StructType struct)) return from.get(place, type);
    InternalRow row = from.getStruct(place, struct.length());
    Object[] fields = new Object[struct.length()];
    for (int i = 0; i < fields.length; i++) fields[i] = value(row, i, struct.fields()[i].dataType());
    return new GenericInternalRow(fields);
  }

  private ArrayData array(ArrayData before, DataType type) {
    Object[] values = new Object[before.numElements()];
    for (int i = 0; i < values.length; i++) values[i] = value(before, i, type);
    return new GenericArrayData(values);
  }
}
