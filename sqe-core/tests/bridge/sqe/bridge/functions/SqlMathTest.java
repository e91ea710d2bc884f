package sqe.bridge.functions;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;

import org.apache.spark.SparkArithmeticException;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.unsafe.types.UTF8String;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import sqe.bridge.Refusal;

class SqlMathTest {
  @ParameterizedTest
  @CsvSource({"2.5, 0, 3", "-2.5, 0, -3", "0.285, 2, 0.28", "1234.5, -2, 1200", "1e300, 2, 1e300", "0.1, -400, 0"})
  void roundsAsTheNumberIsStored(double value, int digits, double expected) {
    assertEquals(expected, SqlMath.round(value, digits));
  }

  @Test
  void nanIsEqualToNothing() {
    assertFalse(SqlMath.equal(Double.NaN, Double.NaN));
    assertFalse(SqlMath.less(1, Double.NaN) || SqlMath.greaterOrEqual(1, Double.NaN));
    assertEquals(Double.POSITIVE_INFINITY, SqlMath.divide(1, 0));
  }

  @ParameterizedTest
  @CsvSource({"1, 1.0E0", "12345678.9, 1.23456789E7", "-0.001, -1.0E-3", "0, 0E0", "NaN, NaN", "-Infinity, -Infinity"})
  void textOfDoubles(double value, String expected) {
    assertEquals(UTF8String.fromString(expected), SqlMath.text(value));
  }

  @Test
  void decimalsKeepTheirScaleOrFail() {
    Decimal one = Decimal.apply(new java.math.BigDecimal("1.00"), 5, 2);
    Decimal three = Decimal.apply(new java.math.BigDecimal("3.00"), 5, 2);
    assertEquals("0.33", SqlMath.divideDecimal(one, three, 7, 2).toString());
    assertThrows(SparkArithmeticException.class, () -> SqlMath.divideDecimal(one, Decimal.apply(0), 7, 2));
    assertThrows(SparkArithmeticException.class, () -> SqlMath.divideDecimal(Decimal.apply(1000), one, 3, 2));
    assertEquals("1.20", SqlMath.truncateDecimal(Decimal.apply(new java.math.BigDecimal("1.29"), 5, 2), 1).toString());
  }

  @Test
  void wholeNumbers() {
    assertEquals(6, SqlMath.gcd(-12, 18));
    assertEquals(36, SqlMath.lcm(12, -18));
    assertThrows(ArithmeticException.class, () -> SqlMath.lcm(Long.MAX_VALUE, Long.MAX_VALUE - 1));
    assertEquals(UTF8String.fromString("-ff"), SqlMath.toBase(-255, 16));
    assertEquals(-255, SqlMath.fromBase(UTF8String.fromString("-ff"), 16));
    assertThrows(Refusal.class, () -> SqlMath.toBase(1, 1));
    assertEquals(8, SqlMath.bitCount(-1, 8));
  }

  @ParameterizedTest
  @CsvSource({"-1, 0", "0, 1", "4.9, 1", "5, 2", "11, 3"})
  void bucketsBeginWithTheirBound(double value, long expected) {
    assertEquals(expected, SqlMath.widthBucket(value, new GenericArrayData(new Object[] {0.0, 5.0, 10.0})));
  }
}
