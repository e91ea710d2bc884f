package sqe.bridge.functions;

import java.time.format.DateTimeFormatterBuilder;
import java.time.format.SignStyle;
import java.time.format.TextStyle;
import java.time.temporal.ChronoField;
import java.time.temporal.IsoFields;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import sqe.bridge.Refusal;

/** The three ways in which the SQL dialect's functions write formats of dates and times. */
final class TimeFormats {
  private static final Map<String, ChronoField> TERADATA_FIELDS =
      Map.of(
          "mm", ChronoField.MONTH_OF_YEAR,
          "dd", ChronoField.DAY_OF_MONTH,
          "hh24", ChronoField.HOUR_OF_DAY,
          "hh12", ChronoField.CLOCK_HOUR_OF_AMPM,
          "hh", ChronoField.CLOCK_HOUR_OF_AMPM,
          "mi", ChronoField.MINUTE_OF_HOUR,
          "ss", ChronoField.SECOND_OF_MINUTE);

  /** The longer ones first. */
  private static final List<String> TERADATA_CODES = List.of("yyyy", "hh24", "hh12", "yy", "mm", "dd", "hh", "mi", "ss");

  private TimeFormats() {}

  /** %Y-%m-%d %H:%i:%s */
  static void mysql(DateTimeFormatterBuilder out, String pattern) {
    for (int i = 0; i < pattern.length(); i++) {
      char c = pattern.charAt(i);
      if (c != '%' || i + 1 == pattern.length()) {
        out.appendLiteral(c);
        continue;
      }
      mysqlCode(out, pattern.charAt(++i));
    }
  }

  private static void mysqlCode(DateTimeFormatterBuilder out, char code) {
    switch (code) {
      case 'a' -> out.appendText(ChronoField.DAY_OF_WEEK, TextStyle.SHORT);
      case 'b' -> out.appendText(ChronoField.MONTH_OF_YEAR, TextStyle.SHORT);
      case 'c' -> out.appendValue(ChronoField.MONTH_OF_YEAR);
      case 'd' -> out.appendValue(ChronoField.DAY_OF_MONTH, 2);
      case 'e' -> out.appendValue(ChronoField.DAY_OF_MONTH);
      case 'f' -> out.appendFraction(ChronoField.NANO_OF_SECOND, 6, 6, false);
      case 'H' -> out.appendValue(ChronoField.HOUR_OF_DAY, 2);
      case 'h', 'I' -> out.appendValue(ChronoField.CLOCK_HOUR_OF_AMPM, 2);
      case 'i' -> out.appendValue(ChronoField.MINUTE_OF_HOUR, 2);
      case 'j' -> out.appendValue(ChronoField.DAY_OF_YEAR, 3);
      case 'k' -> out.appendValue(ChronoField.HOUR_OF_DAY);
      case 'l' -> out.appendValue(ChronoField.CLOCK_HOUR_OF_AMPM);
      case 'M' -> out.appendText(ChronoField.MONTH_OF_YEAR, TextStyle.FULL);
      case 'm' -> out.appendValue(ChronoField.MONTH_OF_YEAR, 2);
      case 'p' -> out.appendText(ChronoField.AMPM_OF_DAY, TextStyle.SHORT);
      case 'r' -> out.appendPattern("hh:mm:ss a");
      case 'S', 's' -> out.appendValue(ChronoField.SECOND_OF_MINUTE, 2);
      case 'T' -> out.appendPattern("HH:mm:ss");
      case 'v' -> out.appendValue(IsoFields.WEEK_OF_WEEK_BASED_YEAR, 2);
      case 'W' -> out.appendText(ChronoField.DAY_OF_WEEK, TextStyle.FULL);
      case 'x' -> out.appendValue(IsoFields.WEEK_BASED_YEAR, 4, 10, SignStyle.EXCEEDS_PAD);
      case 'Y' -> out.appendValue(ChronoField.YEAR, 4, 10, SignStyle.EXCEEDS_PAD);
      case 'y' -> out.appendValueReduced(ChronoField.YEAR, 2, 2, 1970);
      case 'D', 'U', 'u', 'V', 'w', 'X' -> throw Refusal.ofArgument("The code " + code + " is not supported in formats of dates");
      default -> out.appendLiteral(code);
    }
  }

  /** yyyy-MM-dd HH:mm:ss, with Joda's meaning of the letters. */
  static void joda(DateTimeFormatterBuilder out, String pattern) {
    for (int i = 0; i < pattern.length(); ) {
      char c = pattern.charAt(i);
      if (c == '\'') {
        int end = pattern.indexOf('\'', i + 1);
        if (end < 0) throw Refusal.ofArgument("The format has a quote without an end");
        out.appendLiteral(end == i + 1 ? "'" : pattern.substring(i + 1, end));
        i = end + 1;
        continue;
      }
      int count = 1;
      while (i + count < pattern.length() && pattern.charAt(i + count) == c) count++;
      if (Character.isLetter(c)) jodaLetter(out, c, count);
      else out.appendLiteral(pattern.substring(i, i + count));
      i += count;
    }
  }

  private static void jodaLetter(DateTimeFormatterBuilder out, char letter, int count) {
    TextStyle style = count >= 4 ? TextStyle.FULL : TextStyle.SHORT;
    switch (letter) {
      case 'C' -> number(out, Century.OF_ERA, count, 10);
      case 'Y', 'y' -> {
        if (count == 2) out.appendValueReduced(ChronoField.YEAR, 2, 2, 1970);
        else number(out, ChronoField.YEAR, count, 10);
      }
      case 'x' -> number(out, IsoFields.WEEK_BASED_YEAR, count, 10);
      case 'w' -> number(out, IsoFields.WEEK_OF_WEEK_BASED_YEAR, count, 2);
      case 'e' -> number(out, ChronoField.DAY_OF_WEEK, count, 1);
      case 'E' -> out.appendText(ChronoField.DAY_OF_WEEK, style);
      case 'D' -> number(out, ChronoField.DAY_OF_YEAR, count, 3);
      case 'M' -> {
        if (count >= 3) out.appendText(ChronoField.MONTH_OF_YEAR, style);
        else number(out, ChronoField.MONTH_OF_YEAR, count, 2);
      }
      case 'd' -> number(out, ChronoField.DAY_OF_MONTH, count, 2);
      case 'a' -> out.appendText(ChronoField.AMPM_OF_DAY, TextStyle.SHORT);
      case 'K' -> number(out, ChronoField.HOUR_OF_AMPM, count, 2);
      case 'h' -> number(out, ChronoField.CLOCK_HOUR_OF_AMPM, count, 2);
      case 'H' -> number(out, ChronoField.HOUR_OF_DAY, count, 2);
      case 'k' -> number(out, ChronoField.CLOCK_HOUR_OF_DAY, count, 2);
      case 'm' -> number(out, ChronoField.MINUTE_OF_HOUR, count, 2);
      case 's' -> number(out, ChronoField.SECOND_OF_MINUTE, count, 2);
      case 'S' -> out.appendFraction(ChronoField.NANO_OF_SECOND, count, Math.min(9, count), false);
      case 'z' -> out.appendZoneText(style);
      case 'Z' -> {
        if (count >= 3) out.appendZoneId();
        else out.appendOffset(count == 2 ? "+HH:MM" : "+HHMM", count == 2 ? "+00:00" : "+0000");
      }
      case 'G' -> out.appendText(ChronoField.ERA, TextStyle.SHORT);
      default -> throw Refusal.ofArgument("The letter " + letter + " is not supported in formats");
    }
  }

  private static void number(DateTimeFormatterBuilder out, java.time.temporal.TemporalField field, int count, int most) {
    out.appendValue(field, count, Math.max(count, most), SignStyle.NORMAL);
  }

  /** yyyy/mm/dd hh24:mi:ss */
  static void teradata(DateTimeFormatterBuilder out, String pattern) {
    String text = pattern.toLowerCase(Locale.ROOT);
    for (int i = 0; i < text.length(); ) {
      int from = i;
      String code = TERADATA_CODES.stream().filter(each -> text.startsWith(each, from)).findFirst().orElse(null);
      if (code == null) {
        char c = text.charAt(i++);
        if (Character.isLetter(c)) throw Refusal.ofArgument("The format has an unknown code");
        out.appendLiteral(c);
        continue;
      }
      i += code.length();
      if (code.equals("yyyy")) out.appendValue(ChronoField.YEAR, 4);
      else if (code.equals("yy")) out.appendValueReduced(ChronoField.YEAR, 2, 2, 2000);
      else out.appendValue(TERADATA_FIELDS.get(code), 2);
    }
  }
}
