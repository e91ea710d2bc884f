package sqe.bridge.catalog.rest;

import java.io.IOException;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.net.ConnectException;
import java.net.URI;
import java.net.UnknownHostException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Future;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.regex.Pattern;
import org.apache.iceberg.common.DynFields;
import org.apache.iceberg.exceptions.CommitStateUnknownException;
import org.apache.iceberg.exceptions.ForbiddenException;
import org.apache.iceberg.exceptions.NotAuthorizedException;
import org.apache.iceberg.exceptions.RESTException;
import org.apache.iceberg.rest.ErrorHandler;
import org.apache.iceberg.rest.RESTClient;
import org.apache.iceberg.rest.auth.AuthSession;
import org.apache.iceberg.rest.credentials.Credential;
import org.apache.iceberg.rest.credentials.ImmutableCredential;
import org.apache.iceberg.rest.responses.ConfigResponse;
import org.apache.iceberg.rest.responses.ErrorResponse;
import org.apache.iceberg.rest.responses.LoadTableResponse;
import sqe.bridge.BridgeException;
import sqe.bridge.exec.Daemons;

/**
 * What a REST catalog answers, as far as it is believed. Its settings name no classes, send the user's token to no other
 * server, and do not turn keys of ours to another store (StoreSettings, ISO-7); everything else in them is left out. A
 * denial in the dress of a fault becomes a denial, so that a refused commit is no commit of unknown state.
 */
final class RestAnswers implements InvocationHandler {
  private static final int LOGIN_ENDED = 419; // Iceberg's own status for a token that has ended
  private static final int TOO_MANY_REQUESTS = 429;
  private static final Pattern DENIAL_TYPE = Pattern.compile(".*(AccessCheck|AccessDenied|Forbidden|NotAuthorized)Exception");
  private static final Pattern DENIAL =
      Pattern.compile(
          "(Failed to commit [a-z ]+: )?(\\w+: )*[Nn]ot authorized to .*"
              + "|\\S*AccessCheckException: .*|'[A-Z_]+' is not allowed for role .*",
          Pattern.DOTALL);

  /** Settings that a catalog may give. */
  private static final Set<String> KEYS =
      Set.of(
          "prefix", "uri", "warehouse", "namespace-separator", "view-endpoints-supported", "token", "client.region",
          "client.refresh-credentials-endpoint", "client.refresh-credentials-enabled", "s3.endpoint", "s3.access-key-id",
          "s3.secret-access-key", "s3.session-token", "s3.session-token-expires-at-ms", "s3.path-style-access",
          "s3.remote-signing-enabled", "s3.signer", "s3.signer.uri", "s3.signer.endpoint", "signer.uri",
          "signer.endpoint", "s3.cross-region-access-enabled",
          "s3.use-arn-region-enabled", "s3.checksum-enabled", "s3.chunked-encoding-enabled", "s3.dualstack-enabled",
          "s3.acceleration-enabled", "s3.delete-enabled", "s3.sse.type", "s3.sse.key", "s3.sse.md5");

  private static final List<String> PREFIXES =
      List.of("table-default.", "table-override.", "view-default.", "view-override.", "s3.access-points.");

  /** Where the user's token is sent. */
  private static final Set<String> TOKEN_PLACES =
      Set.of(
          "uri", "s3.signer.uri", "s3.signer.endpoint", "signer.uri", "signer.endpoint",
          "client.refresh-credentials-endpoint");

  private static final String AUTH_TYPE = "rest.auth.type";
  private static final String SIGNATURES = "sigv4";

  private static final long DEFAULT_MILLIS = 60000;
  private static final ScheduledThreadPoolExecutor TIMER = timer();

  private final RESTClient client;
  private final Map<String, String> own; // the settings of the mount
  private final boolean changes; // whether what is posted may change something

  private RestAnswers(RESTClient client, Map<String, String> own, boolean changes) {
    this.client = client;
    this.own = own;
    this.changes = changes;
  }

  static RESTClient over(RESTClient client, Map<String, String> own) {
    return over(client, own, true);
  }

  /** A client for requests that change nothing, even where they are posted. */
  static RESTClient reading(RESTClient client, Map<String, String> own) {
    return over(client, own, false);
  }

  private static RESTClient over(RESTClient client, Map<String, String> own, boolean changes) {
    return (RESTClient)
        Proxy.newProxyInstance(
            RestAnswers.class.getClassLoader(), new Class<?>[] {RESTClient.class}, new RestAnswers(client, own, changes));
  }

  public Object invoke(Object proxy, Method method, Object[] arguments) throws Throwable {
    if (method.getName().equals("withAuthSession"))
      return over(client.withAuthSession((AuthSession) arguments[0]), own, changes);
    Deadline deadline = new Deadline(Thread.currentThread());
    Future<?> planned = TIMER.schedule(deadline, millis(), TimeUnit.MILLISECONDS);
    try {
      return believed(method.invoke(client, withErrors(arguments)));
    } catch (InvocationTargetException failed) {
      throw told(method.getName(), failed.getCause(), deadline.end());
    } finally {
      deadline.end();
      planned.cancel(false);
    }
  }

  /** What became of a request without an answer: a change may have been made, unless it was never sent. */
  private Throwable told(String method, Throwable thrown, boolean late) {
    Throwable cause = thrown instanceof RESTException ? thrown.getCause() : null;
    if (!late && !(cause instanceof IOException)) return thrown;
    boolean sent = !(cause instanceof ConnectException || cause instanceof UnknownHostException) && !isConnecting(cause);
    if (changes && sent && (method.equals("post") || method.equals("delete"))) return new CommitStateUnknownException(thrown);
    if (!late && cause.getClass().getName().contains("jackson")) return thrown;
    return new BridgeException("SQE_CATALOG_SILENT", "the catalog did not answer");
  }

  private static boolean isConnecting(Throwable cause) {
    return cause != null && cause.getClass().getName().endsWith(".ConnectTimeoutException");
  }

  private long millis() {
    String given = own.get("rest.client.socket-timeout-ms");
    return given == null ? DEFAULT_MILLIS : Long.parseLong(given);
  }

  private static ScheduledThreadPoolExecutor timer() {
    ScheduledThreadPoolExecutor timer = new ScheduledThreadPoolExecutor(1, Daemons.named("sqe-catalog-deadlines"));
    timer.setRemoveOnCancelPolicy(true);
    return timer;
  }

  /** Ends a request that goes on too long: a catalog may ask to be left alone for hours, and Iceberg's client waits. */
  private static final class Deadline implements Runnable {
    private final Thread waiting;
    private boolean ended;
    private boolean fired;

    Deadline(Thread waiting) {
      this.waiting = waiting;
    }

    public synchronized void run() {
      if (ended) return;
      fired = true;
      waiting.interrupt();
    }

    /** Says whether it was this that interrupted the thread, which is told nothing of it later. */
    synchronized boolean end() {
      if (!ended && fired) Thread.interrupted();
      ended = true;
      return fired;
    }
  }

  // ------------------------------------------------------------------ settings

  private Object believed(Object answer) {
    if (answer instanceof ConfigResponse response) {
      boolean wanted = wantsSignatures(response.defaults()) || wantsSignatures(response.overrides());
      if (wanted && !SIGNATURES.equals(own.get(AUTH_TYPE)))
        throw new BridgeException("SQE_CATALOG_WANTS_SIGNATURES", "the catalog asks for SigV4, which is not configured");
      replace(answer, "defaults", settings(response.defaults(), true));
      replace(answer, "overrides", settings(response.overrides(), false));
    } else if (answer instanceof LoadTableResponse table) {
      replace(answer, "config", settings(table.config(), false));
      List<Credential> credentials = new ArrayList<>();
      for (Credential credential : table.credentials()) {
        Map<String, String> settings = settings(credential.config(), false);
        if (settings.isEmpty()) continue;
        settings.put(StoreSettings.PREFIX, credential.prefix());
        credentials.add(ImmutableCredential.builder().prefix(credential.prefix()).config(settings).build());
      }
      replace(answer, "credentials", credentials);
    }
    return answer;
  }

  /** Never answered with the machine's own keys: they may open more than the catalog's tables. */
  private static boolean wantsSignatures(Map<String, String> given) {
    return given != null
        && ("true".equalsIgnoreCase(given.get("rest.sigv4-enabled"))
            || SIGNATURES.equalsIgnoreCase(given.get(AUTH_TYPE)));
  }

  private static void replace(Object answer, String name, Object value) {
    DynFields.builder().hiddenImpl(answer.getClass(), name).build(answer).set(value);
  }

  /** What is believed of some settings; those of the mount win against `defaults`. */
  private Map<String, String> settings(Map<String, String> given, boolean defaults) {
    Map<String, String> kept = new HashMap<>();
    if (given == null) return kept;
    for (Map.Entry<String, String> entry : given.entrySet()) {
      String key = entry.getKey();
      String value = entry.getValue();
      if (value == null || !isKnown(key)) continue;
      if (TOKEN_PLACES.contains(key) && !isHere(value)) {
        if (key.contains("signer")) kept.put(StoreSettings.SIGNER_ELSEWHERE, "true");
        continue;
      }
      kept.put(key, value);
    }
    StoreSettings.keepOursHome(kept, own, defaults);
    StoreSettings.rename(kept);
    return kept;
  }

  private static boolean isKnown(String key) {
    return KEYS.contains(key) || PREFIXES.stream().anyMatch(key::startsWith);
  }

  /** Whether an address is a path, or on the server of the mount. */
  private boolean isHere(String address) {
    try {
      URI uri = URI.create(address);
      if (uri.getScheme() == null && uri.getRawAuthority() == null) return true;
      URI mount = URI.create(own.get("uri"));
      return mount.getScheme().equalsIgnoreCase(uri.getScheme())
          && mount.getRawAuthority() != null
          && mount.getRawAuthority().equalsIgnoreCase(uri.getRawAuthority());
    } catch (IllegalArgumentException malformed) {
      return false;
    }
  }

  // ------------------------------------------------------------------ errors

  /** The arguments of a request, with its handler of errors, the first consumer, behind ours. */
  private static Object[] withErrors(Object[] arguments) {
    if (arguments == null) return null;
    Object[] changed = arguments.clone();
    for (int i = 0; i < changed.length; i++) {
      if (!(changed[i] instanceof Consumer)) continue;
      changed[i] = new Errors((Consumer<ErrorResponse>) changed[i]);
      break;
    }
    return changed;
  }

  private static final class Errors extends ErrorHandler {
    private final Consumer<ErrorResponse> usual;

    Errors(Consumer<ErrorResponse> usual) {
      this.usual = usual;
    }

    public ErrorResponse parseResponse(int code, String body) {
      if (usual instanceof ErrorHandler handler) return handler.parseResponse(code, body);
      return ErrorResponse.builder().responseCode(code).withMessage(body).build();
    }

    public void accept(ErrorResponse error) {
      int code = error.code() == null ? 0 : error.code();
      if (code == LOGIN_ENDED) throw new NotAuthorizedException("The login has ended");
      if (code == TOO_MANY_REQUESTS) throw new BridgeException("SQE_CATALOG_BUSY", "the catalog is asked too often");
      if (code == 500 && isDenial(error)) throw new ForbiddenException("%s", error.message());
      usual.accept(error);
    }

    private static boolean isDenial(ErrorResponse error) {
      return (error.type() != null && DENIAL_TYPE.matcher(error.type()).matches())
          || (error.message() != null && DENIAL.matcher(error.message()).matches());
    }
  }
}
