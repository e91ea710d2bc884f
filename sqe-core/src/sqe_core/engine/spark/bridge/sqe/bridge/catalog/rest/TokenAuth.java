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

  public AuthSession initSession(RESTClient client, Map properties) {
    return session(properties);
  }

  public AuthSession catalogSession(RESTClient client, Map properties) {
    return session(properties);
  }

  /** For what storage asks the catalog: credentials when the old ones end, and signatures. */
  public AuthSession tableSession(RESTClient client, Map properties) {
    String own = (String) properties.get(TOKEN);
    return own == null ? session(properties) : new Bearer(null, own);
  }

  public AuthSession tableSession(TableIdentifier table, Map properties, AuthSession parent) {
    String own = (String) properties.get(TOKEN);
    return own == null ? parent : new Bearer(null, own);
  }

  public void close() {}

  private static AuthSession session(Map properties) {
    return new Bearer((String) properties.get(MountTokens.HANDLE), null);
  }

  private record Bearer(String handle, String fixed) implements AuthSession {
    public HTTPRequest authenticate(HTTPRequest request) {
      List headers = new ArrayList();
      for (HTTPHeaders.HTTPHeader header : request.headers().entries()) {
        if (!header.name().equalsIgnoreCase(HEADER)) headers.add(header);
      }
      String token = fixed == null ? MountTokens.current(handle) : fixed;
      headers.add(HTTPHeaders.HTTPHeader.of(HEADER, "Bearer " + token));
      HTTPHeaders.HTTPHeader[] all = new HTTPHeaders.HTTPHeader[headers.size()];
      headers.toArray(all);
      return ImmutableHTTPRequest.copyOf(request).withHeaders(HTTPHeaders.of(all));
    }

    public void close() {}
  }
}
