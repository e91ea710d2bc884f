package sqe.bridge;

import java.io.IOException;
import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.iceberg.rest.HTTPClient;
import org.apache.iceberg.rest.RESTUtil;
import org.apache.iceberg.shaded.org.apache.hc.client5.http.HttpRequestRetryStrategy;
import org.apache.iceberg.shaded.org.apache.hc.client5.http.config.ConnectionConfig;
import org.apache.iceberg.shaded.org.apache.hc.client5.http.impl.classic.CloseableHttpClient;
import org.apache.iceberg.shaded.org.apache.hc.client5.http.impl.classic.HttpClients;
import org.apache.iceberg.shaded.org.apache.hc.client5.http.impl.io.PoolingHttpClientConnectionManagerBuilder;
import org.apache.iceberg.shaded.org.apache.hc.core5.http.HttpRequest;
import org.apache.iceberg.shaded.org.apache.hc.core5.http.HttpResponse;
import org.apache.iceberg.shaded.org.apache.hc.core5.http.protocol.HttpContext;
import org.apache.iceberg.shaded.org.apache.hc.core5.util.TimeValue;

/**
 * Iceberg's HTTP client as SQE sends requests to catalogs: without redirects, which would carry the user's token
 * elsewhere, without cookies, which would tell one user's requests from another's, and without asking again after a 500.
 */
final class RestClients {
  private static final int CONNECTIONS = 100; // as many as Iceberg's own

  private RestClients() {}

  static HTTPClient open(Map properties) {
    HTTPClient client =
        HTTPClient.builder(properties)
            .uri((String) properties.get("uri"))
            .withHeaders(RESTUtil.configHeaders(properties))
            .build();
    try {
      // It takes no client of another, and no part of one.
      Field inner = HTTPClient.class.getDeclaredField("httpClient");
      inner.setAccessible(true);
      CloseableHttpClient usual = (CloseableHttpClient) inner.get(client);
      inner.set(client, ours(properties));
      usual.close();
      return client;
    } catch (ReflectiveOperationException changed) {
      throw new IllegalStateException(changed);
    } catch (IOException neverUsed) {
      throw new IllegalStateException(neverUsed);
    }
  }

  private static CloseableHttpClient ours(Map properties) throws ReflectiveOperationException {
    ConnectionConfig.Builder times = ConnectionConfig.custom();
    String connect = (String) properties.get("rest.client.connection-timeout-ms");
    if (connect != null) times.setConnectTimeout(Long.parseLong(connect), TimeUnit.MILLISECONDS);
    String socket = (String) properties.get("rest.client.socket-timeout-ms");
    if (socket != null) times.setSocketTimeout(Integer.parseInt(socket), TimeUnit.MILLISECONDS);
    return HttpClients.custom()
        .setConnectionManager(
            PoolingHttpClientConnectionManagerBuilder.create()
                .useSystemProperties()
                .setDefaultConnectionConfig(times.build())
                .setMaxConnTotal(CONNECTIONS)
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

    Retries(Map properties) throws ReflectiveOperationException {
      String most = (String) properties.get("rest.client.max-retries");
      Class found = Class.forName("org.apache.iceberg.rest.ExponentialHttpRequestRetryStrategy");
      Constructor constructor = found.getDeclaredConstructor(new Class[] {int.class});
      constructor.setAccessible(true);
      Object[] arguments = {most == null ? Integer.valueOf(5) : Integer.valueOf(most)};
      usual = (HttpRequestRetryStrategy) constructor.newInstance(arguments);
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
