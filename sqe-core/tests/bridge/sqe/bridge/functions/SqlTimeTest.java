package sqe.bridge.functions;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.time.LocalDateTime;
import java.time.ZoneOffset;
import org.apache.spark.unsafe.types.UTF8String;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import sqe.bridge.Refusal;

class SqlTimeTest {
  private static UTF8String text(String value) {
    return UTF8String.fromString(value);
  }

  private static UTF8String format(String style, long time, UTF8String format) {
    return SqlTime.format(time, format, text(style));
  }

  private static long parse(String style, UTF8String time, UTF8String format) {
    return SqlTime.parse(time, format, text(style));
  }

  private static long micros(String time) {
    LocalDateTime at = LocalDateTime.parse(time);
    return at.toEpochSecond(ZoneOffset.UTC) * 1000000 + at.getNano() / 1000;
  }

  @ParameterizedTest
  @CsvSource({
    "%Y-%m-%d %H:%i:%s.%f, 1969-02-03 14:05:06.000007",
    "%y/%c/%e %l %p, 69/2/3 2 PM",
    "%a %W %b %M %j %v, Mon Monday Feb February 034 06",
    "100%q%%, 100q%",
  })
  void mysqlFormats(String format, String expected) {
    assertEquals(text(expected), format("mysql", micros("1969-02-03T14:05:06.000007"), text(format)));
  }

  @Test
  void whatIsFormattedIsParsed() {
    long time = micros("2024-02-29T23:59:58");
    String mysql = "%Y-%m-%d %H:%i:%s";
    assertEquals(time, parse("mysql", format("mysql", time, text(mysql)), text(mysql)));
    String joda = "yyyy-MM-dd'T'HH:mm:ss";
    assertEquals(text("2024-02-29T23:59:58"), format("joda", time, text(joda)));
    assertEquals(time, parse("joda", text("2024-02-29T23:59:58"), text(joda)));
    String teradata = "yyyy/mm/dd hh24:mi:ss";
    assertEquals(time, parse("teradata", format("teradata", time, text(teradata)), text(teradata)));
    assertThrows(Refusal.class, () -> format("mysql", time, text("%U")));
    assertThrows(Refusal.class, () -> format("joda", time, text("'open")));
  }

  @ParameterizedTest
  @CsvSource({
    "2024-01-31T00:00, 2024-02-29T00:00, 1",
    "2024-01-31T00:00, 2024-02-28T00:00, 0",
    "2024-03-15T12:00, 2024-01-15T12:00, -2",
    "2024-01-15T12:00, 2024-02-15T11:59, 0",
  })
  void wholeMonths(String from, String to, long expected) {
    assertEquals(expected, SqlTime.monthsBetween(micros(from), micros(to)));
  }

  @ParameterizedTest
  @CsvSource({"42.8ms, 43000", "3.5 s, 3500000", "1m, 60000000", "0.4us, 0", "2 h, 7200000000"})
  void durationsCountMilliseconds(String duration, long expected) {
    assertEquals(expected, SqlTime.parseDuration(text(duration)));
  }

  @Test
  void intervals() {
    long interval = ((2L * 24 + 3) * 3600 + 4 * 60 + 5) * 1000000 + 321000;
    assertEquals(text("2 03:04:05.321"), SqlTime.intervalText(interval));
    assertEquals(text("-2 03:04:05.321"), SqlTime.intervalText(-interval));
    assertEquals(text("-1-2"), SqlTime.monthsText(-14));
    assertEquals(2, SqlTime.wholeDays(2L * 86400 * 1000000));
    assertThrows(Refusal.class, () -> SqlTime.wholeDays(interval));
    assertEquals(text("1 day, 1 second"), SqlTime.humanSeconds(86401));
    assertEquals(text("0 seconds"), SqlTime.humanSeconds(0));
  }

  @Test
  void isoDates() {
    assertEquals(SqlTime.fromIsoDate(text("2024-12-30")), SqlTime.fromIsoDate(text("2025-W01")));
    assertEquals(SqlTime.fromIsoDate(text("2024-02-29")), SqlTime.fromIsoDate(text("2024-060")));
    assertThrows(RuntimeException.class, () -> SqlTime.fromIsoDate(text("2024-13-01")));
    assertEquals(-10, SqlTime.bin(10, -1, 0));
    assertThrows(Refusal.class, () -> SqlTime.bin(0, 1, 0));
  }
}
