package sqe.bridge;

/** A refusal of ours. The condition begins with SQE_ and the text is for the server's log. */
public final class BridgeException extends RuntimeException {
  public final String condition;

  public BridgeException(String condition, String message) {
    super(message);
    this.condition = condition;
  }
}
