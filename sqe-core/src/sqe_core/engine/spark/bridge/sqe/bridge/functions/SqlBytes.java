package sqe.bridge.functions;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.math.RoundingMode;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.CharBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.CodingErrorAction;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.HexFormat;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.commons.codec.binary.Base32;
import org.apache.commons.codec.digest.MurmurHash3;
import org.apache.spark.sql.catalyst.expressions.XXH64;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;
import sqe.bridge.Refusal;

/** Binary values and their texts, called by templates. No argument is ever NULL. */
public final class SqlBytes {
  private static final Pattern DATA_SIZE = Pattern.compile("\\s*(\\d+(?:\\.\\d+)?)\\s*(B|kB|MB|GB|TB|PB|EB|ZB|YB)\\s*");
  private static final String[] SIZES = {"B", "kB", "MB", "GB", "TB", "PB", "EB", "ZB", "YB"};

  private static final long CHECKSUM_FACTOR = 0x9E3779B185EBCA87L;

  private SqlBytes() {}

  // checksum(): the sum of hashes, each times a prime; the sum is that of 64 bits, from the lowest byte.

  public static long checksum(long value) {
    return XXH64.hashLong(value, 0L) * CHECKSUM_FACTOR;
  }

  public static long checksumBoolean(boolean value) {
    return checksum(value ? 1 : 0);
  }

  /** Both zeros are one value, and all NaN are. */
  public static long checksumDouble(double value) {
    return checksum(Double.doubleToLongBits(value == 0 ? 0 : value));
  }

  public static long checksumReal(float value) {
    return checksum(Float.floatToIntBits(value == 0 ? 0 : value));
  }

  public static long checksumBytes(byte[] value) {
    return XXH64.hashUnsafeBytes(value, Platform.BYTE_ARRAY_OFFSET, value.length, 0L) * CHECKSUM_FACTOR;
  }

  public static byte[] checksumTotal(Decimal sum) {
    long total = sum.toJavaBigDecimal().toBigInteger().longValue();
    return ByteBuffer.allocate(8).order(ByteOrder.LITTLE_ENDIAN).putLong(total).array();
  }

  public static byte[] fromHex(UTF8String text) {
    try {
      return HexFormat.of().parseHex(text.toString());
    } catch (IllegalArgumentException error) {
      throw Refusal.ofArgument("The text is not hexadecimal");
    }
  }

  public static byte[] fromBase64(UTF8String text) {
    try {
      return Base64.getDecoder().decode(text.getBytes());
    } catch (IllegalArgumentException error) {
      throw Refusal.ofArgument("The text is not Base64");
    }
  }

  public static UTF8String toBase32(byte[] bytes) {
    return UTF8String.fromString(new Base32().encodeToString(bytes));
  }

  public static byte[] fromBase32(UTF8String text) {
    if (!text.toString().matches("[A-Z2-7]*=*")) throw Refusal.ofArgument("The text is not Base32");
    return new Base32().decode(text.toString());
  }

  public static byte[] reverse(byte[] bytes) {
    byte[] reversed = new byte[bytes.length];
    for (int i = 0; i < bytes.length; i++) reversed[i] = bytes[bytes.length - 1 - i];
    return reversed;
  }

  public static byte[] murmur3(byte[] bytes) {
    long[] hash = MurmurHash3.hash128x64(bytes, 0, bytes.length, 0);
    return ByteBuffer.allocate(16).order(ByteOrder.LITTLE_ENDIAN).putLong(hash[0]).putLong(hash[1]).array();
  }

  public static byte[] ieee32(float value) {
    return ByteBuffer.allocate(4).putFloat(value).array();
  }

  public static byte[] ieee64(double value) {
    return ByteBuffer.allocate(8).putDouble(value).array();
  }

  public static float fromIeee32(byte[] bytes) {
    if (bytes.length != 4) throw Refusal.ofArgument("The binary must have 4 bytes");
    return ByteBuffer.wrap(bytes).getFloat();
  }

  public static double fromIeee64(byte[] bytes) {
    if (bytes.length != 8) throw Refusal.ofArgument("The binary must have 8 bytes");
    return ByteBuffer.wrap(bytes).getDouble();
  }

  /** Bytes that are not UTF-8 become the replacement, which is one character or none. */
  public static UTF8String fromUtf8(byte[] bytes, UTF8String replacement) {
    if (replacement.numChars() > 1) throw Refusal.ofArgument("The replacement must be one character or empty");
    CodingErrorAction action = replacement.numChars() == 0 ? CodingErrorAction.IGNORE : CodingErrorAction.REPLACE;
    var decoder = StandardCharsets.UTF_8.newDecoder().onMalformedInput(action).onUnmappableCharacter(action);
    // Characters beyond the first plane have two chars, and the decoder takes one at most.
    boolean narrow = replacement.toString().length() == 1;
    if (narrow) decoder.replaceWith(replacement.toString());
    try {
      CharBuffer text = decoder.decode(ByteBuffer.wrap(bytes));
      String read = text.toString();
      boolean wide = !narrow && replacement.numChars() == 1;
      return UTF8String.fromString(wide ? read.replace("\uFFFD", replacement.toString()) : read);
    } catch (CharacterCodingException error) {
      throw Refusal.ofArgument("The binary is not UTF-8");
    }
  }

  /** 2.3MB as a number of bytes; the units are powers of 1024. */
  public static Decimal dataSize(UTF8String text) {
    Matcher matcher = DATA_SIZE.matcher(text.toString());
    if (!matcher.matches()) throw Refusal.ofArgument("The text is no size of data such as 2.3MB");
    int power = java.util.Arrays.asList(SIZES).indexOf(matcher.group(2));
    BigDecimal bytes = new BigDecimal(matcher.group(1)).multiply(new BigDecimal(BigInteger.ONE.shiftLeft(10 * power)));
    return Decimal.apply(new scala.math.BigDecimal(bytes.setScale(0, RoundingMode.DOWN)), 38, 0);
  }
}
