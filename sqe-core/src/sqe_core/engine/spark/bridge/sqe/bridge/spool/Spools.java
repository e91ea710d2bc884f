package sqe.bridge.spool;

import java.io.IOException;
import java.nio.channels.ReadableByteChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.SparkEnv;
import org.apache.spark.sql.SparkSession;

/**
 * Files of spooled rows. Executors in other JVMs get them from the driver's file server, the way Spark's own files and
 * jars travel: authenticated and encrypted whenever Spark's traffic is. Each file is served by name, never a folder.
 */
public final class Spools {
  private static final Map<Path, String> SERVED = new ConcurrentHashMap<>(); // their names on the file server

  private Spools() {}

  static ReadableByteChannel open(String path) throws IOException {
    return Files.newByteChannel(Path.of(path));
  }

  /** Where executors find a file; null when every task runs in this JVM. */
  static String address(Path file) {
    org.apache.spark.sql.classic.SparkSession root =
        (org.apache.spark.sql.classic.SparkSession) SparkSession.getDefaultSession().get();
    if (root.sparkContext().isLocal()) return null;
    SERVED.put(file, file.getFileName().toString());
    return SparkEnv.get().rpcEnv().fileServer().addFile(file.toFile());
  }

  /** Serves nothing of a folder any more. */
  public static void forget(String folder) {
    Path parent = Path.of(folder);
    SERVED.keySet().removeIf(file -> {
      if (!file.startsWith(parent)) return false;
      SparkEnv.get().rpcEnv().fileServer().removeFile(SERVED.get(file));
      return true;
    });
  }

  /** How many files are served. */
  public static int served() {
    return SERVED.size();
  }
}
