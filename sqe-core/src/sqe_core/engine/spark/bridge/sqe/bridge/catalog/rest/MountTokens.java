package sqe.bridge.catalog.rest;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.iceberg.exceptions.NotAuthorizedException;
import org.apache.spark.SparkEnv;

/**
 * The tokens that mounted catalogs send, by random handles. A mount knows its handle alone: no setting, plan or task holds
 * a token, and whatever is loaded already, a running statement's tables too, goes on with a renewed one.
 */
public final class MountTokens {
  /** The option of a mount that holds its handle. */
  static final String HANDLE = "sqe.token-handle";

  private static final Map<String, String> TOKENS = new ConcurrentHashMap<>(); // by handle

  private MountTokens() {}

  public static void put(String handle, String token) {
    TOKENS.put(handle, token);
  }

  /** Replaces a token; one that was forgotten meanwhile stays forgotten. */
  public static boolean renew(String handle, String token) {
    return TOKENS.replace(handle, token) != null;
  }

  public static void forget(String handle) {
    TOKENS.remove(handle);
  }

  public static int count() {
    return TOKENS.size();
  }

  /** Whether this is the process that has them: executors in others have handles that mean nothing there. */
  static boolean areHere() {
    SparkEnv here = SparkEnv.get();
    return here == null || "driver".equals(here.executorId());
  }

  static String current(String handle) {
    String token = handle == null ? null : TOKENS.get(handle);
    if (token == null) throw new NotAuthorizedException("The catalog's login has ended");
    return token;
  }
}
