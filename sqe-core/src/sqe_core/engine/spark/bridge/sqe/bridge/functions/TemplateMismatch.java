package sqe.bridge.functions;

import java.util.HashMap;
import java.util.Map;
import org.apache.spark.QueryContext;
import org.apache.spark.SparkThrowable;

/** No template fits the types of the arguments. It looks like Spark's own error about wrong types. */
public final class TemplateMismatch extends RuntimeException implements SparkThrowable {
  private final Map parameters = new HashMap();

  TemplateMismatch(String function, String[] types) {
    super(function);
    StringBuilder list = new StringBuilder();
    for (int i = 0; i < types.length; i++) list.append(i == 0 ? "" : ", ").append(types[i]);
    parameters.put("function", function);
    parameters.put("types", list.toString());
  }

  public String getCondition() {
    return "SQE_FUNCTION_TYPES";
  }

  public String getErrorClass() {
    return getCondition();
  }

  public String getSqlState() {
    return "42K09";
  }

  public Map getMessageParameters() {
    return parameters;
  }

  public QueryContext[] getQueryContext() {
    return new QueryContext[0];
  }
}
