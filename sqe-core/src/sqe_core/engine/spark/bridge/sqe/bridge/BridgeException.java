package sqe.bridge;

import java.util.Collections;
import java.util.Map;

/** A refusal of ours. The condition begins with SQE_ and the text is for the server's log. */
public final class BridgeException extends RuntimeException {
  public final String condition;
  public final Map parameters; // of the text that the user gets

  public BridgeException(String condition, String message) {
    this(condition, message, Collections.EMPTY_MAP);
  }

  public BridgeException(String condition, String message, Map parameters) {
    super(message);
    this.condition = condition;
    this.parameters = parameters;
  }
}
