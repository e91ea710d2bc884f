package sqe.bridge.catalog.rest;

import java.util.List;
import java.util.Map;
import org.apache.iceberg.exceptions.ForbiddenException;
import org.apache.iceberg.rest.ErrorHandlers;
import org.apache.iceberg.rest.RESTUtil;
import org.apache.iceberg.rest.credentials.Credential;
import org.apache.iceberg.rest.responses.LoadCredentialsResponse;
import software.amazon.awssdk.auth.credentials.AwsCredentials;
import software.amazon.awssdk.auth.credentials.AwsCredentialsProvider;
import sqe.bridge.BridgeException;

/**
 * The keys of a table's files: those that came with it, and before their end new ones, which the catalog gives to the user
 * of the mount. Keys that are good are used while the catalog cannot give others.
 */
final class RenewedKeys implements AwsCredentialsProvider {
  private static final long EARLY_MILLIS = 300000;
  private static final long PAUSE_MILLIS = 2000;
  private static final long UNKNOWN_MILLIS = 600000; // for keys that do not say when they end

  private final Map<String, String> properties;
  private AwsCredentials keys;
  private long endsAt;
  private long renewAt;

  RenewedKeys(Map<String, String> properties) {
    this.properties = properties;
    take(properties, StoreSettings.ENDS);
  }

  /** One thread asks, and the others need what it gets. */
  public synchronized AwsCredentials resolveCredentials() {
    long now = System.currentTimeMillis();
    if (keys != null && now < renewAt) return keys;
    try {
      ask();
    } catch (RuntimeException failed) {
      if (keys == null || now >= endsAt) throw failed;
      renewAt = Math.min(now + PAUSE_MILLIS, endsAt);
    }
    return keys;
  }

  private void ask() {
    LoadCredentialsResponse answer;
    try {
      String endpoint = RESTUtil.resolveEndpoint(properties.get("uri"), properties.get(StoreSettings.RENEWAL));
      answer =
          RestClients.forFiles(properties)
              .get(endpoint, Map.of(), LoadCredentialsResponse.class, Map.of(), ErrorHandlers.defaultErrorHandler());
    } catch (ForbiddenException refused) {
      throw refusal(refused);
    }
    if (!take(chosen(answer.credentials()), StoreSettings.EXPIRES)) throw refusal(null);
  }

  private static BridgeException refusal(Throwable cause) {
    BridgeException refusal = new BridgeException("SQE_FILE_KEYS_REFUSED", "the catalog gives no new keys for a table's files");
    if (cause != null) refusal.initCause(cause);
    return refusal;
  }

  /** The settings of the credential that fits the files best. */
  private Map<String, String> chosen(List<Credential> credentials) {
    String wanted = properties.get(StoreSettings.PREFIX);
    if (credentials.size() == 1) return credentials.get(0).config();
    return credentials.stream()
        .filter(each -> wanted != null && wanted.startsWith(each.prefix()))
        .reduce((best, each) -> each.prefix().length() > best.prefix().length() ? each : best)
        .map(Credential::config)
        .orElse(Map.of());
  }

  /** Whether there are keys among some settings; they are used from now on. */
  private boolean take(Map<String, String> settings, String end) {
    String id = settings.get(StoreSettings.KEY_ID);
    String secret = settings.get(StoreSettings.SECRET);
    if (id == null || id.isEmpty() || secret == null || secret.isEmpty() || id.equals(StoreSettings.NO_KEY)) return false;
    keys = MountKeys.keys(id, secret, settings.get(StoreSettings.SESSION));
    long now = System.currentTimeMillis();
    String ends = settings.get(end);
    endsAt = ends == null ? Long.MAX_VALUE : Long.parseLong(ends);
    long left = ends == null ? UNKNOWN_MILLIS : Math.max(0, endsAt - now);
    renewAt = now + Math.max(left - EARLY_MILLIS, left / 2);
    return true;
  }
}
