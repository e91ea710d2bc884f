package sqe.bridge;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import scala.jdk.javaapi.CollectionConverters;

/** Writes JSON into a StringBuilder, which is much quicker than building a tree; reads with Jackson. */
public final class Json {
  private static final ObjectMapper MAPPER = new ObjectMapper();
  private static final HexFormat HEX = HexFormat.of();

  private Json() {}

  public static JsonNode read(String text) {
    try {
      return MAPPER.readTree(text);
    } catch (Exception broken) {
      throw new BridgeException("SQE_BAD_REQUEST", String.valueOf(broken.getMessage()));
    }
  }

  public static void string(StringBuilder out, String text) {
    if (text == null) {
      out.append("null");
      return;
    }
    out.append('"');
    for (int i = 0; i < text.length(); i++) {
      char c = text.charAt(i);
      if (c == '"' || c == '\\') out.append('\\').append(c);
      // Surrogates are escaped too: a lone one cannot pass as UTF-8.
      else if (c < 32 || c == 127 || Character.isSurrogate(c)) out.append("\\u").append(HEX.toHexDigits(c));
      else out.append(c);
    }
    out.append('"');
  }

  /** Writes `"name":`, with a comma before it unless it is the first member. */
  public static StringBuilder member(StringBuilder out, String name) {
    if (out.charAt(out.length() - 1) != '{') out.append(',');
    string(out, name);
    return out.append(':');
  }

  public static void member(StringBuilder out, String name, String value) {
    string(member(out, name), value);
  }

  public static void element(StringBuilder out) {
    if (out.charAt(out.length() - 1) != '[') out.append(',');
  }

  /** Writes `[…]`, each element by `write`. */
  public static <T> void array(StringBuilder out, Iterable<T> elements, Consumer<? super T> write) {
    out.append('[');
    for (T each : elements) {
      element(out);
      write.accept(each);
    }
    out.append(']');
  }

  public static void strings(StringBuilder out, Iterable<?> texts) {
    array(out, texts, text -> string(out, String.valueOf(text)));
  }

  public static void strings(StringBuilder out, String... texts) {
    strings(out, Arrays.asList(texts));
  }

  public static void strings(StringBuilder out, scala.collection.Iterable<?> texts) {
    strings(out, CollectionConverters.asJava(texts));
  }

  public static void map(StringBuilder out, Map<?, ?> map) {
    out.append('{');
    map.forEach((key, value) -> member(out, String.valueOf(key), value == null ? null : String.valueOf(value)));
    out.append('}');
  }

  public static List<String> texts(JsonNode array) {
    List<String> texts = new ArrayList<>();
    for (JsonNode text : array) texts.add(text.asText());
    return texts;
  }

  public static String[] textArray(JsonNode array) {
    return texts(array).toArray(new String[0]);
  }

  /** A JSON object of texts; null values stay null. */
  public static Map<String, String> textMap(JsonNode object) {
    Map<String, String> map = new LinkedHashMap<>();
    object.properties().forEach(each -> map.put(each.getKey(), each.getValue().isNull() ? null : each.getValue().asText()));
    return map;
  }
}
