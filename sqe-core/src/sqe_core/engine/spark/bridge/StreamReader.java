package sqe.bridge;

import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;

/**
 * Sends one result to the process that asked for it. Each frame is a letter, a length and a body; a result without its
 * last frame is not complete. A reader that hangs up cancels the statement.
 */
final class StreamReader implements Runnable {
  static final byte SCHEMA = 'S';
  static final byte WINDOW = 'W';
  static final byte BATCH = 'B';
  static final byte END = 'E';
  static final byte FAILURE = 'F';
  static final byte CANCELLED = 'C';

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
    StreamSink sink = statement.sink;
    boolean begun = false;
    try {
      while (true) {
        StreamBatch batch = sink.poll(100);
        byte[] window = begun || batch == null ? null : sink.window();
        if (window != null) frame(WINDOW, window, 0, window.length);
        begun = begun || batch != null;
        if (batch == null) {
          requireReader();
        } else if (batch == StreamBatch.END) {
          byte[] last = statement.progressText().getBytes(StandardCharsets.UTF_8);
          frame(END, last, 0, last.length);
          return;
        } else {
          frame(BATCH, batch.data, batch.offset, batch.length);
          batch.release();
        }
      }
    } catch (Throwable error) { // one clause: Janino's stack maps of several are wrong
      if (error instanceof IOException) throw (IOException) error;
      boolean cancelled = error instanceof CancelledException;
      byte[] text = cancelled ? new byte[0] : Exec.describe(error).getBytes(StandardCharsets.UTF_8);
      frame(cancelled ? CANCELLED : FAILURE, text, 0, text.length);
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
