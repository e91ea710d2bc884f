package sqe.bridge.functions;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.charset.StandardCharsets;
import org.apache.spark.unsafe.types.UTF8String;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import sqe.bridge.Refusal;

class SqlTextTest {
  private static UTF8String text(String value) {
    return UTF8String.fromString(value);
  }

  @ParameterizedTest
  @CsvSource({"1, a", "2, ''", "3, b", "4,"})
  void splitPartCountsFromOne(long index, String expected) {
    assertEquals(text(expected), SqlText.splitPart(text("a,,b"), text(","), index));
  }

  @Test
  void splitPartWithoutADelimiterTakesCharacters() {
    assertEquals(text("😀"), SqlText.splitPart(text("a😀b"), text(""), 2));
    assertNull(SqlText.splitPart(text("a😀b"), text(""), 4));
    assertThrows(Refusal.class, () -> SqlText.splitPart(text("a"), text(","), 0));
  }

  @Test
  void splitKeepsTheRestInItsLastPart() {
    assertEquals(3, SqlText.split(text("a,b,c"), text(","), 0).numElements());
    assertEquals(text("b,c"), SqlText.split(text("a,b,c"), text(","), 2).getUTF8String(1));
    assertThrows(Refusal.class, () -> SqlText.split(text("a"), text(""), 0));
  }

  @ParameterizedTest
  @CsvSource({"1, 2", "2, 4", "-1, 4", "-2, 2", "3, 0", "-3, 0"})
  void positionsOfOccurrences(long instance, long expected) {
    assertEquals(expected, SqlText.position(text("xaya"), text("a"), instance));
  }

  @ParameterizedTest
  @CsvSource({"1, 2, ab", "2, 9, bcd", "-2, 1, c", "0, 1, ''", "5, 1, ''", "-5, 1, ''", "1, 0, ''"})
  void substringsOutsideOfTheTextAreEmpty(long start, long length, String expected) {
    assertEquals(text(expected), SqlText.substring(text("abcd"), start, length));
    assertArrayEquals(
        expected.getBytes(StandardCharsets.UTF_8),
        SqlText.substringBytes("abcd".getBytes(StandardCharsets.UTF_8), start, length));
  }

  @Test
  void similarPatternsAreAnchoredAndQuoteWhatIsNoSign() {
    String pattern = SqlText.similarPattern(text("a%(b|c)_.d"), text("")).toString();
    assertTrue("axxbz.d".matches(pattern));
    assertTrue(!"axxbzzd".matches(pattern));
    String escaped = SqlText.similarPattern(text("50!%"), text("!")).toString();
    assertTrue("50%".matches(escaped));
    assertTrue(!"501".matches(escaped));
    assertThrows(Refusal.class, () -> SqlText.similarPattern(text("a!"), text("!")));
  }

  @Test
  void partsOfUrls() {
    UTF8String url = text("https://h:81/p?a=1%202&b");
    assertEquals(text("h"), SqlText.urlPart(url, text("host")));
    assertEquals(81L, SqlText.urlPort(url));
    assertEquals(text("1 2"), SqlText.urlParameter(url, text("a")));
    assertEquals(text(""), SqlText.urlParameter(url, text("b")));
    assertNull(SqlText.urlParameter(url, text("c")));
    assertEquals(text(""), SqlText.urlPart(url, text("fragment")));
    assertNull(SqlText.urlPart(text("://"), text("host")));
  }

  @Test
  void codePointsAndBytes() {
    assertEquals(0x1F600, SqlText.codePoint(text("😀")));
    assertThrows(Refusal.class, () -> SqlText.codePoint(text("ab")));
    assertThrows(Refusal.class, () -> SqlText.fromCodePoint(0xD800));
    assertEquals(-2, SqlText.fromBigEndian64(SqlText.bigEndian64(-2)));
    assertThrows(Refusal.class, () -> SqlText.fromBigEndian32(new byte[3]));
    assertEquals(2, SqlText.hammingDistance(text("abc"), text("xbz")));
  }
}
