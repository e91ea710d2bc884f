package sqe.bridge;

import java.util.Map;
import org.apache.spark.QueryContext;
import org.apache.spark.SparkThrowable;

/** A refusal of a value or a type that looks like Spark's own, so that Spark passes it on as it is. */
public final class Refusal extends RuntimeException implements SparkThrowable {
  private final String condition;
  private final String state;
  private final Map<String, String> parameters;
  private final QueryContext[] contexts;

  public Refusal(String condition, String state, Map<String, String> parameters, QueryContext... contexts) {
    super(condition);
    this.condition = condition;
    this.state = state;
    this.parameters = parameters;
    this.contexts = contexts;
  }

  /**
   * A function was given a value that it does not take. The reason holds nothing of the data (ERR-4): a sentence of plain
   * words, or the name of one in query/errors/templates.py.
   */
  public static Refusal ofArgument(String reason) {
    boolean named = reason.indexOf(' ') < 0;
    return new Refusal("SQE_FUNCTION_ARGUMENT" + (named ? "." + reason : ""), "22023", Map.of("reason", reason));
  }

  /** No form of a function takes arguments of these types. */
  public static Refusal ofTypes(String function, String... types) {
    return new Refusal("SQE_FUNCTION_TYPES", "42K09", Map.of("function", function, "types", String.join(", ", types)));
  }

  public String getCondition() {
    return condition;
  }

  public String getSqlState() {
    return state;
  }

  public Map<String, String> getMessageParameters() {
    return parameters;
  }

  public QueryContext[] getQueryContext() {
    return contexts;
  }
}
