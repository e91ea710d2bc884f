package sqe.bridge.functions;

import java.time.DayOfWeek;
import java.time.ZoneId;
import java.time.ZonedDateTime;
import java.time.format.DateTimeFormatter;
import java.time.temporal.ChronoUnit;
import java.time.temporal.IsoFields;
import java.time.temporal.TemporalAdjusters;
import java.util.List;
import java.util.stream.IntStream;
import org.apache.spark.sql.catalyst.util.DateTimeUtils;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Instants in a time zone, called by templates: microseconds since 1970, and what the clock of the zone makes of them. Where
 * that clock shows a time twice, the one of the same offset is meant. No argument is ever NULL.
 */
public final class SqlZone {
  private static final int MAX_DIGITS = 6;
  private static final List<DateTimeFormatter> ISO =
      IntStream.rangeClosed(0, MAX_DIGITS)
          .mapToObj(digits -> "uuuu-MM-dd'T'HH:mm:ss" + (digits == 0 ? "" : ".") + "S".repeat(digits) + "XXX")
          .map(DateTimeFormatter::ofPattern)
          .toList();

  private SqlZone() {}

  private static ZonedDateTime at(long micros, UTF8String zone) {
    ZoneId id = DateTimeUtils.getZoneId(zone.toString());
    return DateTimeUtils.microsToInstant(micros).atZone(id);
  }

  private static long micros(ZonedDateTime time) {
    return DateTimeUtils.instantToMicros(time.toInstant());
  }

  public static long truncate(UTF8String unit, long micros, UTF8String zone) {
    ZonedDateTime time = at(micros, zone);
    ZonedDateTime day = time.truncatedTo(ChronoUnit.DAYS);
    return micros(
        switch (unit.toString()) {
          case "microsecond" -> time.truncatedTo(ChronoUnit.MICROS);
          case "millisecond" -> time.truncatedTo(ChronoUnit.MILLIS);
          case "second" -> time.truncatedTo(ChronoUnit.SECONDS);
          case "minute" -> time.truncatedTo(ChronoUnit.MINUTES);
          case "hour" -> time.truncatedTo(ChronoUnit.HOURS);
          case "day" -> day;
          case "week" -> day.with(TemporalAdjusters.previousOrSame(DayOfWeek.MONDAY));
          case "month" -> day.withDayOfMonth(1);
          case "quarter" -> day.with(IsoFields.DAY_OF_QUARTER, 1);
          default -> day.withDayOfYear(1);
        });
  }

  /** Days and more are counted on the clock, less in time. */
  public static long add(UTF8String unit, long count, long micros, UTF8String zone) {
    ZonedDateTime time = at(micros, zone);
    return micros(
        switch (unit.toString()) {
          case "microsecond" -> time.plus(count, ChronoUnit.MICROS);
          case "millisecond" -> time.plus(count, ChronoUnit.MILLIS);
          case "second" -> time.plusSeconds(count);
          case "minute" -> time.plusMinutes(count);
          case "hour" -> time.plusHours(count);
          case "day" -> time.plusDays(count);
          case "week" -> time.plusWeeks(count);
          case "month" -> time.plusMonths(count);
          case "quarter" -> time.plusMonths(Math.multiplyExact(count, 3L));
          default -> time.plusYears(count);
        });
  }

  /** The months of an interval, added on the clock. */
  public static long addMonths(long micros, int months, UTF8String zone) {
    return micros(at(micros, zone).plusMonths(months));
  }

  /** The days of an interval have 24 hours, whatever a clock does. */
  public static long addTime(long micros, long interval) {
    return Math.addExact(micros, interval);
  }

  /** How many minutes the clock of the zone is before that of UTC. */
  public static int offset(long micros, UTF8String zone) {
    return at(micros, zone).getOffset().getTotalSeconds() / 60;
  }

  /** format_datetime, whose format may ask for the zone. */
  public static UTF8String format(long micros, UTF8String format, UTF8String zone) {
    return UTF8String.fromString(SqlTime.formatter(UTF8String.fromString("joda"), format).format(at(micros, zone)));
  }

  public static UTF8String iso(long micros, UTF8String zone, int digits) {
    return UTF8String.fromString(ISO.get(digits).format(at(micros, zone)));
  }
}
