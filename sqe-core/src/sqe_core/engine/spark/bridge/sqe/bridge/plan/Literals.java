package sqe.bridge.plan;

import com.fasterxml.jackson.databind.JsonNode;
import java.math.BigDecimal;
import java.util.Base64;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.parser.CatalystSqlParser$;
import org.apache.spark.sql.catalyst.types.PhysicalDataType$;
import org.apache.spark.sql.catalyst.types.PhysicalDataType;
import org.apache.spark.sql.catalyst.types.PhysicalIntegerType;
import org.apache.spark.sql.catalyst.types.PhysicalLongType;
import org.apache.spark.sql.catalyst.util.ArrayBasedMapData;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.types.*;
import org.apache.spark.unsafe.types.UTF8String;
import sqe.bridge.BridgeException;

/**
 * Values from Python: `{"type": <Spark type>, "value": …}`. Dates are days, times nanoseconds, timestamps and intervals
 * microseconds, or months, decimals text, bytes base64, maps lists of pairs, rows lists.
 */
public final class Literals {
  private Literals() {}

  public static Literal read(JsonNode spec) {
    DataType type = CatalystSqlParser$.MODULE$.parseDataType(spec.get("type").asText());
    return new Literal(value(spec.get("value"), type), type);
  }

  static Object value(JsonNode json, DataType type) {
    if (json.isNull()) return null;
    if (type instanceof StringType) return UTF8String.fromString(json.asText());
    if (type instanceof BooleanType) return json.asBoolean();
    if (type instanceof ByteType) return (byte) json.asLong();
    if (type instanceof ShortType) return (short) json.asLong();
    PhysicalDataType kept = PhysicalDataType$.MODULE$.apply(type); // dates and months are INT there, times BIGINT
    if (kept instanceof PhysicalIntegerType) return (int) json.asLong();
    if (kept instanceof PhysicalLongType) return json.asLong();
    if (type instanceof FloatType) return Float.valueOf(json.asText());
    if (type instanceof DoubleType) return Double.valueOf(json.asText());
    if (type instanceof DecimalType decimal)
      return Decimal.apply(new BigDecimal(json.asText()), decimal.precision(), decimal.scale());
    if (type instanceof BinaryType) return Base64.getDecoder().decode(json.asText());
    if (type instanceof ArrayType arrayType) return new GenericArrayData(values(json, arrayType.elementType()));
    if (type instanceof StructType struct) {
      Object[] fields = new Object[struct.length()];
      for (int i = 0; i < fields.length; i++) fields[i] = value(json.get(i), struct.apply(i).dataType());
      return new GenericInternalRow(fields);
    }
    if (type instanceof MapType mapType) {
      Object[] keys = new Object[json.size()];
      Object[] values = new Object[json.size()];
      for (int i = 0; i < keys.length; i++) {
        keys[i] = value(json.get(i).get(0), mapType.keyType());
        values[i] = value(json.get(i).get(1), mapType.valueType());
      }
      return new ArrayBasedMapData(new GenericArrayData(keys), new GenericArrayData(values));
    }
    throw new BridgeException("SQE_PARAMETER_TYPE", "no values of type " + type.catalogString());
  }

  private static Object[] values(JsonNode array, DataType type) {
    Object[] values = new Object[array.size()];
    for (int i = 0; i < values.length; i++) values[i] = value(array.get(i), type);
    return values;
  }
}
