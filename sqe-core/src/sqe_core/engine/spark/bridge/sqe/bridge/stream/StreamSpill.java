package sqe.bridge.stream;

import java.io.File;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.SecureRandom;
import javax.crypto.Cipher;
import javax.crypto.spec.IvParameterSpec;
import javax.crypto.spec.SecretKeySpec;
import sqe.bridge.BridgeException;

/**
 * The file of one statement that takes what its reader is too slow for. Its name is gone as soon as it is open, so that
 * nothing is left behind whatever happens.
 *
 * Not a FileChannel: an interrupted task would close that for all the others.
 */
final class StreamSpill {
  private static final long CHECK_BYTES = 64L << 20;

  private final File folder;
  private final long limit;
  private final long reserve;
  private final SecretKeySpec key;
  private final RandomAccessFile out;
  private final RandomAccessFile in;
  private long length;
  private long checked;

  StreamSpill(File folder, long limit, long reserve, boolean encrypted) throws IOException {
    this.folder = folder;
    this.limit = limit;
    this.reserve = reserve;
    this.key = encrypted ? newKey() : null;
    var owner = PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------"));
    Path path = Files.createTempFile(folder.toPath(), "result-", ".spill", owner);
    try {
      out = new RandomAccessFile(path.toFile(), "rw");
      in = new RandomAccessFile(path.toFile(), "r");
    } finally {
      Files.delete(path);
    }
  }

  private static SecretKeySpec newKey() {
    byte[] bytes = new byte[16];
    new SecureRandom().nextBytes(bytes);
    return new SecretKeySpec(bytes, "AES");
  }

  /** Writes a batch to the end and returns where it begins. */
  long append(StreamBatch batch) throws Exception {
    synchronized (out) {
      if (length + batch.length > limit || noRoom(batch.length)) throw full();
      long place = length;
      try {
        out.seek(place);
        if (key == null) out.write(batch.data, batch.offset, batch.length);
        else out.write(cipher(Cipher.ENCRYPT_MODE, place).doFinal(batch.data, batch.offset, batch.length));
      } catch (IOException broken) {
        throw full();
      }
      length = place + batch.length;
      return place;
    }
  }

  private boolean noRoom(int more) {
    if (checked > 0 && length + more < checked) return false;
    checked = length + CHECK_BYTES;
    return folder.getUsableSpace() < reserve + CHECK_BYTES;
  }

  private static BridgeException full() {
    return new BridgeException("SQE_RESULT_SPILL_FULL", "no room for the part of the result that waits for its reader");
  }

  /** Fills a batch that was appended. The array is the batch's own from its start on. */
  StreamBatch read(StreamBatch spilled) throws Exception {
    int size = spilled.length;
    byte[] data = size > StreamBuffers.SIZE / 2 && size <= StreamBuffers.SIZE ? StreamBuffers.take() : new byte[size];
    synchronized (in) {
      in.seek(spilled.place);
      in.readFully(data, 0, size);
    }
    if (key != null) cipher(Cipher.DECRYPT_MODE, spilled.place).doFinal(data, 0, size, data, 0);
    return new StreamBatch(data, 0, size, spilled.rows);
  }

  private Cipher cipher(int mode, long place) throws Exception {
    Cipher cipher = Cipher.getInstance("AES/CTR/NoPadding");
    // The upper half tells the batches apart, the lower one counts the blocks within.
    cipher.init(mode, key, new IvParameterSpec(ByteBuffer.allocate(16).putLong(place).putLong(0).array()));
    return cipher;
  }

  long length() {
    synchronized (out) {
      return length;
    }
  }

  void close() {
    try (out; in) {
      // Both, whatever becomes of the other.
    } catch (IOException ignored) {
      // There is nothing to save.
    }
  }
}
