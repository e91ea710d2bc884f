package sqe.bridge.catalog.rest;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.rest.HTTPHeaders;
import org.apache.iceberg.rest.HTTPRequest;
import org.apache.iceberg.rest.ImmutableHTTPRequest;
import org.apache.iceberg.rest.RESTClient;
import org.apache.iceberg.rest.auth.AuthManager;
import org.apache.iceberg.rest.auth.AuthSession;

/**
 * How mounted REST catalogs log in: each request carries the token that is behind the mount's handle at that moment.
 * Iceberg's own manager keeps the token that it began with, and would renew it by itself (design section 6).
 */
public final class TokenAuth implements AuthManager {
  private static final String HEADER = "Authorization";
  private static final String TOKEN = "token"; // of one table, when the catalog gives it one

  public TokenAuth(String name) {}

  public AuthSession catalogSession(RESTClient client, Map<String, String> properties) {
    return new Bearer(properties.get(MountTokens.HANDLE), null);
  }

  /** For what storage asks the catalog: credentials when the old ones end, and signatures. */
  public AuthSession tableSession(RESTClient client, Map<String, String> properties) {
    String own = properties.get(TOKEN);
    return own == null ? catalogSession(client, properties) : new Bearer(null, own);
  }

  public AuthSession tableSession(TableIdentifier table, Map<String, String> properties, AuthSession parent) {
    String own = properties.get(TOKEN);
    return own == null ? parent : new Bearer(null, own);
  }

  public void close() {}

  private record Bearer(String handle, String fixed) implements AuthSession {
    public HTTPRequest authenticate(HTTPRequest request) {
      String token = fixed == null ? MountTokens.current(handle) : fixed;
      List<HTTPHeaders.HTTPHeader> headers = new ArrayList<>(request.headers().entries());
      headers.removeIf(header -> header.name().equalsIgnoreCase(HEADER));
      headers.add(HTTPHeaders.HTTPHeader.of(HEADER, "Bearer " + token));
      return ImmutableHTTPRequest.copyOf(request).withHeaders(HTTPHeaders.of(headers.toArray(new HTTPHeaders.HTTPHeader[0])));
    }

    public void close() {}
  }
}
