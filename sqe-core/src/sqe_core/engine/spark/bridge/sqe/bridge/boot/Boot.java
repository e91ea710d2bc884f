package sqe.bridge.boot;

import java.io.DataInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.PrintStream;
import java.io.StringReader;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.Properties;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.Stream;
import org.apache.commons.lang3.exception.ExceptionUtils;
import org.apache.hadoop.security.UserGroupInformation;
import org.apache.spark.SparkConf;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerApplicationEnd;
import org.apache.spark.sql.SparkSession;
import scala.Option;
import sqe.bridge.exec.Daemons;

/**
 * The main class of the engine's JVM.
 *
 * Standard input brings the settings (their length and a properties text), so that no secret is in an argument, the
 * environment or a file. Its end is the order to leave: it comes however the parent ends. Standard output carries a line
 * for each step, behind a mark, because the JVM itself may write there.
 */
public final class Boot {
  private static final String MARK = "\u0001sqe ";
  private static final long STOP_MILLIS = 5000L;
  private static final AtomicBoolean LEAVING = new AtomicBoolean();

  private Boot() {}

  public static void main(String[] arguments) throws Exception {
    PrintStream out = System.out;
    System.setOut(System.err);
    Properties settings = readSettings(System.in);
    String secret = (String) settings.remove("sqe.gateway.secret");
    String parent = (String) settings.remove("sqe.parent.pid");
    SparkConf conf = new SparkConf(true);
    settings.stringPropertyNames().forEach(name -> conf.set(name, settings.getProperty(name)));
    becomeSimpleUser(conf);
    daemon("sqe-parent-watch", () -> watchParent(Long.parseLong(parent)));
    daemon("sqe-gateway-start", () -> startGateway(secret, out));
    daemon("sqe-preheat", Boot::preheat);
    try {
      // The default session from here on; each session of a user descends from it, and no user's SQL runs in it (ISO-2).
      SparkSession root = SparkSession.builder().config(conf).getOrCreate();
      root.sparkContext().addSparkListener(new EndWatch());
    } catch (Throwable error) {
      error.printStackTrace();
      say(out, "failed " + rootCause(error));
      leave(1);
    }
    say(out, "session");
    while (System.in.read() != -1) {
      // Nothing more is sent; the parent only holds the pipe open.
    }
    leave(0);
  }

  /**
   * Names the user for Hadoop, unless it is to find a Kerberos ticket. Its own way asks the system, which knows no name
   * for the user ids that containers are given, and then fails.
   */
  private static void becomeSimpleUser(SparkConf conf) {
    if (!"kerberos".equalsIgnoreCase(conf.get("spark.hadoop.hadoop.security.authentication", "simple"))
        && conf.get("spark.master", "").startsWith("local")) {
      String name = System.getProperty("user.name");
      UserGroupInformation.setLoginUser(
          UserGroupInformation.createRemoteUser(name == null || name.equals("?") ? "sqe" : name));
    }
  }

  private static Properties readSettings(InputStream in) throws IOException {
    int length = new DataInputStream(in).readInt();
    Properties settings = new Properties();
    settings.load(new StringReader(new String(in.readNBytes(length), StandardCharsets.UTF_8)));
    return settings;
  }

  private static Thread daemon(String name, Runnable task) {
    Thread thread = Daemons.named(name).newThread(task);
    thread.start();
    return thread;
  }

  private static void say(PrintStream out, String line) {
    synchronized (out) {
      out.print(MARK + line.replace('\n', ' ').replace('\r', ' ') + "\n");
      out.flush();
    }
  }

  private static String rootCause(Throwable error) {
    return ExceptionUtils.getRootCause(error).toString().lines().findFirst().orElse("");
  }

  /** Ends the JVM. Local tasks just die with it; a cluster is told, so that it frees the executors. */
  private static void leave(int code) {
    if (!LEAVING.compareAndSet(false, true)) return;
    try {
      daemon("sqe-stop", Boot::stop).join(STOP_MILLIS);
    } catch (InterruptedException error) {
      // Leave without.
    }
    Runtime.getRuntime().halt(code);
  }

  private static void stop() {
    Option<SparkSession> session = SparkSession.getDefaultSession();
    if (session.isDefined() && !session.get().sparkContext().isLocal()) session.get().sparkContext().stop();
    String folder = System.getProperty("sqe.run.dir");
    if (folder == null) return;
    // Links are not followed, one of them leads to Spark's jars.
    try (Stream<Path> entries = Files.walk(Path.of(folder))) {
      entries.sorted(Comparator.reverseOrder()).forEach(entry -> entry.toFile().delete());
    } catch (IOException | UncheckedIOException error) {
      // The parent, or the next start, removes the rest.
    }
  }

  /** Listens on loopback only, with a secret that only the parent knows (ISO-11). */
  private static void startGateway(String secret, PrintStream out) {
    try {
      py4j.ClientServer server = new py4j.ClientServer.ClientServerBuilder()
            .authToken(secret)
            .javaPort(0)
            .javaAddress(InetAddress.getLoopbackAddress())
            .build();
      server.startServer();
      say(out, "gateway " + server.getJavaServer().getListeningPort());
    } catch (Throwable error) {
      error.printStackTrace();
      say(out, "failed " + rootCause(error));
      leave(1);
    }
  }

  /** Initialises, beside the start, what the first statement needs: the parser and the code generator's compiler. */
  private static void preheat() {
    try {
      new org.apache.spark.sql.catalyst.parser.CatalystSqlParser().parsePlan("SELECT 1 AS a");
      new org.codehaus.janino.SimpleCompiler().cook("class Preheat { int one() { return 1; } }");
    } catch (Throwable error) {
      // Only time is lost.
    }
  }

  /** A child of the parent may hold a copy of the pipe, and then the pipe does not show the parent's death. */
  private static void watchParent(long pid) {
    try {
      // A dead parent stays visible as long as nobody collects it; that we got another one shows at once.
      while (ProcessHandle.current().parent().filter(parent -> parent.pid() == pid).isPresent()) Thread.sleep(1000L);
      leave(0);
    } catch (InterruptedException error) {
      // Standard input still tells.
    }
  }

  /** Spark gave itself up: without its context the JVM is of no use, and the parent starts another one. */
  private static final class EndWatch extends SparkListener {
    public void onApplicationEnd(SparkListenerApplicationEnd event) {
      if (!LEAVING.get()) {
        System.err.println("Spark's context has ended");
        leave(3);
      }
    }
  }
}
