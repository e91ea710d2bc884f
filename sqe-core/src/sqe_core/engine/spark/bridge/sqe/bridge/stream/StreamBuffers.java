package sqe.bridge.stream;

import java.util.ArrayDeque;

/** Byte arrays of one size that are used again, so that a long result leaves no garbage in the heap. */
final class StreamBuffers {
  /** A batch of the usual size with its metadata. */
  static final int SIZE = (1 << 20) + (1 << 18);

  private static final int KEPT = 24;
  private static final ArrayDeque<byte[]> FREE = new ArrayDeque<>();

  private StreamBuffers() {}

  static byte[] take() {
    synchronized (FREE) {
      if (!FREE.isEmpty()) return FREE.pop();
    }
    return new byte[SIZE];
  }

  /** Takes back an array that nobody uses any more; others than ours are left to the collector. */
  static void give(byte[] array) {
    if (array == null || array.length != SIZE) return;
    synchronized (FREE) {
      if (FREE.size() < KEPT) FREE.push(array);
    }
  }
}
