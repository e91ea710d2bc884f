package sqe.bridge;

/** The statement was cancelled. */
public final class CancelledException extends RuntimeException {
  public CancelledException() {
    super("cancelled");
  }
}
