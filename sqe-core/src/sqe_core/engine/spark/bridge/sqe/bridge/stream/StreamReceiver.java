package sqe.bridge.stream;

import java.nio.ByteBuffer;
import org.apache.spark.rpc.RpcCallContext;
import org.apache.spark.rpc.RpcEndpoint;
import org.apache.spark.rpc.RpcEnv;
import scala.Function1;
import scala.PartialFunction;
import scala.runtime.AbstractPartialFunction;
import scala.runtime.BoxedUnit;

/** Takes batches from executors in other JVMs. The answer is held back for as long as there is no room. */
final class StreamReceiver implements RpcEndpoint {
  private final RpcEnv environment;

  private StreamReceiver(RpcEnv environment) {
    this.environment = environment;
  }

  static void open(RpcEnv environment) {
    environment.setupEndpoint(StreamRemote.ENDPOINT, new StreamReceiver(environment));
  }

  public RpcEnv rpcEnv() {
    return environment;
  }

  public PartialFunction<Object, BoxedUnit> receiveAndReply(RpcCallContext caller) {
    return new AbstractPartialFunction<>() {
      public boolean isDefinedAt(Object message) {
        return message instanceof byte[] bytes && bytes.length >= StreamRemote.HEADER;
      }

      public <X, Y> Y applyOrElse(X message, Function1<X, Y> otherwise) {
        if (!isDefinedAt(message)) return otherwise.apply(message);
        // Spark's dispatcher threads are few and serve everything else, so none of them waits here.
        StreamHub.execute(new Delivery(caller, (byte[]) message));
        return (Y) BoxedUnit.UNIT;
      }
    };
  }

  private record Delivery(RpcCallContext caller, byte[] message) implements Runnable {
    public void run() {
      int answer;
      try {
        answer = deliver();
      } catch (Exception over) {
        answer = StreamRemote.GONE;
      }
      caller.reply(answer);
    }

    private int deliver() throws Exception {
      ByteBuffer in = ByteBuffer.wrap(message);
      byte kind = in.get();
      long number = in.getLong();
      byte[] token = new byte[16];
      in.get(token);
      StreamSink sink = StreamHub.find(number, token);
      if (sink == null) return StreamRemote.GONE;
      int partition = in.getInt();
      long attempt = in.getLong();
      int rows = in.getInt();
      if (kind == StreamRemote.COMPLETE) {
        sink.complete(partition, attempt);
        return StreamRemote.MORE;
      }
      StreamBatch batch = new StreamBatch(message, StreamRemote.HEADER, in.remaining(), rows);
      return sink.push(partition, attempt, batch) ? StreamRemote.MORE : StreamRemote.STOP;
    }
  }
}
