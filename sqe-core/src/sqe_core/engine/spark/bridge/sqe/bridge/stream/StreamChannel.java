package sqe.bridge.stream;

/** A task's way to the driver. */
interface StreamChannel {
  /** Hands a batch over; false when another attempt's rows are used and this task may stop. */
  boolean push(StreamBatch batch) throws Exception;

  /** The partition is complete. */
  void finish() throws Exception;
}
