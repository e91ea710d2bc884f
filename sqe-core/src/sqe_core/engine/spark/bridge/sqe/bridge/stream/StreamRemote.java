package sqe.bridge.stream;

import java.nio.ByteBuffer;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.spark.SparkEnv;
import org.apache.spark.TaskContext;
import org.apache.spark.TaskKilledException;
import org.apache.spark.rpc.RpcEndpointRef;
import org.apache.spark.rpc.RpcTimeout;
import org.apache.spark.util.RpcUtils;
import scala.concurrent.Await$;
import scala.concurrent.Future;
import scala.concurrent.duration.FiniteDuration;
import scala.reflect.ClassTag$;

/**
 * The way to the driver from an executor in another JVM: Spark's own RPC, so that it is authenticated and encrypted
 * whenever Spark's is, and needs no port beside the driver's.
 *
 * One message is under way at a time; its answer is the credit for the next. Messages are byte arrays, which every class
 * loader knows.
 */
final class StreamRemote implements StreamTask.Channel {
  static final String ENDPOINT = "sqe-stream";
  static final int HEADER = 1 + 8 + 16 + 4 + 8 + 4;
  static final byte PUSH = 1;
  static final byte COMPLETE = 2;
  static final int STOP = 0;
  static final int MORE = 1;
  static final int GONE = 2;

  private static final RpcTimeout PATIENCE =
      new RpcTimeout(new FiniteDuration(1, TimeUnit.HOURS), "spark.rpc.askTimeout");

  private final long number;
  private final byte[] token;
  private final TaskContext context;
  private final RpcEndpointRef driver;
  private Future<Integer> answer;

  StreamRemote(long number, byte[] token, TaskContext context) {
    this.number = number;
    this.token = token;
    this.context = context;
    SparkEnv env = SparkEnv.get();
    driver = RpcUtils.makeDriverRef(ENDPOINT, env.conf(), env.rpcEnv());
  }

  public boolean push(StreamBatch batch) throws Exception {
    ByteBuffer message = message(PUSH, batch.rows, batch.length);
    message.put(batch.data, batch.offset, batch.length);
    batch.release();
    // The next batch is made while this one travels.
    boolean wanted = wanted();
    if (wanted) send(message);
    return wanted;
  }

  public void finish() throws Exception {
    if (!wanted()) return;
    send(message(COMPLETE, 0, 0));
    wanted();
  }

  private ByteBuffer message(byte kind, int rows, int length) {
    ByteBuffer message = ByteBuffer.allocate(HEADER + length);
    return message
        .put(kind)
        .putLong(number)
        .put(token)
        .putInt(context.partitionId())
        .putLong(context.taskAttemptId())
        .putInt(rows);
  }

  private void send(ByteBuffer message) {
    answer = driver.ask(message.array(), PATIENCE, ClassTag$.MODULE$.apply(Integer.class));
  }

  /** Waits for the last answer. */
  private boolean wanted() throws Exception {
    if (answer == null) return true;
    while (!answer.isCompleted()) {
      context.killTaskIfInterrupted();
      try {
        Await$.MODULE$.ready(answer, new FiniteDuration(100, TimeUnit.MILLISECONDS));
      } catch (TimeoutException later) {
        continue;
      }
    }
    int code = answer.value().get().get();
    answer = null;
    if (code == GONE) throw new TaskKilledException("the statement is over");
    return code == MORE;
  }
}
