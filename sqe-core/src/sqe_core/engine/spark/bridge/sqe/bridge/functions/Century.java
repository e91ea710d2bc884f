package sqe.bridge.functions;

import java.time.DateTimeException;
import java.time.format.ResolverStyle;
import java.time.temporal.ChronoField;
import java.time.temporal.ChronoUnit;
import java.time.temporal.Temporal;
import java.time.temporal.TemporalAccessor;
import java.time.temporal.TemporalField;
import java.time.temporal.TemporalUnit;
import java.time.temporal.ValueRange;
import java.util.Map;

/** The first digits of a year, 20 of 2001, which Joda formats and Java does not. No time can be read by it. */
enum Century implements TemporalField {
  OF_ERA;

  public TemporalUnit getBaseUnit() {
    return ChronoUnit.CENTURIES;
  }

  public TemporalUnit getRangeUnit() {
    return ChronoUnit.ERAS;
  }

  public ValueRange range() {
    return ValueRange.of(0, 9999999);
  }

  public boolean isDateBased() {
    return true;
  }

  public boolean isTimeBased() {
    return false;
  }

  public boolean isSupportedBy(TemporalAccessor time) {
    return time.isSupported(ChronoField.YEAR_OF_ERA);
  }

  public ValueRange rangeRefinedBy(TemporalAccessor time) {
    return range();
  }

  public long getFrom(TemporalAccessor time) {
    return time.getLong(ChronoField.YEAR_OF_ERA) / 100;
  }

  public <R extends Temporal> R adjustInto(R time, long value) {
    throw new DateTimeException("A century is no time");
  }

  @Override
  public TemporalAccessor resolve(Map<TemporalField, Long> fields, TemporalAccessor partial, ResolverStyle style) {
    throw new DateTimeException("A century is no time");
  }
}
