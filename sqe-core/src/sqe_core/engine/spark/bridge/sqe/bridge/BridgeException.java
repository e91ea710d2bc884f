package sqe.bridge;

import java.util.Map;

/** A refusal of ours. The condition begins with SQE_ and the text is for the server's log. */
public final class BridgeException extends RuntimeException {
  public final String condition;
  public final Map<String, String> parameters; // of the text that the user gets

  public BridgeException(String condition, String message) {
    this(condition, message, Map.of());
  }

  public BridgeException(String condition, String message, Map<String, String> parameters) {
    super(message);
    this.condition = condition;
    this.parameters = parameters;
  }
}
