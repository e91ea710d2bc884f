package sqe.bridge.functions;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import sqe.bridge.Refusal;

/** A path through JSON: [lax|strict] $ .name ."name" ["name"] [0] [last] [*] .* — no filters and no methods. */
final class JsonPath {
  private static final Map<String, JsonPath> PARSED = new ConcurrentHashMap<>();
  private static final int MAX_PARSED = 1000;
  private static final Object ALL_ELEMENTS = new Object();
  private static final Object ALL_MEMBERS = new Object();
  private static final Object LAST = new Object();

  private static final String QUOTED = "\"([^\"\\\\]*+(?:\\\\.[^\"\\\\]*+)*+)\"";
  private static final String NAME = "([\\p{L}\\p{Nd}_:@-]+)|" + QUOTED;

  /** A step and the spaces behind it: .name ."name" .* [*] [last] ["name"] ['name'] [0] [name] */
  private static final Pattern STEP =
      Pattern.compile(
          "(?:\\.(?:" + NAME + "|(\\*))"
              + "|\\[ *+(?:(\\*)|" + QUOTED + "|" + QUOTED.replace('"', '\'') + "|(last)|(?!last|[*\"'])([^\\]]*)) *\\]) *",
          Pattern.DOTALL);

  final boolean many; // whether it can lead to several places
  private final boolean lax;
  private final boolean simple; // Trino's json_extract: no mode is named
  private final List<Object> steps = new ArrayList<>(); // String, Integer or one of the marks

  private JsonPath(String written) {
    String body = written.trim();
    boolean strict = body.startsWith("strict ");
    boolean named = strict || body.startsWith("lax ");
    String text = named ? body.substring(body.indexOf(' ') + 1).trim() : body;
    simple = !named;
    lax = named && !strict;
    if (text.isEmpty()) throw bad();
    if (text.charAt(0) == '$') text = text.substring(1).stripLeading();
    else if (simple && text.charAt(0) != '*') text = "." + text; // a.b means $.a.b
    else throw bad();
    Matcher step = STEP.matcher(text);
    int at = 0;
    for (; step.find(at) && step.start() == at; at = step.end()) steps.add(step(step));
    if (at < text.length()) throw bad();
    many = steps.contains(ALL_ELEMENTS) || steps.contains(ALL_MEMBERS);
  }

  private Object step(Matcher step) {
    if (step.group(3) != null) return ALL_MEMBERS;
    if (step.group(4) != null) return ALL_ELEMENTS;
    if (step.group(7) != null) return LAST;
    if (step.group(1) != null) return step.group(1);
    for (int quoted : new int[] {2, 5, 6}) if (step.group(quoted) != null) return step.group(quoted).replaceAll("(?s)\\\\(.)", "$1");
    String inside = step.group(8).trim();
    try {
      return Integer.valueOf(inside);
    } catch (NumberFormatException error) {
      if (!simple || inside.isEmpty()) throw bad();
      return inside;
    }
  }

  static JsonPath of(String written) {
    JsonPath known = PARSED.get(written);
    if (known != null) return known;
    JsonPath parsed = new JsonPath(written);
    if (PARSED.size() < MAX_PARSED) PARSED.put(written, parsed);
    return parsed;
  }

  private static Refusal bad() {
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
        int index = step == LAST ? node.size() - 1 : (Integer) step;
        if (index >= 0 && index < node.size()) found.add(node.get(index));
      } else if (lax && (step == LAST || (Integer) step == 0)) found.add(node);
      else if (simple && node.isObject() && node.has(String.valueOf(step))) found.add(node.get(String.valueOf(step)));
    } else if (node.isObject()) {
      if (node.has((String) step)) found.add(node.get((String) step));
    } else if (lax && node.isArray()) {
      for (var each : node) if (each.isObject()) follow(each, step, found);
    }
  }
}
