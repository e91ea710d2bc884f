package sqe.bridge;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class JsonTest {
  private static String written(String text) {
    StringBuilder out = new StringBuilder();
    Json.string(out, text);
    return out.toString();
  }

  @Test
  void everyTextComesBackAsItWas() {
    for (String text : List.of("", "plain", "\"\\/\b\f\n\r\t", "\u0000\u001f\u007f", "é 漢 😀"))
      assertEquals(text, Json.read(written(text)).asText());
  }

  @Test
  void surrogatesAreEscapedSinceALoneOneIsNoUtf8() {
    assertEquals("\"\\ud83d\\ude00\"", written("😀"));
    assertEquals("\"\\ud800\"", written("\ud800"));
    assertEquals("null", written(null));
  }

  @Test
  void membersAndElementsHaveTheirCommas() {
    StringBuilder out = new StringBuilder("{");
    Json.member(out, "a", "1");
    Json.member(out, "b").append(2);
    Json.strings(Json.member(out, "c"), List.of("x", "y"));
    Map<String, String> map = new LinkedHashMap<>();
    map.put("k", null);
    map.put("l", "v");
    Json.map(Json.member(out, "d"), map);
    assertEquals("{\"a\":\"1\",\"b\":2,\"c\":[\"x\",\"y\"],\"d\":{\"k\":null,\"l\":\"v\"}", out.toString());
  }

  @Test
  void nullsOfAMapStayNull() {
    Map<?, ?> read = Json.textMap(Json.read("{\"a\": null, \"b\": 1, \"c\": \"x\"}"));
    assertNull(read.get("a"));
    assertEquals(List.of("a", "b", "c"), List.copyOf(read.keySet()));
    assertEquals("1", read.get("b"));
  }

  @Test
  void whatIsNoJsonIsRefused() {
    BridgeException refused = assertThrows(BridgeException.class, () -> Json.read("{"));
    assertEquals("SQE_BAD_REQUEST", refused.condition);
    JsonNode array = Json.read("[\"a\", \"b\"]");
    assertEquals(List.of("a", "b"), Json.texts(array));
  }
}
