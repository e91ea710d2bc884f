package sqe.bridge.stream;

import java.io.File;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.MessageDigest;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.spark.SparkContext;
import org.apache.spark.SparkEnv;
import sqe.bridge.exec.Daemons;
import sqe.bridge.exec.ExecListener;
import sqe.bridge.exec.Watchdog;

/** The driver's side of every result: who has which, how much memory there is, and where the readers come in. */
public final class StreamHub {
  private static final int SMALLEST_SHARE = 1 << 20;
  private static final Map<Long, StreamSink> SINKS = new ConcurrentHashMap<>(); // by number
  private static final AtomicLong NUMBERS = new AtomicLong();
  private static final long HEAP_SHARE = Runtime.getRuntime().maxMemory() / 8;

  private static final ExecutorService THREADS = Executors.newCachedThreadPool(Daemons.named("sqe-stream"));
  private static final ScheduledExecutorService CLOCK =
      Executors.newSingleThreadScheduledExecutor(Daemons.named("sqe-stream-clock"));

  private static long memory;
  private static long spillBytes;
  private static long spillReserve;
  private static String address;

  private StreamHub() {}

  /** Begins to listen; returns `unix:<path>` or `tcp:<port>`. Readers show the token of their statement. */
  public static synchronized String open(long memoryPerStatement, long spillPerStatement, long diskReserve)
      throws Exception {
    if (address != null) return address;
    memory = memoryPerStatement;
    spillBytes = spillPerStatement;
    spillReserve = diskReserve;
    ServerSocketChannel server = listen();
    SocketAddress bound = server.getLocalAddress();
    address =
        bound instanceof UnixDomainSocketAddress unix
            ? "unix:" + unix.getPath()
            : "tcp:" + ((InetSocketAddress) bound).getPort();
    SparkContext context = SparkContext.getOrCreate();
    context.addSparkListener(new ExecListener());
    int slots = context.conf().getInt("spark.sqe.watchdog.slots", 0);
    Watchdog.open(slots, context.conf().getLong("spark.sqe.watchdog.millis", 30000));
    if (!context.isLocal()) StreamReceiver.open(SparkEnv.get().rpcEnv());
    THREADS.execute(() -> accept(server));
    return address;
  }

  /** A folder that only we can enter: the engine's run directory, or a new one if that is not private. */
  private static Path privateFolder() throws Exception {
    Path folder = Path.of(System.getProperty("user.dir"));
    if (PosixFilePermissions.toString(Files.getPosixFilePermissions(folder)).endsWith("------")) return folder;
    Path created = Files.createTempDirectory("sqe-results-");
    created.toFile().deleteOnExit();
    return created;
  }

  private static ServerSocketChannel listen() throws Exception {
    try {
      Path path = privateFolder().resolve("results");
      ServerSocketChannel server = ServerSocketChannel.open(StandardProtocolFamily.UNIX);
      server.bind(UnixDomainSocketAddress.of(path));
      path.toFile().deleteOnExit();
      return server;
    } catch (Exception unsupported) {
      // A system without such sockets, or a folder whose name is too long for one.
      ServerSocketChannel server = ServerSocketChannel.open();
      server.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
      return server;
    }
  }

  private static void accept(ServerSocketChannel server) {
    while (server.isOpen()) {
      try {
        SocketChannel reader = server.accept();
        THREADS.execute(new StreamReader(reader));
      } catch (Throwable broken) {
        // One reader that left at once, or no memory for its thread, must not end the others' service.
      }
    }
  }

  public static StreamSink newSink(String tag) {
    StreamSink sink = new StreamSink(NUMBERS.incrementAndGet(), tag);
    SINKS.put(sink.number, sink);
    return sink;
  }

  /** The result with that number, if the token is its own; null also when it is over. */
  static StreamSink find(long number, byte[] token) {
    StreamSink sink = SINKS.get(number);
    return sink != null && MessageDigest.isEqual(sink.token, token) ? sink : null;
  }

  public static void forget(StreamSink sink) {
    SINKS.remove(sink.number);
    sink.release();
  }

  /** Less when many statements run at once, so that together they leave the heap to Spark. */
  static long memoryPerStatement() {
    return Math.max(SMALLEST_SHARE, Math.min(memory, HEAP_SHARE / Math.max(1, SINKS.size())));
  }

  static StreamSpill newSpill() throws Exception {
    boolean encrypted = SparkEnv.get().conf().getBoolean("spark.io.encryption.enabled", false);
    // Where the operator wants shuffles to be; Spark makes it private and empties it.
    File folder = SparkEnv.get().blockManager().diskBlockManager().localDirs()[0];
    return new StreamSpill(folder, spillBytes, spillReserve, encrypted);
  }

  static void execute(Runnable job) {
    THREADS.execute(job);
  }

  public static void later(Runnable job, long millis) {
    CLOCK.schedule(job, millis, TimeUnit.MILLISECONDS);
  }

  public static void cancelJobs(String tag) {
    THREADS.execute(() -> SparkContext.getOrCreate().cancelJobsWithTag(tag));
  }

  /** How many results are held; for tests and metrics. */
  public static int held() {
    return SINKS.size();
  }
}
