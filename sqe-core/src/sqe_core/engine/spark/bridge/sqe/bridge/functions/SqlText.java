package sqe.bridge.functions;

import java.net.URI;
import java.net.URISyntaxException;
import java.net.URLDecoder;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.text.Normalizer;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.regex.PatternSyntaxException;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;
import org.apache.commons.lang3.StringUtils;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.XXH64;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;
import sqe.bridge.Refusal;

/** Text functions of the SQL dialect, called by templates. No argument is ever NULL; a result may be. */
public final class SqlText {
  private static final ThreadLocal<Pattern> PATTERN = new ThreadLocal<>(); // the last one

  private static final long MOST_GROUPS = 1000000;

  private SqlText() {}

  /** The part number `index`, from 1; NULL behind the last. */
  public static UTF8String splitPart(UTF8String text, UTF8String delimiter, long index) {
    if (index < 1) throw Refusal.ofArgument("The index must be greater than zero");
    String value = text.toString();
    String separator = delimiter.toString();
    if (separator.isEmpty()) {
      if (index > value.codePointCount(0, value.length())) return null;
      int at = value.offsetByCodePoints(0, (int) index - 1);
      return UTF8String.fromString(new String(Character.toChars(value.codePointAt(at))));
    }
    int start = 0;
    for (long part = 1; ; part++) {
      int end = value.indexOf(separator, start);
      if (part == index) return UTF8String.fromString(end < 0 ? value.substring(start) : value.substring(start, end));
      if (end < 0) return null;
      start = end + separator.length();
    }
  }

  /** All parts, or `limit` of them, the last with the rest; 0 for all. */
  public static ArrayData split(UTF8String text, UTF8String delimiter, int limit) {
    String value = text.toString();
    String separator = delimiter.toString();
    if (separator.isEmpty()) throw Refusal.ofArgument("The delimiter must not be empty");
    List<UTF8String> parts = new ArrayList<>();
    int start = 0;
    while (limit <= 0 || parts.size() < limit - 1) {
      int end = value.indexOf(separator, start);
      if (end < 0) break;
      parts.add(UTF8String.fromString(value.substring(start, end)));
      start = end + separator.length();
    }
    parts.add(UTF8String.fromString(value.substring(start)));
    return new GenericArrayData(parts.toArray());
  }

  /** Where the occurrence number `instance` begins, from 1, from the end when it is negative; 0 for none. */
  public static long position(UTF8String text, UTF8String part, long instance) {
    if (instance == 0) throw Refusal.ofArgument("The instance must not be zero");
    String value = text.toString();
    String searched = part.toString();
    if (searched.isEmpty()) return 1;
    int number = (int) Math.min(Math.abs(instance), Integer.MAX_VALUE);
    int at =
        instance > 0
            ? StringUtils.ordinalIndexOf(value, searched, number)
            : StringUtils.lastOrdinalIndexOf(value, searched, number);
    return at < 0 ? 0 : value.codePointCount(0, at) + 1;
  }

  public static long hammingDistance(UTF8String left, UTF8String right) {
    int[] first = left.toString().codePoints().toArray();
    int[] second = right.toString().codePoints().toArray();
    if (first.length != second.length) throw Refusal.ofArgument("The strings must have the same length");
    long distance = 0;
    for (int i = 0; i < first.length; i++) if (first[i] != second[i]) distance++;
    return distance;
  }

  public static UTF8String fromCodePoint(long point) {
    if (point < 0 || point > Character.MAX_CODE_POINT || (point >= 0xD800 && point <= 0xDFFF))
      throw Refusal.ofArgument("The number is no Unicode code point");
    return UTF8String.fromString(new String(Character.toChars((int) point)));
  }

  public static int codePoint(UTF8String text) {
    String value = text.toString();
    if (value.isEmpty() || value.codePointCount(0, value.length()) != 1)
      throw Refusal.ofArgument("codepoint takes a string of one character");
    return value.codePointAt(0);
  }

  public static UTF8String normalize(UTF8String text, UTF8String form) {
    return UTF8String.fromString(Normalizer.normalize(text.toString(), Normalizer.Form.valueOf(form.toString())));
  }

  /** Bytes that are not UTF-8 become U+FFFD. */
  public static UTF8String fromUtf8(byte[] bytes) {
    return UTF8String.fromString(new String(bytes, StandardCharsets.UTF_8));
  }

  /** From `start`, counted from 1, or from the end when negative; outside of the text it is empty. */
  public static UTF8String substring(UTF8String text, long start, long length) {
    long size = text.numChars();
    if (start == 0 || length <= 0 || size == 0) return UTF8String.EMPTY_UTF8;
    long first = start > 0 ? start - 1 : size + start;
    if (first < 0 || first >= size) return UTF8String.EMPTY_UTF8;
    long last = length > size - first ? size : first + length;
    return text.substring((int) first, (int) last);
  }

  public static byte[] substringBytes(byte[] bytes, long start, long length) {
    long size = bytes.length;
    long first = start > 0 ? start - 1 : size + start;
    if (start == 0 || length <= 0 || first < 0 || first >= size) return new byte[0];
    long last = length > size - first ? size : first + length;
    return java.util.Arrays.copyOfRange(bytes, (int) first, (int) last);
  }

  private static Pattern pattern(String text) {
    Pattern last = PATTERN.get();
    if (last != null && last.pattern().equals(text)) return last;
    try {
      Pattern compiled = Pattern.compile(text);
      PATTERN.set(compiled);
      return compiled;
    } catch (PatternSyntaxException error) {
      throw Refusal.ofArgument("The pattern is no regular expression");
    }
  }

  /** The group of the first match, NULL without one. */
  public static UTF8String regexpExtract(UTF8String text, UTF8String regex, int group) {
    Matcher matcher = pattern(regex.toString()).matcher(text.toString());
    if (group < 0 || group > matcher.groupCount())
      throw Refusal.ofArgument("The pattern does not have so many groups");
    if (!matcher.find()) return null;
    String found = matcher.group(group);
    return found == null ? null : UTF8String.fromString(found);
  }

  /** Where the occurrence begins, from 1; -1 for none. */
  public static int regexpPosition(UTF8String text, UTF8String regex, int start, int occurrence) {
    if (start < 1) throw Refusal.ofArgument("The start must not be smaller than 1");
    if (occurrence < 1) throw Refusal.ofArgument("The occurrence must not be smaller than 1");
    String value = text.toString();
    if (start > value.codePointCount(0, value.length())) return -1;
    Matcher matcher = pattern(regex.toString()).matcher(value);
    int from = value.offsetByCodePoints(0, start - 1);
    for (int left = occurrence; left > 0; left--) {
      if (!matcher.find(from)) return -1;
      from = matcher.end() > matcher.start() ? matcher.end() : matcher.end() + 1;
      if (from > value.length()) {
        if (left > 1) return -1;
        break;
      }
    }
    return value.codePointCount(0, matcher.start()) + 1;
  }

  /** The regular expression of a SIMILAR TO pattern; `escape` is one character or empty. */
  public static UTF8String similarPattern(UTF8String pattern, UTF8String escape) {
    String text = pattern.toString();
    String mark = escape.toString();
    StringBuilder out = new StringBuilder("^(?s:");
    boolean set = false;
    for (int i = 0; i < text.length(); i++) {
      char c = text.charAt(i);
      if (mark.length() == 1 && c == mark.charAt(0)) {
        if (++i == text.length()) throw Refusal.ofArgument("The pattern ends with its escape character");
        out.append(Pattern.quote(text.substring(i, i + 1)));
      } else if (set) {
        if (c == ']') set = false;
        out.append(c == '\\' || c == '[' || c == '&' ? "\\" + c : String.valueOf(c));
      } else if (c == '[') {
        set = true;
        out.append(c);
      } else if (c == '%') out.append(".*");
      else if (c == '_') out.append('.');
      else if ("|*+?(){},".indexOf(c) >= 0 || Character.isLetterOrDigit(c)) out.append(c == ',' && !inBraces(out) ? "," : String.valueOf(c));
      else out.append(Pattern.quote(String.valueOf(c)));
    }
    return UTF8String.fromString(out.append(")$").toString());
  }

  private static boolean inBraces(StringBuilder out) {
    return out.lastIndexOf("{") > out.lastIndexOf("}");
  }

  /** Each character by itself, as Trino does: there is no capital of the German sharp s. */
  public static UTF8String upper(UTF8String text) {
    if (text.isFullAscii()) return text.toUpperCase();
    int[] characters = text.toString().codePoints().map(Character::toUpperCase).toArray();
    return UTF8String.fromString(new String(characters, 0, characters.length));
  }

  public static byte[] xxhash64(byte[] bytes) {
    long hash = XXH64.hashUnsafeBytes(bytes, Platform.BYTE_ARRAY_OFFSET, bytes.length, 0L);
    return ByteBuffer.allocate(8).putLong(hash).array();
  }

  public static byte[] hmac(byte[] bytes, byte[] key, UTF8String algorithm) {
    try {
      Mac mac = Mac.getInstance("Hmac" + algorithm.toString());
      mac.init(new SecretKeySpec(key.length == 0 ? new byte[1] : key, "Hmac"));
      return mac.doFinal(bytes);
    } catch (java.security.GeneralSecurityException error) {
      throw Refusal.ofArgument("The algorithm or the key cannot be used");
    }
  }

  public static byte[] bigEndian64(long value) {
    return ByteBuffer.allocate(8).putLong(value).array();
  }

  public static byte[] bigEndian32(int value) {
    return ByteBuffer.allocate(4).putInt(value).array();
  }

  public static long fromBigEndian64(byte[] bytes) {
    if (bytes.length != 8) throw Refusal.ofArgument("The binary must have 8 bytes");
    return ByteBuffer.wrap(bytes).getLong();
  }

  public static int fromBigEndian32(byte[] bytes) {
    if (bytes.length != 4) throw Refusal.ofArgument("The binary must have 4 bytes");
    return ByteBuffer.wrap(bytes).getInt();
  }

  private static URI uri(UTF8String url) {
    try {
      return new URI(url.toString());
    } catch (URISyntaxException error) {
      return null;
    }
  }

  /** The port of a URL, NULL without one. */
  public static Long urlPort(UTF8String url) {
    URI uri = uri(url);
    return uri == null || uri.getPort() < 0 ? null : Long.valueOf(uri.getPort());
  }

  /** A part of a URL: protocol and the like, empty when it is missing; NULL when it is no URL. */
  public static UTF8String urlPart(UTF8String url, UTF8String part) {
    URI uri = uri(url);
    if (uri == null) return null;
    String found =
        switch (part.toString()) {
          case "protocol" -> uri.getScheme();
          case "host" -> uri.getHost();
          case "path" -> uri.getPath();
          case "query" -> uri.getRawQuery();
          case "fragment" -> uri.getFragment();
          default -> null;
        };
    return found == null ? UTF8String.EMPTY_UTF8 : UTF8String.fromString(found);
  }

  /** The value of a parameter of a URL, decoded; NULL without it. */
  public static UTF8String urlParameter(UTF8String url, UTF8String parameter) {
    URI uri = uri(url);
    if (uri == null || uri.getRawQuery() == null) return null;
    for (String each : uri.getRawQuery().split("&")) {
      String[] pair = each.split("=", 2);
      if (URLDecoder.decode(pair[0], StandardCharsets.UTF_8).equals(parameter.toString()))
        return UTF8String.fromString(pair.length == 1 ? "" : URLDecoder.decode(pair[1], StandardCharsets.UTF_8));
    }
    return null;
  }

  /** Fails where a map has no value for a key, as arrays fail beyond their end. */
  public static boolean keyPresent(boolean present) {
    if (!present) throw Refusal.ofArgument("MAP_KEY");
    return true;
  }

  /** The text itself, if it is not longer than a cast allows. */
  public static UTF8String fits(UTF8String text, int length) {
    if (text.numChars() > length) throw Refusal.ofArgument("LONGER_THAN_CAST");
    return text;
  }

  /** What a text is filled up with. */
  public static UTF8String padding(UTF8String text) {
    if (text.numBytes() == 0) throw Refusal.ofArgument("The padding must not be empty");
    return text;
  }

  /** A text with another one before, between and behind its characters. */
  public static UTF8String interleaved(UTF8String text, UTF8String between) {
    StringBuilder out = new StringBuilder(between.toString());
    text.toString().codePoints().forEach(point -> out.appendCodePoint(point).append(between));
    return UTF8String.fromString(out.toString());
  }

  public static UTF8String soundex(UTF8String text) {
    try {
      return UTF8String.fromString(new org.apache.commons.codec.language.Soundex().encode(text.toString()));
    } catch (IllegalArgumentException error) {
      throw Refusal.ofArgument("soundex takes letters of English");
    }
  }

  /** The groups of all matches; NULL where one takes no part in its match. */
  public static ArrayData regexpExtractAll(UTF8String text, UTF8String regex, int group) {
    Matcher matcher = pattern(regex.toString()).matcher(text.toString());
    if (group < 0 || group > matcher.groupCount())
      throw Refusal.ofArgument("The pattern does not have so many groups");
    List<UTF8String> found = new ArrayList<>();
    while (matcher.find()) found.add(matcher.group(group) == null ? null : UTF8String.fromString(matcher.group(group)));
    return new GenericArrayData(found.toArray());
  }

  /** The groups of each match, without the match itself. */
  public static ArrayData regexpGroups(UTF8String text, UTF8String regex) {
    Matcher matcher = pattern(regex.toString()).matcher(text.toString());
    List<Object> found = new ArrayList<>();
    while (matcher.find()) {
      if ((found.size() + 1L) * matcher.groupCount() > MOST_GROUPS)
        throw Refusal.ofArgument("The pattern has too many groups for so many matches");
      Object[] groups = new Object[matcher.groupCount()];
      for (int at = 0; at < groups.length; at++)
        groups[at] = matcher.group(at + 1) == null ? null : UTF8String.fromString(matcher.group(at + 1));
      found.add(new GenericArrayData(groups));
    }
    return new GenericArrayData(found.toArray());
  }

  /** The text with the matches of a pattern exchanged, one by one; NULL where one of them is NULL. */
  public static UTF8String regexpReplaced(UTF8String text, UTF8String regex, ArrayData replacements) {
    Matcher matcher = pattern(regex.toString()).matcher(text.toString());
    StringBuilder out = new StringBuilder();
    for (int at = 0; matcher.find(); at++) {
      if (replacements.isNullAt(at)) return null;
      matcher.appendReplacement(out, Matcher.quoteReplacement(replacements.getUTF8String(at).toString()));
    }
    return UTF8String.fromString(matcher.appendTail(out).toString());
  }

  /** a=1,b=2 as rows of a key and a value. */
  public static ArrayData entries(UTF8String text, UTF8String delimiter, UTF8String equals) {
    if (delimiter.numBytes() == 0 || equals.numBytes() == 0) throw Refusal.ofArgument("The delimiter must not be empty");
    if (delimiter.equals(equals)) throw Refusal.ofArgument("The delimiters must differ");
    List<Object> rows = new ArrayList<>();
    String left = text.toString();
    while (!left.isEmpty()) {
      int end = left.indexOf(delimiter.toString());
      String entry = end < 0 ? left : left.substring(0, end);
      left = end < 0 ? "" : left.substring(end + delimiter.toString().length());
      int at = entry.indexOf(equals.toString());
      int behind = at + equals.toString().length();
      if (at < 0 || entry.indexOf(equals.toString(), behind) >= 0)
        throw Refusal.ofArgument("Each entry must have a key and a value, and one delimiter between them");
      UTF8String key = UTF8String.fromString(entry.substring(0, at));
      rows.add(new GenericInternalRow(new Object[] {key, UTF8String.fromString(entry.substring(behind))}));
    }
    return new GenericArrayData(rows.toArray());
  }

  private static final Pattern UUID = Pattern.compile("(?i)[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}");

  /** A UUID in lower case. */
  public static UTF8String uuid(UTF8String text) {
    UTF8String found = tryUuid(text);
    if (found == null) throw Refusal.ofArgument("NO_UUID");
    return found;
  }

  public static UTF8String tryUuid(UTF8String text) {
    return UUID.matcher(text.toString()).matches() ? text.toLowerCase() : null;
  }
}
