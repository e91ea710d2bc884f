package sqe.bridge.plan;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;

import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.parser.CatalystSqlParser$;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import sqe.bridge.BridgeException;
import sqe.bridge.Json;

class LiteralsTest {
  private static Literal read(String type, String value) {
    return Literals.read(Json.read("{\"type\": \"" + type + "\", \"value\": " + value + "}"));
  }

  @ParameterizedTest
  @CsvSource(delimiter = '|', quoteCharacter = '`', value = {
    "tinyint | -1 | -1Y", "bigint | 9223372036854775807 | 9223372036854775807L", "date | 1 | DATE '1970-01-02'",
    "decimal(38,2) | \"123456789012345678901234567890123456.78\" | 123456789012345678901234567890123456.78BD",
    "string | \"it's\" | 'it\\'s'", "boolean | true | true", "double | \"NaN\" | CAST('NaN' AS DOUBLE)", "int | null | CAST(NULL AS INT)",
    "array<int> | [1, null] | ARRAY(1, CAST(NULL AS INT))", "map<string,int> | [[\"a\", 1]] | MAP('a', 1)",
  })
  void valuesFromPython(String type, String value, String sql) {
    assertEquals(sql, read(type, value).sql());
  }

  @Test
  void bytesAreBase64() {
    assertArrayEquals(new byte[] {0, -1}, (byte[]) read("binary", "\"AP8=\"").value());
    assertNull(read("binary", "null").value());
  }

  @Test
  void typesWithoutValuesAreRefused() {
    BridgeException refused = assertThrows(BridgeException.class, () -> read("variant", "1"));
    assertEquals("SQE_PARAMETER_TYPE", refused.condition);
  }

  @ParameterizedTest
  @CsvSource({"5, 5", "-5, -5", "CAST(1000 * 1000 AS INT), 1000000", "1/0, 1e300", "-1/0, -1e300", "'12', 12", "2.5, 2.5", "f(1), null", "_sqe_to_integer(12), 12", "2 * _sqe_to_bigint(3), 6",
    "1 + a, null", "'x', null"})
  void arithmeticOfLiteralsIsANumber(String sql, String expected) {
    StringBuilder out = new StringBuilder();
    LiteralNumbers.write(out, CatalystSqlParser$.MODULE$.parseExpression(sql));
    assertEquals(expected, out.toString());
  }

  @Test
  void plansAreDescribedInOneWalk() {
    var plan = CatalystSqlParser$.MODULE$.parsePlan("WITH c AS (SELECT 1) SELECT upper(x), (SELECT max(y) FROM a.b) FROM c, d AS e");
    var described = Json.read(PlanWalk.over(plan, false).json());
    assertEquals(3, described.get("relations").size());
    assertEquals("[\"upper\"]", described.get("functions").get(0).get("parts").toString());
    for (var relation : described.get("relations"))
      assertEquals(relation.get("parts").get(0).asText().equals("c"), relation.has("cte"));
  }
}
