package sqe.bridge;

import java.util.Map;
import java.util.function.Function;
import org.apache.iceberg.rest.HTTPClient;
import org.apache.iceberg.rest.RESTCatalog;
import org.apache.iceberg.rest.RESTUtil;

/** Iceberg's REST catalog over a client that takes from the catalog's answers only what is the catalog's to say. */
public final class RestMount extends RESTCatalog {
  public RestMount() {
    super(new Clients());
  }

  private static final class Clients implements Function {
    public Object apply(Object given) {
      Map properties = (Map) given;
      HTTPClient client =
          HTTPClient.builder(properties)
              .uri((String) properties.get("uri"))
              .withHeaders(RESTUtil.configHeaders(properties))
              .build();
      return RestAnswers.over(client, properties);
    }
  }
}
