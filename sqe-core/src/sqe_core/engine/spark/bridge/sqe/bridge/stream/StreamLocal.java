package sqe.bridge.stream;

/** The way to the driver when the task runs in the driver's JVM. */
final class StreamLocal implements StreamChannel {
  private final StreamSink sink;
  private final int partition;
  private final long attempt;

  StreamLocal(StreamSink sink, int partition, long attempt) {
    this.sink = sink;
    this.partition = partition;
    this.attempt = attempt;
  }

  public boolean push(StreamBatch batch) throws Exception {
    return sink.push(partition, attempt, batch);
  }

  public void finish() throws Exception {
    sink.complete(partition, attempt);
  }
}
