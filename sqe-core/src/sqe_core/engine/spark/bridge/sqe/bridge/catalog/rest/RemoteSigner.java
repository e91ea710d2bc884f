package sqe.bridge.catalog.rest;

import java.io.IOException;
import java.net.URI;
import java.util.HashMap;
import java.util.Map;
import org.apache.iceberg.rest.ErrorHandlers;
import org.apache.iceberg.rest.RESTClient;
import org.apache.iceberg.rest.RESTUtil;
import org.apache.iceberg.rest.RemoteSigningConfig;
import org.apache.iceberg.rest.RemoteSigningConfigParser;
import org.apache.iceberg.rest.requests.ImmutableRemoteSignRequest;
import org.apache.iceberg.rest.requests.RemoteSignRequest;
import org.apache.iceberg.rest.responses.RemoteSignResponse;
import software.amazon.awssdk.auth.signer.AwsSignerExecutionAttribute;
import software.amazon.awssdk.core.interceptor.ExecutionAttributes;
import software.amazon.awssdk.core.signer.Signer;
import software.amazon.awssdk.http.SdkHttpFullRequest;
import software.amazon.awssdk.http.SdkHttpMethod;
import software.amazon.awssdk.regions.Region;
import software.amazon.awssdk.utils.IoUtils;
import sqe.bridge.BridgeException;

/**
 * Has the catalog sign each request for a table's files, as the user of the mount. No signature is kept: what one user may
 * read is none of another's, and what a catalog takes back is over at once.
 */
final class RemoteSigner implements Signer {
  private final Map<String, String> properties;
  private final RemoteSigningConfig said;
  private final String endpoint;
  private RESTClient client;

  RemoteSigner(Map<String, String> properties) {
    if (properties.containsKey(StoreSettings.SIGNER_ELSEWHERE))
      throw new BridgeException("SQE_SIGNER_ELSEWHERE", "the catalog names another server as its signer");
    this.properties = properties;
    String config = properties.get("rest.remote-signing.config");
    said = config == null ? RemoteSigningConfig.EMPTY : RemoteSigningConfigParser.fromJson(config);
    String path = first("s3.signer.endpoint", "signer.endpoint", "rest.remote-signing.endpoint");
    if (path == null) throw new BridgeException("SQE_SIGNER_UNKNOWN", "the catalog does not say where it signs");
    endpoint = RESTUtil.resolveEndpoint(first("s3.signer.uri", "signer.uri", "uri"), path);
  }

  private String first(String older, String newer, String usual) {
    if (properties.containsKey(older)) return properties.get(older);
    return properties.get(properties.containsKey(newer) ? newer : usual);
  }

  public SdkHttpFullRequest sign(SdkHttpFullRequest request, ExecutionAttributes attributes) {
    Region region = attributes.getAttribute(AwsSignerExecutionAttribute.SIGNING_REGION);
    RemoteSignRequest asked =
        ImmutableRemoteSignRequest.builder()
            .method(request.method().name())
            .region(region.id())
            .uri(request.getUri())
            .headers(request.headers())
            .properties(said.properties())
            .body(body(request))
            .provider("s3")
            .build();
    RemoteSignResponse answer =
        client()
            .post(endpoint, asked, RemoteSignResponse.class, headers(), ErrorHandlers.defaultErrorHandler());
    if (!isSamePlace(request.getUri(), answer.uri()))
      throw new BridgeException("SQE_SIGNER_ELSEWHERE", "the catalog signed a request for another place");
    // The builder puts the path of an address in front of the one that it has.
    SdkHttpFullRequest.Builder signed = request.toBuilder();
    signed.encodedPath("");
    signed.uri(answer.uri());
    answer
        .headers()
        .forEach(
            (name, values) -> {
              // That one is of the answer of the catalog, not of the request.
              if (name.equalsIgnoreCase("Cache-Control") || request.firstMatchingHeader(name).isPresent()) return;
              signed.putHeader(name, values);
            });
    return signed.build();
  }

  private synchronized RESTClient client() {
    if (client == null) client = RestClients.forFiles(properties);
    return client;
  }

  private Map<String, String> headers() {
    Map<String, String> headers = new HashMap<>();
    said.headers().forEach((name, values) -> headers.put(name, String.join(", ", values)));
    return headers;
  }

  private static boolean isSamePlace(URI asked, URI signed) {
    return asked.getScheme().equalsIgnoreCase(signed.getScheme())
        && asked.getRawAuthority().equalsIgnoreCase(signed.getRawAuthority())
        && asked.getRawPath().equals(signed.getRawPath());
  }

  /** The names of files that are to be deleted at once, which stand in the body; no other body is shown. */
  private static String body(SdkHttpFullRequest request) {
    if (request.method() != SdkHttpMethod.POST || !request.rawQueryParameters().containsKey("delete")) return null;
    if (!request.contentStreamProvider().isPresent()) return null;
    try {
      return IoUtils.toUtf8String(request.contentStreamProvider().get().newStream());
    } catch (IOException unreadable) {
      throw new IllegalStateException(unreadable);
    }
  }
}
