package sqe.bridge.catalog;

import org.apache.spark.sql.AnalysisException;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.unsafe.Platform;

/** What a table does not do or have, in Spark's own words. */
public final class Operations {
  private Operations() {}

  public static void refuse(Table table, String operation) {
    scala.collection.immutable.Map parameters = scala.collection.immutable.Map$.MODULE$.empty();
    parameters = (scala.collection.immutable.Map) parameters.updated("tableName", table.name());
    parameters = (scala.collection.immutable.Map) parameters.updated("operation", operation);
    Platform.throwException(new AnalysisException("UNSUPPORTED_FEATURE.TABLE_OPERATION", parameters));
  }

  public static void missing(String column) {
    scala.collection.immutable.Map parameters = scala.collection.immutable.Map$.MODULE$.empty();
    parameters = (scala.collection.immutable.Map) parameters.updated("objectName", "`" + column + "`");
    Platform.throwException(new AnalysisException("UNRESOLVED_COLUMN.WITHOUT_SUGGESTION", parameters));
  }
}
