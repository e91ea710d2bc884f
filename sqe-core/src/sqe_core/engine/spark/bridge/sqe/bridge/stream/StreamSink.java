package sqe.bridge.stream;

import java.nio.ByteBuffer;
import java.security.SecureRandom;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import sqe.bridge.BridgeException;
import sqe.bridge.CancelledException;

/**
 * The result of one statement between the tasks that make it and the one reader that takes it, in the order of the
 * partitions.
 *
 * Memory is bounded. A task that finds no room for a while writes the rest of its batches to the statement's file and
 * ends: a slow reader holds no slot, and a partition that must be made again never waits for a slot that a later one
 * holds.
 *
 * Of each partition one attempt is delivered. Whatever of a lost attempt was already sent cannot be taken back, so the
 * statement fails then.
 */
public final class StreamSink {
  private enum State {
    OPEN,
    FINISHED,
    FAILED,
    CANCELLED
  }

  private static final long PATIENCE_NANOS = 200L * 1000 * 1000;
  private static final long RIVAL_NANOS = 60L * 1000 * 1000 * 1000;
  private static final SecureRandom RANDOM = new SecureRandom();

  private static final class Attempt {
    final long id;
    final ArrayDeque<StreamBatch> batches = new ArrayDeque<>();
    long rows;
    boolean complete;
    boolean spilling;

    Attempt(long id) {
      this.id = id;
    }
  }

  private static final class Partition {
    final Map<Long, Attempt> attempts = new HashMap<>(); // by their ids
    Attempt chosen; // the one that the reader gets
    boolean sent; // something of the chosen one is on its way
    boolean broken; // and the rest of it will never come
    Attempt complete;
  }

  public final long number;
  public final byte[] token = new byte[16];
  public final String tag;
  private final Map<Integer, Partition> partitions = new HashMap<>(); // by index
  private State state = State.OPEN;
  private Throwable failure;
  private int head; // the partition that is being delivered
  private int end = -1; // how many partitions there are, once that is known
  private long memory;
  private long waiting; // bytes that the reader has not taken, in memory or on disk
  private long rows;
  private long bytes;
  private long completeRows;
  private StreamSpill spill;
  private byte[] window;

  StreamSink(long number, String tag) {
    this.number = number;
    this.tag = tag;
    RANDOM.nextBytes(token);
  }

  // ---- the tasks' side

  /** Takes a batch; false when another attempt's rows are used. Blocks for a moment when there is no room. */
  public boolean push(int index, long attemptId, StreamBatch batch) throws Exception {
    StreamSpill file;
    synchronized (this) {
      Attempt attempt = admit(index, attemptId);
      long deadline = System.nanoTime() + PATIENCE_NANOS;
      long left = PATIENCE_NANOS;
      while (attempt != null && !attempt.spilling && left > 0 && !room(index, attempt, batch)) {
        wait(Math.max(1, left / 1000000));
        attempt = admit(index, attemptId);
        left = deadline - System.nanoTime();
      }
      if (attempt == null) {
        batch.release();
        return false;
      }
      if (room(index, attempt, batch)) {
        memory += batch.length;
        accept(attempt, batch);
        return true;
      }
      attempt.spilling = true;
      file = spill();
    }
    try {
      batch.place = file.append(batch);
    } catch (BridgeException full) {
      fail(full);
      throw full;
    }
    batch.release();
    synchronized (this) {
      Attempt attempt = admit(index, attemptId);
      if (attempt != null) accept(attempt, batch);
      return attempt != null;
    }
  }

  /** The attempt has handed over everything. */
  public synchronized void complete(int index, long attemptId) throws Exception {
    Attempt attempt = admit(index, attemptId);
    if (attempt == null) return;
    attempt.complete = true;
    Partition partition = partitions.get(index);
    if (partition.complete == null) {
      partition.complete = attempt;
      completeRows += attempt.rows;
    }
    notifyAll();
  }

  /** The attempt failed or was killed. */
  public synchronized void lost(int index, long attemptId) {
    Partition partition = partitions.get(index);
    if (partition == null || state != State.OPEN) return;
    Attempt attempt = partition.attempts.get(attemptId);
    if (attempt == null || attempt.complete) return;
    if (partition.sent && partition.chosen == attempt) {
      // Either the job fails now, with a reason of its own, or another attempt is going to begin.
      partition.broken = true;
      notifyAll();
      return;
    }
    if (partition.chosen == attempt) partition.chosen = null;
    partition.attempts.remove(attemptId);
    discard(attempt);
    notifyAll();
  }

  /** The attempt if its rows are wanted, null if not. A rival of one that is being sent waits for how that ends. */
  private Attempt admit(int index, long attemptId) throws Exception {
    long deadline = 0;
    while (true) {
      requireOpen();
      if (index < head) return null;
      Partition partition = partitions.computeIfAbsent(index, each -> new Partition());
      if (partition.complete != null && partition.complete.id != attemptId) return null;
      if (!partition.sent || partition.chosen.id == attemptId)
        return partition.attempts.computeIfAbsent(attemptId, Attempt::new);
      long now = System.nanoTime();
      if (deadline == 0) deadline = now + RIVAL_NANOS;
      if (partition.broken || now > deadline) {
        BridgeException lost =
            new BridgeException("SQE_RESULT_LOST", "a task was lost after a part of its rows had been sent");
        fail(lost);
        throw lost;
      }
      wait(100);
    }
  }

  private boolean room(int index, Attempt attempt, StreamBatch batch) {
    long limit = StreamHub.memoryPerStatement();
    // A part is kept for the partition that the reader is at, so that it need not go through the file.
    if (index != head) return memory + batch.length <= limit - limit / 4;
    return memory + batch.length <= limit || attempt.batches.isEmpty();
  }

  private void accept(Attempt attempt, StreamBatch batch) {
    attempt.batches.add(batch);
    attempt.rows += batch.rows;
    waiting += batch.length;
    notifyAll();
  }

  private StreamSpill spill() throws Exception {
    if (spill == null) spill = StreamHub.newSpill();
    return spill;
  }

  private void requireOpen() {
    if (state != State.OPEN) throw new CancelledException();
  }

  // ---- the statement's side

  /** How many rows the complete partitions have; right when no task runs. */
  public synchronized long completeRows() {
    return completeRows;
  }

  /** The reader leaves out `skip` rows and shows no more than `limit` of the others; -1 is all. */
  public synchronized void window(long skip, long limit) {
    window = ByteBuffer.allocate(16).putLong(skip).putLong(limit).array();
  }

  /** Known before the first batch; null when every row is shown. */
  public synchronized byte[] window() {
    return window;
  }

  /** No partition comes after these. */
  public synchronized void finish(int count) {
    if (state != State.OPEN) return;
    end = count;
    state = State.FINISHED;
    notifyAll();
  }

  public synchronized void fail(Throwable error) {
    if (state == State.FAILED || state == State.CANCELLED) return;
    state = State.FAILED;
    failure = error;
    clear();
    notifyAll();
    // Its tasks need not go on; not from here, since the scheduler may wait for this very lock.
    StreamHub.cancelJobs(tag);
  }

  public synchronized void cancel() {
    if (state == State.FAILED || state == State.CANCELLED) return;
    state = State.CANCELLED;
    clear();
    notifyAll();
  }

  private void clear() {
    for (Partition partition : partitions.values()) partition.attempts.values().forEach(this::discard);
    partitions.clear();
    if (spill != null) spill.close();
  }

  private void discard(Attempt attempt) {
    for (StreamBatch batch; (batch = attempt.batches.poll()) != null; ) {
      if (batch.place < 0) memory -= batch.length;
      waiting -= batch.length;
      batch.release();
    }
  }

  // ---- the reader's side

  /**
   * Waits until the whole result is here, or more than `size` bytes of it, or the time is over. Returns the batches of a
   * small, complete result; null if it has to be streamed.
   */
  public synchronized List<StreamBatch> small(long size, long millis) throws Throwable {
    long deadline = System.nanoTime() + millis * 1000000L;
    long left = millis;
    while (state == State.OPEN && waiting <= size && left > 0) {
      wait(left);
      left = (deadline - System.nanoTime()) / 1000000;
    }
    requireNoFailure();
    if (state != State.FINISHED || waiting > size) return null;
    List<StreamBatch> batches = new ArrayList<>();
    for (StreamBatch batch; (batch = next()) != StreamBatch.END; ) {
      if (batch == null || batch.place >= 0) throw new IllegalStateException("a complete result has a gap");
      batches.add(batch);
    }
    return batches;
  }

  /** The next batch in order, `StreamBatch.END` after the last, null when none came in time. Throws what failed. */
  StreamBatch poll(long millis) throws Throwable {
    StreamBatch batch;
    StreamSpill file;
    synchronized (this) {
      batch = next();
      if (batch == null) {
        wait(millis);
        batch = next();
      }
      file = spill;
    }
    if (batch == null || batch.place < 0) return batch;
    try {
      return file.read(batch);
    } catch (Exception broken) {
      synchronized (this) {
        requireNoFailure(); // the file was closed because of that
      }
      throw broken;
    }
  }

  private StreamBatch next() throws Throwable {
    while (true) {
      requireNoFailure();
      if (end >= 0 && head >= end) return StreamBatch.END;
      Partition partition = partitions.get(head);
      if (partition == null) return null;
      if (partition.chosen == null) choose(partition);
      Attempt attempt = partition.chosen;
      if (attempt == null) return null;
      StreamBatch batch = attempt.batches.poll();
      if (batch != null) {
        partition.sent = true;
        waiting -= batch.length;
        if (batch.place < 0) memory -= batch.length;
        rows += batch.rows;
        bytes += batch.length;
        notifyAll();
        return batch;
      }
      if (!attempt.complete) return null;
      partitions.remove(head);
      partition.attempts.values().forEach(this::discard);
      head++;
      notifyAll();
    }
  }

  private static void choose(Partition partition) {
    partition.chosen = partition.complete;
    for (Attempt attempt : partition.attempts.values())
      if (partition.chosen == null && !attempt.batches.isEmpty()) partition.chosen = attempt;
  }

  private void requireNoFailure() throws Throwable {
    if (state == State.FAILED) throw failure;
    if (state == State.CANCELLED) throw new CancelledException();
  }

  /** The reader is gone or has everything. */
  synchronized void release() {
    clear();
    if (state == State.OPEN) state = State.CANCELLED;
    notifyAll();
  }

  public synchronized long rows() {
    return rows;
  }

  public synchronized long bytes() {
    return bytes;
  }

  /** Whether no task has begun to hand rows over; those of two plans are never parts of one result. */
  public synchronized boolean isUntouched() {
    return partitions.isEmpty() && head == 0;
  }

  public synchronized boolean isOpen() {
    return state == State.OPEN;
  }

  synchronized boolean isComplete() {
    return state == State.FINISHED;
  }

  /** What is held, for tests: bytes in memory, bytes in the file. */
  synchronized long[] held() {
    return new long[] {memory, spill == null ? 0 : spill.length()};
  }
}
