package sqe.bridge.catalog.rest;

import java.io.IOException;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import org.apache.iceberg.common.DynConstructors;
import org.apache.iceberg.common.DynFields;
import org.apache.iceberg.rest.HTTPClient;
import org.apache.iceberg.rest.RESTClient;
import org.apache.iceberg.rest.RESTUtil;
import org.apache.iceberg.rest.auth.AuthManager;
import org.apache.iceberg.rest.auth.AuthManagers;
import org.apache.iceberg.shaded.org.apache.hc.client5.http.HttpRequestRetryStrategy;
import org.apache.iceberg.shaded.org.apache.hc.client5.http.config.ConnectionConfig;
import org.apache.iceberg.shaded.org.apache.hc.client5.http.impl.classic.CloseableHttpClient;
import org.apache.iceberg.shaded.org.apache.hc.client5.http.impl.classic.HttpClients;
import org.apache.iceberg.shaded.org.apache.hc.client5.http.impl.io.PoolingHttpClientConnectionManagerBuilder;
import org.apache.iceberg.shaded.org.apache.hc.core5.http.HttpRequest;
import org.apache.iceberg.shaded.org.apache.hc.core5.http.HttpResponse;
import org.apache.iceberg.shaded.org.apache.hc.core5.http.protocol.HttpContext;
import org.apache.iceberg.shaded.org.apache.hc.core5.util.TimeValue;
import sqe.bridge.BridgeException;

/**
 * Iceberg's HTTP client as SQE sends requests to catalogs: without redirects, which would carry the user's token
 * elsewhere, without cookies, which would tell one user's requests from another's, and without asking again after a 500.
 */
final class RestClients {
  private static final int CONNECTIONS = 100; // as many to one server as Iceberg's own
  private static final String CONNECT_MILLIS = "rest.client.connection-timeout-ms";
  private static final String SOCKET_MILLIS = "rest.client.socket-timeout-ms";
  private static final String RETRIES = "rest.client.max-retries";

  /** Connections for files, by the times that a mount allows. Nothing of a user is in them. */
  private static final Map<String, CloseableHttpClient> SHARED = new ConcurrentHashMap<>();

  private static final DynFields.UnboundField<CloseableHttpClient> INNER =
      DynFields.builder().hiddenImpl(HTTPClient.class, "httpClient").build();
  private static final DynConstructors.Ctor<HttpRequestRetryStrategy> RETRY_STRATEGY =
      DynConstructors.builder()
          .loader(HTTPClient.class.getClassLoader())
          .hiddenImpl("org.apache.iceberg.rest.ExponentialHttpRequestRetryStrategy", int.class)
          .build();

  private RestClients() {}

  static HTTPClient open(Map<String, String> properties) {
    return over(connections(properties), properties);
  }

  /**
   * What the files of a table are opened with: keys and signatures, asked for as the user of the mount, whose token is
   * behind the handle in the settings of the file access. It is not closed.
   */
  static RESTClient forFiles(Map<String, String> properties) {
    if (!MountTokens.areHere())
      throw new BridgeException("SQE_FILES_ON_EXECUTOR", "this executor cannot ask the catalog for keys or signatures");
    String times = properties.get(CONNECT_MILLIS) + " " + properties.get(SOCKET_MILLIS) + " " + properties.get(RETRIES);
    HTTPClient client = over(SHARED.computeIfAbsent(times, each -> connections(properties)), properties);
    AuthManager manager = AuthManagers.loadAuthManager("sqe-files", properties);
    return RestAnswers.reading(client, properties).withAuthSession(manager.tableSession(client, properties));
  }

  private static HTTPClient over(CloseableHttpClient connections, Map<String, String> properties) {
    HTTPClient client =
        HTTPClient.builder(properties)
            .uri(properties.get("uri"))
            .withHeaders(RESTUtil.configHeaders(properties))
            .build();
    // It takes no client of another, and no part of one.
    try (CloseableHttpClient usual = INNER.get(client)) {
      INNER.set(client, connections);
      return client;
    } catch (IOException neverUsed) {
      throw new IllegalStateException(neverUsed);
    }
  }

  private static CloseableHttpClient connections(Map<String, String> properties) {
    ConnectionConfig.Builder times = ConnectionConfig.custom();
    String connect = properties.get(CONNECT_MILLIS);
    if (connect != null) times.setConnectTimeout(Long.parseLong(connect), TimeUnit.MILLISECONDS);
    String socket = properties.get(SOCKET_MILLIS);
    if (socket != null) times.setSocketTimeout(Integer.parseInt(socket), TimeUnit.MILLISECONDS);
    return HttpClients.custom()
        .setConnectionManager(
            PoolingHttpClientConnectionManagerBuilder.create()
                .useSystemProperties()
                .setDefaultConnectionConfig(times.build())
                .setMaxConnTotal(10 * CONNECTIONS)
                .setMaxConnPerRoute(CONNECTIONS)
                .build())
        .setRetryStrategy(new Retries(properties))
        .disableRedirectHandling()
        .disableCookieManagement()
        .disableAuthCaching()
        .build();
  }

  /**
   * Iceberg's own retries but for 500 and 408. A denial in the dress of a 500 would be told only after seconds, and so be
   * told apart from what does not exist (ERR-5).
   */
  private static final class Retries implements HttpRequestRetryStrategy {
    private final HttpRequestRetryStrategy usual;

    Retries(Map<String, String> properties) {
      usual = RETRY_STRATEGY.newInstance(Integer.parseInt(properties.getOrDefault(RETRIES, "5")));
    }

    public boolean retryRequest(HttpRequest request, IOException thrown, int count, HttpContext context) {
      return usual.retryRequest(request, thrown, count, context);
    }

    public boolean retryRequest(HttpResponse response, int count, HttpContext context) {
      if (response.getCode() == 500 || response.getCode() == 408) return false;
      return usual.retryRequest(response, count, context);
    }

    public TimeValue getRetryInterval(HttpRequest request, IOException thrown, int count, HttpContext context) {
      return usual.getRetryInterval(request, thrown, count, context);
    }

    public TimeValue getRetryInterval(HttpResponse response, int count, HttpContext context) {
      return usual.getRetryInterval(response, count, context);
    }
  }
}
