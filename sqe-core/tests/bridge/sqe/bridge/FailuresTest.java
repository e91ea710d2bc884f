package sqe.bridge;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Map;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import org.apache.spark.SparkException;
import org.junit.jupiter.api.Test;
import scala.collection.immutable.Map$;
import scala.jdk.javaapi.CollectionConverters;

/** Which exception of a chain says what happened. */
class FailuresTest {
  private static SparkException spark(String condition, Throwable cause) {
    Map<String, String> parameters = Map.of("maxBroadcastTableBytes", "1", "dataSize", "2", "message", "");
    return new SparkException(condition, Map$.MODULE$.from(CollectionConverters.asScala(parameters)), cause);
  }

  private static String condition(Throwable thrown) throws Exception {
    return Json.read(Failures.describe(thrown)).get("condition").asText();
  }

  @Test
  void whatComesToTheDriverHasANameWhereverItStands() throws Exception {
    String text = "Total size of serialized results of 2 tasks (3.0 GiB) is bigger than spark.driver.maxResultSize 1 GiB";
    assertEquals("SQE_TOO_BIG_TO_COLLECT", condition(new ExecutionException(new SparkException(text))));
    assertEquals("SQE_TOO_BIG_TO_COLLECT", condition(new SparkException(text)));
    assertEquals("SQE_TOO_BIG_TO_COLLECT", condition(new SparkException("Job aborted due to stage failure: " + text)));
    assertEquals("IllegalStateException", condition(new IllegalStateException(text)));
  }

  @Test
  void whatAFailedTaskSaysNamesNothing() throws Exception {
    String task = "Job aborted due to stage failure: Task 0 in stage 1.0 failed 1 times, most recent failure: Lost task";
    String value = "The value 'is bigger than spark.driver.maxResultSize' of the type";
    SparkException failed = new SparkException(task + ": " + value, new ArithmeticException(value));
    assertEquals("ArithmeticException", condition(failed));
    assertFalse(Failures.has(failed, Set.of("SQE_TOO_BIG_TO_COLLECT")));
  }

  @Test
  void ofWrappersAloneTheInnermostWithAConditionIsTold() throws Exception {
    SparkException side = spark("_LEGACY_ERROR_TEMP_2249", null);
    assertEquals("_LEGACY_ERROR_TEMP_2249", condition(new RuntimeException(side)));
    assertEquals("_LEGACY_ERROR_TEMP_2249", condition(spark("INTERNAL_ERROR", side)));
  }

  @Test
  void conditionsAreFoundAmongAllCauses() {
    SparkException side = spark("_LEGACY_ERROR_TEMP_2249", null);
    assertTrue(Failures.has(new RuntimeException(side), Set.of("_LEGACY_ERROR_TEMP_2249")));
    assertFalse(Failures.has(new RuntimeException(side), Set.of("_LEGACY_ERROR_TEMP_2250")));
  }
}
