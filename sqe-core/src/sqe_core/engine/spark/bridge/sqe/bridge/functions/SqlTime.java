package sqe.bridge.functions;

import java.math.BigDecimal;
import java.time.DateTimeException;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.OffsetDateTime;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.time.ZonedDateTime;
import java.time.format.DateTimeFormatter;
import java.time.format.DateTimeFormatterBuilder;
import java.time.format.ResolverStyle;
import java.time.temporal.ChronoField;
import java.time.temporal.IsoFields;
import java.time.temporal.TemporalAccessor;
import java.time.temporal.TemporalQueries;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Supplier;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.sql.catalyst.util.DateTimeUtils;
import org.apache.spark.unsafe.types.UTF8String;
import sqe.bridge.Refusal;

/**
 * Dates and times of the SQL dialect, called by templates. Timestamps are microseconds since 1970, those without a zone as
 * if they were in UTC. No argument is ever NULL.
 */
public final class SqlTime {
  private static final long SECOND = 1000000L;
  private static final int MAX_FORMATS = 1000;
  private static final Map<String, DateTimeFormatter> FORMATS = new ConcurrentHashMap<>(); // by style and pattern
  private static final Pattern DURATION = Pattern.compile("\\s*(\\d+(?:\\.\\d+)?)\\s*(ns|us|ms|s|m|h|d)\\s*");

  private static final Pattern BEYOND_MICROS = Pattern.compile("[.,]\\d{6}0*[1-9]");

  private SqlTime() {}

  /** What the clock of a zone shows at a time; the session's zone has nothing to do with it. */
  public static long clock(long micros, UTF8String zone) {
    return DateTimeUtils.convertTz(micros, ZoneOffset.UTC, zoneId(zone));
  }

  /** The time at which the clock of a zone shows this. */
  public static long instant(long local, UTF8String zone) {
    return DateTimeUtils.convertTz(local, zoneId(zone), ZoneOffset.UTC);
  }

  private static ZoneId zoneId(UTF8String zone) {
    return DateTimeUtils.getZoneId(zone.toString());
  }

  /** date_format with MySQL's codes, format_datetime with Joda's letters, to_char with Teradata's codes. */
  public static UTF8String format(long micros, UTF8String format, UTF8String style) {
    ZonedDateTime time = DateTimeUtils.microsToLocalDateTime(micros).atZone(ZoneOffset.UTC);
    return UTF8String.fromString(formatter(style, format).format(time));
  }

  public static long parse(UTF8String text, UTF8String format, UTF8String style) {
    DateTimeFormatter formatter = formatter(style, format);
    return read(
        () -> {
          TemporalAccessor found = formatter.parse(text.toString());
          LocalDate date = found.query(TemporalQueries.localDate());
          if (date == null) date = partialDate(found);
          LocalTime time = found.query(TemporalQueries.localTime());
          LocalDateTime local = date.atTime(time == null ? partialTime(found) : time);
          ZoneId zone = found.query(TemporalQueries.zone());
          return micros(zone == null ? local : local.atZone(zone).withZoneSameInstant(ZoneOffset.UTC).toLocalDateTime());
        });
  }

  /** A text that cannot be read is an argument that does not fit. */
  private static <T> T read(Supplier<T> reading) {
    try {
      return reading.get();
    } catch (DateTimeException error) {
      throw Refusal.ofArgument("The text is no time of this format");
    }
  }

  private static long micros(LocalDateTime time) {
    return DateTimeUtils.localDateTimeToMicros(time);
  }

  private static LocalDate partialDate(TemporalAccessor found) {
    if (found.isSupported(IsoFields.WEEK_OF_WEEK_BASED_YEAR) && found.isSupported(IsoFields.WEEK_BASED_YEAR))
      return LocalDate.of(found.get(IsoFields.WEEK_BASED_YEAR), 1, 4)
          .with(IsoFields.WEEK_OF_WEEK_BASED_YEAR, found.get(IsoFields.WEEK_OF_WEEK_BASED_YEAR))
          .with(ChronoField.DAY_OF_WEEK, field(found, ChronoField.DAY_OF_WEEK, 1));
    if (found.isSupported(IsoFields.WEEK_BASED_YEAR))
      return LocalDate.of(found.get(IsoFields.WEEK_BASED_YEAR), 1, 4).with(ChronoField.DAY_OF_WEEK, 1);
    int year = field(found, ChronoField.YEAR, field(found, ChronoField.YEAR_OF_ERA, 1970));
    if (found.isSupported(ChronoField.DAY_OF_YEAR)) return LocalDate.ofYearDay(year, found.get(ChronoField.DAY_OF_YEAR));
    return LocalDate.of(year, field(found, ChronoField.MONTH_OF_YEAR, 1), field(found, ChronoField.DAY_OF_MONTH, 1));
  }

  private static LocalTime partialTime(TemporalAccessor found) {
    int hour = field(found, ChronoField.HOUR_OF_DAY, -1);
    if (hour < 0) hour = field(found, ChronoField.HOUR_OF_AMPM, 0) + 12 * field(found, ChronoField.AMPM_OF_DAY, 0);
    return LocalTime.of(
        hour,
        field(found, ChronoField.MINUTE_OF_HOUR, 0),
        field(found, ChronoField.SECOND_OF_MINUTE, 0),
        field(found, ChronoField.NANO_OF_SECOND, 0));
  }

  private static int field(TemporalAccessor found, ChronoField field, int otherwise) {
    return found.isSupported(field) ? found.get(field) : otherwise;
  }

  static DateTimeFormatter formatter(UTF8String style, UTF8String format) {
    String pattern = format.toString();
    String key = style + pattern;
    DateTimeFormatter known = FORMATS.get(key);
    if (known != null) return known;
    DateTimeFormatterBuilder builder = new DateTimeFormatterBuilder().parseCaseInsensitive();
    switch (style.toString()) {
      case "mysql" -> TimeFormats.mysql(builder, pattern);
      case "joda" -> TimeFormats.joda(builder, pattern);
      default -> TimeFormats.teradata(builder, pattern);
    }
    DateTimeFormatter made = builder.toFormatter(Locale.ENGLISH).withResolverStyle(ResolverStyle.STRICT);
    if (FORMATS.size() < MAX_FORMATS) FORMATS.put(key, made);
    return made;
  }

  /** Rounded, half up, to so many digits of a second. */
  public static long round(long micros, int digits) {
    long unit = 1;
    for (int i = digits; i < 6; i++) unit *= 10;
    return Math.floorDiv(micros + unit / 2, unit) * unit;
  }

  /** Nanoseconds as microseconds, where nothing is lost. */
  public static long wholeMicros(long nanos) {
    if (nanos % 1000 != 0) throw Refusal.ofArgument("BEYOND_MICROSECONDS");
    return nanos / 1000;
  }

  /** The same text, unless its seconds have digits that a time cannot hold. */
  public static UTF8String withoutNanos(UTF8String text) {
    if (BEYOND_MICROS.matcher(text.toString()).find()) throw Refusal.ofArgument("BEYOND_MICROSECONDS");
    return text;
  }

  /** A time of day, in nanoseconds, rounded; behind midnight the day begins anew. */
  public static long roundTime(long nanos, int digits) {
    return Math.floorMod(round(nanos / 1000, digits), 86400 * SECOND) * 1000;
  }

  /** Whole months from one time to another; from the 31st to the last day of a shorter month is a whole one. */
  public static long monthsBetween(long from, long to) {
    if (to < from) return -monthsBetween(to, from);
    LocalDateTime start = DateTimeUtils.microsToLocalDateTime(from);
    LocalDateTime end = DateTimeUtils.microsToLocalDateTime(to);
    int last = end.toLocalDate().lengthOfMonth();
    if (end.getDayOfMonth() == last && start.getDayOfMonth() > last) start = start.withDayOfMonth(last);
    long months = (end.getYear() - start.getYear()) * 12L + end.getMonthValue() - start.getMonthValue();
    return sinceMonth(end) < sinceMonth(start) ? months - 1 : months;
  }

  private static long sinceMonth(LocalDateTime time) {
    return (time.getDayOfMonth() * 86400L + time.toLocalTime().toSecondOfDay()) * SECOND + time.getNano() / 1000;
  }

  /** 2 03:04:05.321, as intervals are cast to text. */
  public static UTF8String intervalText(long micros) {
    long left = Math.abs(micros);
    long days = left / (86400 * SECOND);
    left %= 86400 * SECOND;
    String text =
        String.format(
            "%s%d %02d:%02d:%02d.%03d",
            micros < 0 ? "-" : "", days, left / (3600 * SECOND), left / (60 * SECOND) % 60, left / SECOND % 60, left / 1000 % 1000);
    return UTF8String.fromString(text);
  }

  /** The days of an interval that is added to a date. */
  public static int wholeDays(long micros) {
    if (micros % (86400 * SECOND) != 0) throw Refusal.ofArgument("DATE_WITHOUT_TIME");
    return Math.toIntExact(micros / (86400 * SECOND));
  }

  public static long intervalMillis(long micros) {
    return Math.floorDiv(micros, 1000L);
  }

  public static UTF8String monthsText(int months) {
    int left = Math.abs(months);
    return UTF8String.fromString((months < 0 ? "-" : "") + left / 12 + "-" + left % 12);
  }

  /** 1 week, 2 days, 3 hours, ... */
  public static UTF8String humanSeconds(double seconds) {
    if (!Double.isFinite(seconds)) throw Refusal.ofArgument("The seconds must be a finite number");
    long left = Math.round(Math.abs(seconds));
    String[] names = new String[] {"week", "day", "hour", "minute", "second"};
    long[] sizes = new long[] {604800, 86400, 3600, 60, 1};
    StringBuilder out = new StringBuilder();
    for (int i = 0; i < names.length; i++) {
      long count = left / sizes[i];
      left %= sizes[i];
      if (count == 0 && !(i == names.length - 1 && out.length() == 0)) continue;
      out.append(out.length() == 0 ? "" : ", ").append(count).append(' ').append(names[i]).append(count == 1 ? "" : "s");
    }
    return UTF8String.fromString(out.toString());
  }

  /** 42.8ms, 3.81 d and the like, as microseconds. */
  public static long parseDuration(UTF8String text) {
    Matcher matcher = DURATION.matcher(text.toString());
    if (!matcher.matches()) throw Refusal.ofArgument("The text is no duration");
    BigDecimal number = new BigDecimal(matcher.group(1));
    String unit = matcher.group(2);
    BigDecimal factor =
        switch (unit) {
          case "ns" -> new BigDecimal("0.001");
          case "us" -> BigDecimal.ONE;
          case "ms" -> new BigDecimal(1000);
          case "s" -> new BigDecimal(SECOND);
          case "m" -> new BigDecimal(60 * SECOND);
          case "h" -> new BigDecimal(3600 * SECOND);
          default -> new BigDecimal(86400 * SECOND);
        };
    // Intervals count milliseconds, as the dialect's do.
    return number.multiply(factor).divide(new BigDecimal(1000), 0, java.math.RoundingMode.HALF_UP).longValueExact() * 1000;
  }

  /** ISO 8601: with or without time, fraction and zone, week dates and day-of-year dates too. */
  public static long fromIsoTimestamp(UTF8String text) {
    return read(() -> isoTimestamp(text.toString().trim()));
  }

  private static long isoTimestamp(String value) {
    int split = value.indexOf('T');
    if (split < 0) return micros(isoDate(value).atStartOfDay());
    LocalDate date = isoDate(value.substring(0, split));
    String time = value.substring(split + 1);
    int zone = Math.max(time.indexOf('Z'), Math.max(time.indexOf('+'), time.indexOf('-')));
    String clock = zone < 0 ? time : time.substring(0, zone);
    if (clock.length() == 2) clock = clock + ":00";
    LocalDateTime local = date.atTime(LocalTime.parse(clock.replace(',', '.')));
    if (zone < 0 || time.charAt(zone) == 'Z') return micros(local);
    ZoneOffset offset = ZoneOffset.of(time.substring(zone));
    return micros(OffsetDateTime.of(local, offset).withOffsetSameInstant(ZoneOffset.UTC).toLocalDateTime());
  }

  public static int fromIsoDate(UTF8String text) {
    return read(() -> (int) isoDate(text.toString().trim()).toEpochDay());
  }

  private static LocalDate isoDate(String text) {
    if (text.indexOf('W') > 0) {
      String full = text.length() <= 8 ? text + "-1" : text;
      return LocalDate.parse(full, DateTimeFormatter.ISO_WEEK_DATE);
    }
    if (text.length() == 8 && text.charAt(4) == '-') return LocalDate.parse(text, DateTimeFormatter.ISO_ORDINAL_DATE);
    if (text.length() == 4) return LocalDate.of(Integer.parseInt(text), 1, 1);
    if (text.length() == 7) return LocalDate.parse(text + "-01");
    return LocalDate.parse(text);
  }

  /** The start of the bin of `width` microseconds, counted from `origin`. */
  public static long bin(long width, long micros, long origin) {
    if (width <= 0) throw Refusal.ofArgument("The interval must be positive");
    return origin + Math.floorDiv(micros - origin, width) * width;
  }

  /** A time of day, in nanoseconds, and an interval: behind midnight the day begins anew. */
  public static long addToTime(long nanos, long micros) {
    long day = 86400 * SECOND * 1000;
    return Math.floorMod(nanos + Math.floorMod(micros, 86400 * SECOND) * 1000, day);
  }

  /** Whole units from one time of day to another. */
  public static long timesBetween(UTF8String unit, long from, long to) {
    long length =
        switch (unit.toString()) {
          case "microsecond" -> 1000L;
          case "millisecond" -> 1000000L;
          case "second" -> SECOND * 1000;
          case "minute" -> 60 * SECOND * 1000;
          case "hour" -> 3600 * SECOND * 1000;
          default -> throw Refusal.ofArgument("A time of day has hours, minutes, seconds and milliseconds");
        };
    return (to - from) / length;
  }

  /** The name of a time zone, if there is such a zone. */
  public static UTF8String zone(UTF8String name) {
    try {
      ZoneId.of(name.toString());
      return name;
    } catch (DateTimeException error) {
      throw Refusal.ofArgument("There is no such time zone");
    }
  }
}
