package sqe.bridge.functions;

import java.math.BigDecimal;
import java.math.RoundingMode;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.errors.QueryExecutionErrors;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.unsafe.types.UTF8String;
import sqe.bridge.Refusal;

/** Arithmetic as the SQL dialect means it, called by templates. No argument is ever NULL. */
public final class SqlMath {
  private SqlMath() {}

  /** IEEE division: by zero it is Infinity or NaN. */
  public static double divide(double left, double right) {
    return left / right;
  }

  public static float divideReal(float left, float right) {
    return left / right;
  }

  public static double remainder(double left, double right) {
    return left % right;
  }

  public static float remainderReal(float left, float right) {
    return left % right;
  }

  // Comparisons in which NaN is equal to nothing, not even to itself, and neither smaller nor larger than anything.

  public static boolean equal(double left, double right) {
    return left == right;
  }

  public static boolean different(double left, double right) {
    return left != right;
  }

  public static boolean less(double left, double right) {
    return left < right;
  }

  public static boolean lessOrEqual(double left, double right) {
    return left <= right;
  }

  public static boolean greater(double left, double right) {
    return left > right;
  }

  public static boolean greaterOrEqual(double left, double right) {
    return left >= right;
  }

  public static Decimal divideDecimal(Decimal left, Decimal right, int precision, int scale) {
    BigDecimal divisor = right.toJavaBigDecimal();
    if (divisor.signum() == 0) throw QueryExecutionErrors.divideByZeroError(null);
    BigDecimal quotient = left.toJavaBigDecimal().divide(divisor, scale, RoundingMode.HALF_UP);
    if (quotient.precision() > precision)
      throw QueryExecutionErrors.cannotChangeDecimalPrecisionError(
          Decimal.fromDecimal(quotient), precision, scale, null);
    return Decimal.apply(new scala.math.BigDecimal(quotient), precision, scale);
  }

  /** The number as it is stored decides, not the digits that it is written with: 0.285 is a little less. */
  public static double round(double value, int digits) {
    double factor = Math.pow(10, digits);
    double scaled = Math.abs(value) * factor;
    if (!(scaled < Long.MAX_VALUE) || factor == 0) return scaled == scaled && factor == 0 ? 0 : value;
    return Math.copySign(Math.round(scaled) / factor, value);
  }

  public static double ceiling(double value) {
    return Math.ceil(value);
  }

  public static double floor(double value) {
    return Math.floor(value);
  }

  public static double truncate(double value) {
    return value < 0 ? Math.ceil(value) : Math.floor(value);
  }

  public static double truncateDigits(double value, int digits) {
    if (Double.isNaN(value) || Double.isInfinite(value)) return value;
    return new BigDecimal(Double.toString(value)).setScale(digits, RoundingMode.DOWN).doubleValue();
  }

  public static Decimal truncateDecimal(Decimal value, int digits) {
    int scale = value.scale();
    BigDecimal cut = value.toJavaBigDecimal().setScale(Math.min(digits, scale), RoundingMode.DOWN).setScale(scale);
    return Decimal.apply(new scala.math.BigDecimal(cut), value.precision(), scale);
  }

  public static double ln(double value) {
    return Math.log(value);
  }

  public static double log10(double value) {
    return Math.log10(value);
  }

  public static double log(double base, double value) {
    return Math.log(value) / Math.log(base);
  }

  /** 1.0E0, 1.23456789E7, as doubles are cast to text. */
  public static UTF8String text(double value) {
    if (Double.isNaN(value) || Double.isInfinite(value)) return UTF8String.fromString(String.valueOf(value));
    return scientific(Double.toString(value));
  }

  public static UTF8String textReal(float value) {
    if (Float.isNaN(value) || Float.isInfinite(value)) return UTF8String.fromString(String.valueOf(value));
    return scientific(Float.toString(value));
  }

  private static UTF8String scientific(String written) {
    boolean negative = written.startsWith("-");
    BigDecimal number = new BigDecimal(written).abs();
    String digits;
    int exponent = 0;
    if (number.signum() == 0) return UTF8String.fromString(negative ? "-0E0" : "0E0");
    else {
      number = number.stripTrailingZeros();
      digits = number.unscaledValue().toString();
      exponent = digits.length() - 1 - number.scale();
    }
    String fraction = digits.length() == 1 ? "0" : digits.substring(1);
    return UTF8String.fromString((negative ? "-" : "") + digits.charAt(0) + "." + fraction + "E" + exponent);
  }

  public static UTF8String toBase(long value, int radix) {
    if (radix < Character.MIN_RADIX || radix > Character.MAX_RADIX)
      throw Refusal.ofArgument("The radix must be between 2 and 36");
    return UTF8String.fromString(Long.toString(value, radix));
  }

  public static long fromBase(UTF8String text, int radix) {
    try {
      return Long.parseLong(text.toString(), radix);
    } catch (NumberFormatException error) {
      throw Refusal.ofArgument("The text is no number of this base");
    }
  }

  public static long gcd(long left, long right) {
    long a = Math.abs(left);
    long b = Math.abs(right);
    while (b != 0) {
      long rest = a % b;
      a = b;
      b = rest;
    }
    return a;
  }

  public static long lcm(long left, long right) {
    if (left == 0 || right == 0) return 0;
    return Math.multiplyExact(Math.abs(left) / gcd(left, right), Math.abs(right));
  }

  public static long bitCount(long value, int bits) {
    if (bits < 2 || bits > 64) throw Refusal.ofArgument("The number of bits must be between 2 and 64");
    long most = bits == 64 ? Long.MAX_VALUE : (1L << (bits - 1)) - 1;
    if (value > most || value < -most - 1) throw Refusal.ofArgument("The number does not fit into so many bits");
    if (bits >= 64) return Long.bitCount(value);
    return Long.bitCount(value & ((1L << bits) - 1));
  }

  /** The number of the bin: 0 below the first bound. */
  public static long widthBucket(double value, ArrayData bounds) {
    if (bounds.numElements() == 0) throw Refusal.ofArgument("The bounds must not be empty");
    if (Double.isNaN(value)) throw Refusal.ofArgument("The operand must not be NaN");
    int low = 0;
    int high = bounds.numElements();
    while (low < high) {
      int middle = (low + high) / 2;
      if (value < bounds.getDouble(middle)) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  /** The number of the bin, of `count` bins of the same width: 0 below the first bound, one more than `count` above the last. */
  public static long widthBucketEven(double value, double from, double to, long count) {
    if (count <= 0) throw Refusal.ofArgument("The number of bins must be greater than zero");
    if (Double.isNaN(value)) throw Refusal.ofArgument("The operand must not be NaN");
    if (!Double.isFinite(from) || !Double.isFinite(to)) throw Refusal.ofArgument("The bounds must be finite");
    if (from == to) throw Refusal.ofArgument("The bounds must not be equal");
    double low = Math.min(from, to);
    double high = Math.max(from, to);
    long bin;
    if (value < low) bin = 0;
    else if (value >= high) bin = Math.addExact(count, 1);
    else bin = (long) (count * (value - low) / (high - low) + 1);
    return from > to ? count - bin + 1 : bin;
  }

  /** Shifted within so many bits. */
  public static long shiftLeft(long value, long shift, int bits) {
    return shift < 0 || shift >= bits ? 0 : signed(value << shift, bits);
  }

  public static long shiftRight(long value, long shift, int bits) {
    if (shift < 0 || shift >= bits) return 0;
    return signed((bits == 64 ? value : value & ((1L << bits) - 1)) >>> shift, bits);
  }

  public static long shiftRightSigned(long value, long shift, int bits) {
    return shift < 0 || shift >= bits ? (value < 0 ? -1 : 0) : value >> shift;
  }

  private static long signed(long value, int bits) {
    return value << (64 - bits) >> (64 - bits);
  }

  public static long positive(long value) {
    if (value <= 0) throw Refusal.ofArgument("The number must be greater than zero");
    return value;
  }

  public static long notNegative(long value) {
    if (value < 0) throw Refusal.ofArgument("The number must not be negative");
    return value;
  }

  /** A place in an array, which is not counted from the end. */
  public static int place(long value) {
    if (value < 0) throw Refusal.ofArgument("A place in an array must not be negative: element_at counts from the end");
    return Math.toIntExact(value);
  }
}
