package sqe.bridge.catalog;

import java.util.Map;
import org.apache.spark.sql.AnalysisException;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.unsafe.Platform;
import scala.jdk.javaapi.CollectionConverters;

/** What a table does not do or have, in Spark's own words. */
public final class Operations {
  private Operations() {}

  public static void refuse(Table table, String operation) {
    fail("UNSUPPORTED_FEATURE.TABLE_OPERATION", Map.of("tableName", table.name(), "operation", operation));
  }

  public static void missing(String column) {
    fail("UNRESOLVED_COLUMN.WITHOUT_SUGGESTION", Map.of("objectName", "`" + column + "`"));
  }

  private static void fail(String condition, Map<String, String> parameters) {
    var told = scala.collection.immutable.Map$.MODULE$.from(CollectionConverters.asScala(parameters));
    Platform.throwException(new AnalysisException(condition, told));
  }
}
