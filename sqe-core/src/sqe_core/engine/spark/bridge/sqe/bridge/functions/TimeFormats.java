package sqe.bridge.functions;

import java.time.format.DateTimeFormatterBuilder;
import java.time.format.SignStyle;
import java.time.format.TextStyle;
import java.time.temporal.ChronoField;
import java.time.temporal.IsoFields;
import java.util.HashMap;
import java.util.Locale;
import java.util.Map;

/** The three ways in which the SQL dialect's functions write formats of dates and times. */
final class TimeFormats {
  private TimeFormats() {}

  /** %Y-%m-%d %H:%i:%s */
  static void mysql(DateTimeFormatterBuilder out, String pattern) {
    for (int i = 0; i < pattern.length(); i++) {
      char c = pattern.charAt(i);
      if (c != '%' || i + 1 == pattern.length()) {
        out.appendLiteral(c);
        continue;
      }
      char code = pattern.charAt(++i);
      if (!mysqlCode(out, code)) out.appendLiteral(code);
    }
  }

  private static boolean mysqlCode(DateTimeFormatterBuilder out, char code) {
    switch (code) {
      case 'a': out.appendText(ChronoField.DAY_OF_WEEK, TextStyle.SHORT); return true;
      case 'b': out.appendText(ChronoField.MONTH_OF_YEAR, TextStyle.SHORT); return true;
      case 'c': out.appendValue(ChronoField.MONTH_OF_YEAR); return true;
      case 'd': out.appendValue(ChronoField.DAY_OF_MONTH, 2); return true;
      case 'e': out.appendValue(ChronoField.DAY_OF_MONTH); return true;
      case 'f': out.appendFraction(ChronoField.NANO_OF_SECOND, 6, 6, false); return true;
      case 'H': out.appendValue(ChronoField.HOUR_OF_DAY, 2); return true;
      case 'h':
      case 'I': out.appendValue(ChronoField.CLOCK_HOUR_OF_AMPM, 2); return true;
      case 'i': out.appendValue(ChronoField.MINUTE_OF_HOUR, 2); return true;
      case 'j': out.appendValue(ChronoField.DAY_OF_YEAR, 3); return true;
      case 'k': out.appendValue(ChronoField.HOUR_OF_DAY); return true;
      case 'l': out.appendValue(ChronoField.CLOCK_HOUR_OF_AMPM); return true;
      case 'M': out.appendText(ChronoField.MONTH_OF_YEAR, TextStyle.FULL); return true;
      case 'm': out.appendValue(ChronoField.MONTH_OF_YEAR, 2); return true;
      case 'p': out.appendText(ChronoField.AMPM_OF_DAY, TextStyle.SHORT); return true;
      case 'r': out.appendPattern("hh:mm:ss a"); return true;
      case 'S':
      case 's': out.appendValue(ChronoField.SECOND_OF_MINUTE, 2); return true;
      case 'T': out.appendPattern("HH:mm:ss"); return true;
      case 'v': out.appendValue(IsoFields.WEEK_OF_WEEK_BASED_YEAR, 2); return true;
      case 'W': out.appendText(ChronoField.DAY_OF_WEEK, TextStyle.FULL); return true;
      case 'x': out.appendValue(IsoFields.WEEK_BASED_YEAR, 4, 10, SignStyle.EXCEEDS_PAD); return true;
      case 'Y': out.appendValue(ChronoField.YEAR, 4, 10, SignStyle.EXCEEDS_PAD); return true;
      case 'y': out.appendValueReduced(ChronoField.YEAR, 2, 2, 1970); return true;
      case 'D': case 'U': case 'u': case 'V': case 'w': case 'X':
        throw new FunctionArgument("The code " + code + " is not supported in formats of dates");
      default: return false;
    }
  }

  /** yyyy-MM-dd HH:mm:ss, with Joda's meaning of the letters. */
  static void joda(DateTimeFormatterBuilder out, String pattern) {
    for (int i = 0; i < pattern.length(); ) {
      char c = pattern.charAt(i);
      if (c == '\'') {
        int end = pattern.indexOf('\'', i + 1);
        if (end < 0) throw new FunctionArgument("The format has a quote without an end");
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
      case 'C': throw new FunctionArgument("The letter C is not supported in formats");
      case 'Y':
      case 'y':
        if (count == 2) out.appendValueReduced(ChronoField.YEAR, 2, 2, 1970);
        else number(out, ChronoField.YEAR, count, 10);
        return;
      case 'x': number(out, IsoFields.WEEK_BASED_YEAR, count, 10); return;
      case 'w': number(out, IsoFields.WEEK_OF_WEEK_BASED_YEAR, count, 2); return;
      case 'e': number(out, ChronoField.DAY_OF_WEEK, count, 1); return;
      case 'E': out.appendText(ChronoField.DAY_OF_WEEK, style); return;
      case 'D': number(out, ChronoField.DAY_OF_YEAR, count, 3); return;
      case 'M':
        if (count >= 3) out.appendText(ChronoField.MONTH_OF_YEAR, style);
        else number(out, ChronoField.MONTH_OF_YEAR, count, 2);
        return;
      case 'd': number(out, ChronoField.DAY_OF_MONTH, count, 2); return;
      case 'a': out.appendText(ChronoField.AMPM_OF_DAY, TextStyle.SHORT); return;
      case 'K': number(out, ChronoField.HOUR_OF_AMPM, count, 2); return;
      case 'h': number(out, ChronoField.CLOCK_HOUR_OF_AMPM, count, 2); return;
      case 'H': number(out, ChronoField.HOUR_OF_DAY, count, 2); return;
      case 'k': number(out, ChronoField.CLOCK_HOUR_OF_DAY, count, 2); return;
      case 'm': number(out, ChronoField.MINUTE_OF_HOUR, count, 2); return;
      case 's': number(out, ChronoField.SECOND_OF_MINUTE, count, 2); return;
      case 'S': out.appendFraction(ChronoField.NANO_OF_SECOND, count, Math.min(9, count), false); return;
      case 'z': out.appendZoneText(style); return;
      case 'Z':
        if (count >= 3) out.appendZoneId();
        else out.appendOffset(count == 2 ? "+HH:MM" : "+HHMM", count == 2 ? "+00:00" : "+0000");
        return;
      case 'G': out.appendText(ChronoField.ERA, TextStyle.SHORT); return;
      default: throw new FunctionArgument("The letter " + letter + " is not supported in formats");
    }
  }

  private static void number(DateTimeFormatterBuilder out, java.time.temporal.TemporalField field, int count, int most) {
    out.appendValue(field, count, Math.max(count, most), SignStyle.NORMAL);
  }

  /** yyyy/mm/dd hh24:mi:ss */
  static void teradata(DateTimeFormatterBuilder out, String pattern) {
    String text = pattern.toLowerCase(Locale.ROOT);
    String[] codes = new String[] {"yyyy", "hh24", "hh12", "yy", "mm", "dd", "hh", "mi", "ss"};
    Map fields = new HashMap();
    fields.put("mm", ChronoField.MONTH_OF_YEAR);
    fields.put("dd", ChronoField.DAY_OF_MONTH);
    fields.put("hh24", ChronoField.HOUR_OF_DAY);
    fields.put("hh12", ChronoField.CLOCK_HOUR_OF_AMPM);
    fields.put("hh", ChronoField.CLOCK_HOUR_OF_AMPM);
    fields.put("mi", ChronoField.MINUTE_OF_HOUR);
    fields.put("ss", ChronoField.SECOND_OF_MINUTE);
    for (int i = 0; i < text.length(); ) {
      String code = null;
      for (int k = 0; k < codes.length && code == null; k++) if (text.startsWith(codes[k], i)) code = codes[k];
      if (code == null) {
        char c = text.charAt(i++);
        if (Character.isLetter(c)) throw new FunctionArgument("The format has an unknown code");
        out.appendLiteral(c);
        continue;
      }
      i += code.length();
      if (code.equals("yyyy")) out.appendValue(ChronoField.YEAR, 4);
      else if (code.equals("yy")) out.appendValueReduced(ChronoField.YEAR, 2, 2, 2000);
      else out.appendValue((ChronoField) fields.get(code), 2);
    }
  }
}
