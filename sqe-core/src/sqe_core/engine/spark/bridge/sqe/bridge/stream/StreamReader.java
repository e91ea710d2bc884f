package sqe.bridge.stream;

import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import sqe.bridge.CancelledException;
import sqe.bridge.Failures;
import sqe.bridge.exec.Exec;

/**
 * Sends one result to the process that asked for it. Each frame is a letter, a length and a body; a result without its
 * last frame is not complete. A reader that hangs up cancels the statement.
 */
public final class StreamReader implements Runnable {
  static final byte SCHEMA = 'S';
  public static final byte WINDOW = 'W';
  public static final byte BATCH = 'B';
  public static final byte END = 'E';
  public static final byte FAILURE = 'F';
  public static final byte CANCELLED = 'C';

  private static final long HANDSHAKE_MILLIS = 10000;
  private static final int SLICE = 1 << 16; // Java copies what it writes into memory of its own of this size

  private final SocketChannel channel;
  private final ByteBuffer header = ByteBuffer.allocate(9);
  private Selector selector;

  StreamReader(SocketChannel channel) {
    this.channel = channel;
  }

  public void run() {
    try {
      channel.configureBlocking(false);
      selector = Selector.open();
      channel.register(selector, SelectionKey.OP_READ);
      serve();
    } catch (IOException gone) {
      // The reader hung up, which `serve` has dealt with.
    } finally {
      close();
    }
  }

  private void serve() throws IOException {
    ByteBuffer asked = ByteBuffer.allocate(24);
    while (asked.hasRemaining()) {
      if (selector.select(HANDSHAKE_MILLIS) == 0) return;
      selector.selectedKeys().clear();
      if (channel.read(asked) < 0) return;
    }
    asked.flip();
    long number = asked.getLong();
    byte[] token = new byte[16];
    asked.get(token);
    StreamSink sink = StreamHub.find(number, token);
    Exec statement = sink == null ? null : Exec.of(sink);
    if (statement == null || !statement.attach()) return;
    try {
      send(statement);
    } catch (IOException gone) {
      Exec.cancel(statement.tag);
    } finally {
      statement.forget();
    }
  }

  private void send(Exec statement) throws IOException {
    Throwable failure = null;
    try {
      sendBatches(statement);
    } catch (IOException gone) {
      throw gone;
    } catch (Throwable error) {
      failure = error;
    }
    byte kind = failure == null ? END : failure instanceof CancelledException ? CANCELLED : FAILURE;
    String text = failure == null ? statement.progressText() : kind == FAILURE ? Failures.describe(failure) : "";
    byte[] body = text.getBytes(StandardCharsets.UTF_8);
    frame(kind, body, 0, body.length);
  }

  private void sendBatches(Exec statement) throws Throwable {
    StreamSink sink = statement.sink;
    boolean begun = false;
    StreamBatch batch;
    while ((batch = sink.poll(100)) != StreamBatch.END) {
      if (batch == null) {
        requireReader();
        continue;
      }
      byte[] window = begun ? null : sink.window();
      if (window != null) frame(WINDOW, window, 0, window.length);
      begun = true;
      frame(BATCH, batch.data, batch.offset, batch.length);
      batch.release();
    }
  }

  /** While there is nothing to write, only reading shows that the other side has hung up. */
  private void requireReader() throws IOException {
    if (channel.read(ByteBuffer.allocate(1)) != 0) throw new EOFException();
  }

  private void frame(byte kind, byte[] body, int offset, int length) throws IOException {
    header.clear();
    header.put(kind).putLong(length).flip();
    write(header);
    for (int done = 0; done < length; done += SLICE) {
      write(ByteBuffer.wrap(body, offset + done, Math.min(SLICE, length - done)));
    }
  }

  private void write(ByteBuffer bytes) throws IOException {
    while (true) {
      channel.write(bytes);
      if (!bytes.hasRemaining()) return;
      channel.register(selector, SelectionKey.OP_READ | SelectionKey.OP_WRITE);
      selector.select();
      boolean readable = channel.keyFor(selector).isReadable();
      selector.selectedKeys().clear();
      channel.register(selector, SelectionKey.OP_READ);
      if (readable) requireReader();
    }
  }

  private void close() {
    try {
      if (selector != null) selector.close();
      channel.close();
    } catch (IOException ignored) {
      // It is closed either way.
    }
  }
}
