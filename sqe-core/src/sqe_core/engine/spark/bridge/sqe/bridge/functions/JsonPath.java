package sqe.bridge.functions;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import sqe.bridge.Refusal;

/** A path through JSON: [lax|strict] $ .name ."name" ["name"] [0] [last] [*] .* — no filters and no methods. */
final class JsonPath {
  private static final Map<String, JsonPath> PARSED = new ConcurrentHashMap<>();
  private static final int MAX_PARSED = 1000;
  private static final Object ALL_ELEMENTS = new Object();
  private static final Object ALL_MEMBERS = new Object();
  private static final Object LAST = new Object();

  final boolean many; // whether it can lead to several places
  private final boolean lax;
  private final boolean simple; // Trino's json_extract: no mode is named
  private final List<Object> steps = new ArrayList<>(); // String, Integer or one of the marks
  private final String text;
  private int at;

  private JsonPath(String written) {
    String body = written.trim();
    boolean strict = body.startsWith("strict ");
    boolean named = strict || body.startsWith("lax ");
    text = named ? body.substring(body.indexOf(' ') + 1).trim() : body;
    simple = !named;
    lax = named && !strict;
    parse();
    many = steps.contains(ALL_ELEMENTS) || steps.contains(ALL_MEMBERS);
  }

  static JsonPath of(String written) {
    JsonPath known = PARSED.get(written);
    if (known != null) return known;
    JsonPath parsed = new JsonPath(written);
    if (PARSED.size() < MAX_PARSED) PARSED.put(written, parsed);
    return parsed;
  }

  private void parse() {
    if (text.isEmpty()) throw bad();
    if (text.charAt(0) == '$') at = 1;
    else if (simple) at = -1; // a.b means $.a.b
    else throw bad();
    if (at < 0) {
      at = 0;
      steps.add(name());
    }
    while (at < text.length()) {
      char c = text.charAt(at);
      if (c == '.') {
        at++;
        if (at < text.length() && text.charAt(at) == '*') {
          at++;
          steps.add(ALL_MEMBERS);
        } else steps.add(name());
      } else if (c == '[') {
        at++;
        subscript();
      } else if (c == ' ') at++;
      else throw bad();
    }
  }

  private void subscript() {
    skipSpaces();
    if (at >= text.length()) throw bad();
    char c = text.charAt(at);
    if (c == '*') {
      at++;
      steps.add(ALL_ELEMENTS);
    } else if (c == '"' || c == '\'') steps.add(quoted(c));
    else if (text.startsWith("last", at)) {
      at += 4;
      steps.add(LAST);
    } else {
      int start = at;
      while (at < text.length() && text.charAt(at) != ']') at++;
      String inside = text.substring(start, at).trim();
      try {
        steps.add(Integer.valueOf(inside));
      } catch (NumberFormatException error) {
        if (!simple || inside.isEmpty()) throw bad();
        steps.add(inside);
      }
    }
    skipSpaces();
    if (at >= text.length() || text.charAt(at) != ']') throw bad();
    at++;
  }

  private void skipSpaces() {
    while (at < text.length() && text.charAt(at) == ' ') at++;
  }

  private String name() {
    if (at < text.length() && text.charAt(at) == '"') return quoted('"');
    int start = at;
    while (at < text.length() && (Character.isLetterOrDigit(text.charAt(at)) || "_-:@".indexOf(text.charAt(at)) >= 0)) at++;
    if (at == start) throw bad();
    return text.substring(start, at);
  }

  private String quoted(char quote) {
    StringBuilder out = new StringBuilder();
    at++;
    while (at < text.length() && text.charAt(at) != quote) {
      if (text.charAt(at) == '\\' && at + 1 < text.length()) at++;
      out.append(text.charAt(at++));
    }
    if (at >= text.length()) throw bad();
    at++;
    return out.toString();
  }

  private Refusal bad() {
    return Refusal.ofArgument("The JSON path is invalid or not supported");
  }

  List<JsonNode> find(JsonNode root) {
    List<JsonNode> nodes = List.of(root);
    for (Object step : steps) {
      List<JsonNode> next = new ArrayList<>();
      for (JsonNode node : nodes) follow(node, step, next);
      nodes = next;
    }
    return nodes;
  }

  private void follow(JsonNode node, Object step, List<JsonNode> found) {
    if (step == ALL_ELEMENTS) {
      if (node.isArray()) node.forEach(found::add);
      else if (lax) found.add(node);
    } else if (step == ALL_MEMBERS) {
      if (node.isObject() || (simple && node.isArray())) node.forEach(found::add);
      else if (lax && node.isArray()) for (JsonNode each : node) follow(each, step, found);
    } else if (step == LAST || step instanceof Integer) {
      if (node.isArray()) {
        int index = step == LAST ? node.size() - 1 : ((Integer) step).intValue();
        if (index >= 0 && index < node.size()) found.add(node.get(index));
      } else if (lax && (step == LAST || ((Integer) step).intValue() == 0)) found.add(node);
      else if (simple && node.isObject() && node.has(String.valueOf(step))) found.add(node.get(String.valueOf(step)));
    } else if (node.isObject()) {
      if (node.has((String) step)) found.add(node.get((String) step));
    } else if (lax && node.isArray()) {
      for (var each : node) if (each.isObject()) follow(each, step, found);
    }
  }
}
