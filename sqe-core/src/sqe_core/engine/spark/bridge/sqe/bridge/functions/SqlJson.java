package sqe.bridge.functions;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;
import java.util.function.Predicate;
import org.apache.spark.unsafe.types.UTF8String;
import sqe.bridge.Refusal;

/** JSON functions of the SQL dialect, called by templates, on JSON texts. No argument is ever NULL; a result may be. */
public final class SqlJson {
  private static final ObjectMapper MAPPER =
      new ObjectMapper()
          .enable(DeserializationFeature.USE_BIG_DECIMAL_FOR_FLOATS)
          .enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS)
          .setNodeFactory(JsonNodeFactory.withExactBigDecimals(true));

  private SqlJson() {}

  /** NULL when the text is no JSON. */
  private static JsonNode read(UTF8String text) {
    try {
      JsonNode node = MAPPER.readTree(text.toString());
      return node == null || node.isMissingNode() ? null : node;
    } catch (JsonProcessingException error) {
      return null;
    }
  }

  private static JsonNode required(UTF8String text) {
    JsonNode node = read(text);
    if (node == null) throw Refusal.ofArgument("The text is no JSON");
    return node;
  }

  private static UTF8String write(JsonNode node) {
    try {
      return UTF8String.fromString(MAPPER.writeValueAsString(node));
    } catch (JsonProcessingException impossible) {
      throw new IllegalStateException(impossible.getMessage());
    }
  }

  private static List<JsonNode> find(UTF8String text, UTF8String path) {
    JsonNode node = read(text);
    return node == null ? null : JsonPath.of(path.toString()).find(node);
  }

  /** json_extract: what the path leads to, as JSON; NULL for nothing. */
  public static UTF8String extract(UTF8String text, UTF8String path) {
    List<JsonNode> found = find(text, path);
    if (found == null || found.isEmpty()) return null;
    if (found.size() == 1 && !JsonPath.of(path.toString()).many) return write(found.get(0));
    return write(array(found));
  }

  /** json_extract_scalar: the text of a scalar; NULL for objects, arrays and null. */
  public static UTF8String extractScalar(UTF8String text, UTF8String path) {
    List<JsonNode> found = find(text, path);
    return found == null || found.size() != 1 ? null : scalar(found.get(0));
  }

  private static UTF8String scalar(JsonNode node) {
    if (node.isContainerNode() || node.isNull()) return null;
    return node.isTextual() ? UTF8String.fromString(node.textValue()) : write(node);
  }

  private static JsonNode array(List<JsonNode> nodes) {
    return MAPPER.createArrayNode().addAll(nodes);
  }

  /** JSON_VALUE. `onEmpty` and `onError`: whether that is an error. */
  public static UTF8String value(UTF8String text, UTF8String path, boolean onEmpty, boolean onError) {
    List<JsonNode> found = find(text, path);
    if (found != null && found.isEmpty()) {
      if (onEmpty) throw Refusal.ofArgument("The JSON path leads to nothing");
      return null;
    }
    if (found == null || found.size() != 1 || found.get(0).isContainerNode()) {
      if (onError) throw Refusal.ofArgument("The JSON path does not lead to one scalar");
      return null;
    }
    return scalar(found.get(0));
  }

  public static Boolean exists(UTF8String text, UTF8String path) {
    List<JsonNode> found = find(text, path);
    return found != null && !found.isEmpty();
  }

  /** JSON_QUERY. `wrapper`: 0 without, 1 conditional, 2 unconditional. */
  public static UTF8String query(UTF8String text, UTF8String path, int wrapper, boolean omitQuotes) {
    List<JsonNode> found = find(text, path);
    if (found == null || found.isEmpty()) return null;
    boolean wrap = wrapper == 2 || (wrapper == 1 && !(found.size() == 1 && found.get(0).isContainerNode()));
    if (wrap) return write(array(found));
    if (found.size() != 1) return null;
    JsonNode node = found.get(0);
    return omitQuotes && node.isTextual() ? UTF8String.fromString(node.textValue()) : write(node);
  }

  /** json_size: members of an object or array, 0 for a scalar; NULL for nothing. */
  public static Long size(UTF8String text, UTF8String path) {
    List<JsonNode> found = find(text, path);
    return found == null || found.isEmpty() ? null : (Long) (long) found.get(0).size();
  }

  public static Long arrayLength(UTF8String text) {
    JsonNode node = read(text);
    return node == null || !node.isArray() ? null : (Long) (long) node.size();
  }

  /** json_array_get: from 0, from the end when negative. */
  public static UTF8String arrayGet(UTF8String text, long index) {
    JsonNode node = read(text);
    if (node == null || !node.isArray()) return null;
    long at = index < 0 ? node.size() + index : index;
    if (at < 0 || at >= node.size()) return null;
    JsonNode found = node.get((int) at);
    return found.isNull() ? null : write(found);
  }

  /** The same for a client to see: a text without its quotes, which is no JSON. */
  public static UTF8String arrayGetShown(UTF8String text, long index) {
    UTF8String found = arrayGet(text, index);
    JsonNode node = found == null ? null : read(found);
    return node == null || !node.isTextual() ? found : UTF8String.fromString(node.textValue());
  }

  public static Boolean arrayContainsText(UTF8String text, UTF8String value) {
    return contains(text, element -> element.isTextual() && element.textValue().equals(value.toString()));
  }

  public static Boolean arrayContainsWhole(UTF8String text, long value) {
    return contains(text, element -> element.canConvertToLong() && element.isIntegralNumber() && element.longValue() == value);
  }

  /** A whole number is not equal to one with a point. */
  public static Boolean arrayContainsNumber(UTF8String text, double value) {
    return contains(text, element -> element.isFloatingPointNumber() && element.doubleValue() == value);
  }

  public static Boolean arrayContainsBoolean(UTF8String text, boolean value) {
    return contains(text, element -> element.isBoolean() && element.booleanValue() == value);
  }

  private static Boolean contains(UTF8String text, Predicate<JsonNode> wanted) {
    JsonNode node = read(text);
    if (node == null || !node.isArray()) return null;
    for (JsonNode element : node) if (wanted.test(element)) return true;
    return false;
  }

  public static Boolean isScalar(UTF8String text) {
    return !required(text).isContainerNode();
  }

  /** IS JSON. */
  public static Boolean isJson(UTF8String text, UTF8String kind) {
    JsonNode node = read(text);
    if (node == null) return false;
    return switch (kind.toString()) {
      case "OBJECT" -> node.isObject();
      case "ARRAY" -> node.isArray();
      case "SCALAR" -> !node.isContainerNode();
      default -> true;
    };
  }

  /** json_parse: the same text, or an error when it is no JSON. */
  public static UTF8String checked(UTF8String text) {
    return write(required(text));
  }

  /** The same JSON, in which each number with a point has an exponent: Spark reads it as a double then, not as a decimal. */
  public static UTF8String doubles(UTF8String text) {
    String json = text.toString();
    StringBuilder out = null;
    int done = 0;
    boolean quoted = false;
    boolean pointed = false;
    for (int at = 0; at <= json.length(); at++) {
      char each = at < json.length() ? json.charAt(at) : ',';
      if (quoted) {
        if (each == '\\') at++;
        else if (each == '"') quoted = false;
      } else if (each == '"') quoted = true;
      else if (each == '.') pointed = true;
      else if (each == 'e' || each == 'E') pointed = false;
      else if (pointed && (each < '0' || each > '9')) {
        if (out == null) out = new StringBuilder(json.length() + 16);
        out.append(json, done, at).append("E0");
        done = at;
        pointed = false;
      }
    }
    return out == null ? text : UTF8String.fromString(out.append(json, done, json.length()).toString());
  }

  /**
   * JSON that is cast to a type with rows: ["row", ["name", inside], ...], ["array", inside] or ["map", inside], where null is
   * any other type. A member is found whatever its case, and an array can be a row.
   */
  public static UTF8String shaped(UTF8String text, UTF8String shape) {
    return write(shaped(required(text), required(shape)));
  }

  private static JsonNode shaped(JsonNode value, JsonNode shape) {
    if (shape.isNull() || !value.isContainerNode()) return value;
    String kind = shape.get(0).textValue();
    if (kind.equals("row")) return row(value, shape);
    if (kind.equals("array") && value.isArray()) {
      ArrayNode made = MAPPER.createArrayNode();
      for (JsonNode each : value) made.add(shaped(each, shape.get(1)));
      return made;
    }
    if (!kind.equals("map") || !value.isObject()) return value;
    ObjectNode made = MAPPER.createObjectNode();
    value.fields().forEachRemaining(each -> made.set(each.getKey(), shaped(each.getValue(), shape.get(1))));
    return made;
  }

  private static JsonNode row(JsonNode value, JsonNode shape) {
    if (value.isArray() && value.size() != shape.size() - 1) return value;
    ObjectNode made = MAPPER.createObjectNode();
    for (int at = 1; at < shape.size(); at++) {
      String name = shape.get(at).get(0).textValue();
      JsonNode found = value.isArray() ? value.get(at - 1) : member(value, name);
      if (found != null) made.set(name, shaped(found, shape.get(at).get(1)));
    }
    return made;
  }

  private static JsonNode member(JsonNode object, String name) {
    if (object.has(name)) return object.get(name);
    for (var fields = object.fields(); fields.hasNext(); ) {
      var field = fields.next();
      if (field.getKey().equalsIgnoreCase(name)) return field.getValue();
    }
    return null;
  }

  /** A scalar of JSON cast to a text: a number with a point as doubles are, null is NULL; the text of anything else. */
  public static UTF8String scalarText(UTF8String text) {
    JsonNode node = read(text);
    if (node == null || node.isContainerNode()) return text;
    if (node.isFloatingPointNumber()) return SqlMath.text(node.doubleValue());
    return scalar(node);
  }

  /** A member of an object by its key, or of an array by its number, along the keys; NULL for nothing. */
  public static UTF8String member(UTF8String text, UTF8String key) {
    JsonNode node = read(text);
    JsonNode found = node == null ? null : step(node, key.toString());
    return found == null || found.isNull() ? null : write(found);
  }

  private static JsonNode step(JsonNode node, String key) {
    if (node.isObject()) return node.get(key);
    if (!node.isArray()) return null;
    try {
      return node.get(Integer.parseInt(key));
    } catch (NumberFormatException error) {
      return null;
    }
  }
}
