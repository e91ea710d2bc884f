package sqe.bridge.stream;

/** One encapsulated Arrow message of a result: in memory, or at a place in the statement's spill file. */
public final class StreamBatch {
  /** What `StreamSink.poll` returns after the last batch. */
  static final StreamBatch END = new StreamBatch(null, 0, 0, 0);

  public byte[] data;
  public final int offset;
  public final int length;
  final int rows;
  long place = -1;

  StreamBatch(byte[] data, int offset, int length, int rows) {
    this.data = data;
    this.offset = offset;
    this.length = length;
    this.rows = rows;
  }

  void release() {
    StreamBuffers.give(data);
    data = null;
  }
}
