package sqe.bridge.functions;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;

import org.apache.spark.unsafe.types.UTF8String;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import sqe.bridge.Refusal;

class SqlJsonTest {
  private static final UTF8String DOCUMENT = text("{\"a\": [1, 2, {\"b c\": \"x\"}], \"n\": null, \"d\": 1.10}");

  private static UTF8String text(String value) {
    return UTF8String.fromString(value);
  }

  @ParameterizedTest
  @CsvSource(delimiter = '|', value = {
    "$.a[0] | 1",
    "a[1] | 2",
    "$.a[last] | {\"b c\":\"x\"}",
    "$.a[2].\"b c\" | \"x\"",
    "$.a[2]['b c'] | \"x\"",
    "$.a[*] | [1,2,{\"b c\":\"x\"}]",
    "lax $.d[0] | 1.10",
    "$.d | 1.10",
    "$.missing |",
    "strict $.d[0] |",
  })
  void paths(String path, String expected) {
    assertEquals(text(expected), SqlJson.extract(DOCUMENT, text(path)));
  }

  @ParameterizedTest
  @ValueSource(strings = {"", "$.", "$[", "$[x", "strict $.a[?(@.b)]", "lax a", "$.\"open", "$!"})
  void whatIsNoPathIsRefused(String path) {
    assertThrows(Refusal.class, () -> SqlJson.extract(DOCUMENT, text(path)));
  }

  @Test
  void scalarsOnly() {
    assertEquals(text("x"), SqlJson.extractScalar(DOCUMENT, text("$.a[2].\"b c\"")));
    assertNull(SqlJson.extractScalar(DOCUMENT, text("$.a")));
    assertNull(SqlJson.extractScalar(DOCUMENT, text("$.n")));
    assertNull(SqlJson.extractScalar(text("{broken"), text("$.a")));
    assertThrows(Refusal.class, () -> SqlJson.value(DOCUMENT, text("$.missing"), true, false));
    assertThrows(Refusal.class, () -> SqlJson.value(DOCUMENT, text("$.a"), false, true));
  }

  @ParameterizedTest
  @CsvSource(delimiter = '|', quoteCharacter = '`', value = {
    "1.50 | 1.50E0",
    "-0.5 | -0.5E0",
    "1.5e3 | 1.5e3",
    "12 | 12",
    "[1.5,2.25] | [1.5E0,2.25E0]",
    "{\"a.5\":1.0,\"b\":\"\\\"2.5\"} | {\"a.5\":1.0E0,\"b\":\"\\\"2.5\"}",
  })
  void numbersWithAPointAreDoubles(String json, String expected) {
    assertEquals(text(expected), SqlJson.doubles(text(json)));
  }

  @ParameterizedTest
  @CsvSource(delimiter = '|', quoteCharacter = '`', value = {
    "{\"A\":1} | [\"row\",[\"a\",null]] | {\"a\":1}",
    "{\"A\":1,\"a\":2} | [\"row\",[\"a\",null]] | {\"a\":2}",
    "[1,\"x\"] | [\"row\",[\"a\",null],[\"b\",null]] | {\"a\":1,\"b\":\"x\"}",
    "[1] | [\"row\",[\"a\",null],[\"b\",null]] | [1]",
    "{\"k\":[{\"A\":[2]}]} | [\"map\",[\"array\",[\"row\",[\"a\",[\"row\",[\"b\",null]]]]]] | {\"k\":[{\"a\":{\"b\":2}}]}",
    "null | [\"row\",[\"a\",null]] | null",
  })
  void rowsAreFoundByTheNamesOfTheirFields(String json, String shape, String expected) {
    assertEquals(text(expected), SqlJson.shaped(text(json), text(shape)));
  }

  @Test
  void arraysAndKinds() {
    UTF8String array = text("[1, \"1\", true]");
    assertEquals(text("true"), SqlJson.arrayGet(array, -1));
    assertNull(SqlJson.arrayGet(array, 3));
    assertEquals(true, SqlJson.arrayContainsText(array, text("1")));
    assertEquals(false, SqlJson.arrayContainsNumber(array, 2));
    assertNull(SqlJson.arrayContainsBoolean(DOCUMENT, true));
    assertEquals(3L, SqlJson.arrayLength(array));
    assertEquals(true, SqlJson.isJson(array, text("ARRAY")));
    assertEquals(false, SqlJson.isJson(text("1 2"), text("VALUE")));
    assertThrows(Refusal.class, () -> SqlJson.checked(text("nothing")));
  }
}
