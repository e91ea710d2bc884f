package sqe.bridge.types;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.nio.ByteBuffer;
import org.apache.iceberg.types.Types;
import org.apache.spark.sql.catalyst.parser.CatalystSqlParser$;
import org.apache.spark.sql.types.DataType;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import sqe.bridge.BridgeException;
import sqe.bridge.functions.TypeClasses;
import sqe.bridge.functions.TypeNames;

class TypesTest {
  private static DataType spark(String text) {
    return CatalystSqlParser$.MODULE$.parseDataType(text);
  }

  @ParameterizedTest
  @CsvSource(delimiter = '|', value = {
    "int | integer", "bigint | bigint", "float | real", "string | varchar", "decimal(10,2) | decimal(10,2)",
    "array<map<string,double>> | array(map(varchar, double))", "struct<a:date,b:binary> | row(a date, b varbinary)",
    "timestamp_ntz | timestamp(6)", "timestamp_ltz | timestamp(6) with time zone", "void | unknown",
  })
  void namesOfUsers(String type, String expected) {
    assertEquals(expected, TypeNames.of(spark(type)));
  }

  @Test
  void icebergSaysMoreThanSpark() {
    assertEquals("uuid", TypeNames.of(spark("string"), Types.UUIDType.get()));
    assertEquals("fixed(4)", TypeNames.of(spark("binary"), Types.FixedType.ofLength(4)));
    assertEquals("timestamp(9)", TypeNames.of(spark("bigint"), Types.TimestampNanoType.withoutZone()));
    Types.ListType list = Types.ListType.ofOptional(1, Types.UUIDType.get());
    assertEquals("array(uuid)", TypeNames.of(spark("array<string>"), list));
  }

  @ParameterizedTest
  @ValueSource(strings = {"bigint", "decimal(9,3)", "timestamp_ltz", "timestamp_ntz", "uuid", "fixed(7)", "timestamp_ns", "time",
    "array<string>", "map<string,bigint>", "struct<a:int,`b c`:array<timestamp_ltz>>"})
  void notationOfIcebergTypesIsReadAsItIsWritten(String text) {
    assertEquals(text, IcebergTypes.text(IcebergTypes.parse(text)));
  }

  @Test
  void whatIcebergDoesNotHaveIsRefused() {
    BridgeException refused = assertThrows(BridgeException.class, () -> IcebergTypes.parse("interval day to second"));
    assertEquals("SQE_NO_ICEBERG_TYPE", refused.condition);
  }

  @Test
  void defaultsAsSql() {
    assertEquals("'it\\'s \\\\'", IcebergTypes.sql("it's \\", Types.StringType.get()));
    assertEquals("X'00FF'", IcebergTypes.sql(ByteBuffer.wrap(new byte[] {0, -1}), Types.BinaryType.get()));
    assertEquals("DATE '1970-01-02'", IcebergTypes.sql(1, Types.DateType.get()));
    assertEquals("TIMESTAMP_NTZ '1970-01-01 00:00:01'", IcebergTypes.sql(1000000L, Types.TimestampType.withoutZone()));
    assertEquals(null, IcebergTypes.sql(null, Types.DateType.get()));
  }

  @Test
  void wordsOfTemplates() {
    assertEquals("tsz", TypeClasses.of(spark("timestamp_ltz")));
    assertEquals(true, TypeClasses.fits("dec", "str|exact"));
    assertEquals(true, TypeClasses.fits("nul", "arr"));
    assertEquals(false, TypeClasses.fits("dbl", "exact"));
    assertEquals(false, TypeClasses.fits("time", "day"));
  }
}
