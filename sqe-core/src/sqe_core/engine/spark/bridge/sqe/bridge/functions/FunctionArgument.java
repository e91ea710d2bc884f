package sqe.bridge.functions;

import java.util.HashMap;
import java.util.Map;
import org.apache.spark.QueryContext;
import org.apache.spark.SparkThrowable;

/**
 * A function was given a value that it does not take. The reason is ours and holds nothing of the data (ERR-4): a sentence
 * of plain words, or the name of one in query/errors/templates.py.
 */
public final class FunctionArgument extends RuntimeException implements SparkThrowable {
  private final String reason;

  FunctionArgument(String reason) {
    super(reason);
    this.reason = reason;
  }

  public String getCondition() {
    boolean named = reason.indexOf(' ') < 0;
    return named ? "SQE_FUNCTION_ARGUMENT." + reason : "SQE_FUNCTION_ARGUMENT";
  }

  public String getErrorClass() {
    return getCondition();
  }

  public String getSqlState() {
    return "22023";
  }

  public Map getMessageParameters() {
    Map parameters = new HashMap();
    parameters.put("reason", reason);
    return parameters;
  }

  public QueryContext[] getQueryContext() {
    return new QueryContext[0];
  }
}
