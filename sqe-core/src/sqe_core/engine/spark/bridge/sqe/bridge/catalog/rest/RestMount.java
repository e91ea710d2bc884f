package sqe.bridge.catalog.rest;

import java.util.Map;
import java.util.function.Function;
import org.apache.iceberg.rest.RESTCatalog;
import org.apache.iceberg.rest.RESTClient;

/** Iceberg's REST catalog over a client that takes from the catalog's answers only what is the catalog's to say. */
public final class RestMount extends RESTCatalog {
  public RestMount() {
    super(new Clients());
  }

  private static final class Clients implements Function<Map<String, String>, RESTClient> {
    private Map<String, String> own; // asked for again when the catalog's settings are laid over those of the mount

    public RESTClient apply(Map<String, String> properties) {
      if (own == null) own = properties;
      return RestAnswers.over(RestClients.open(properties), own);
    }
  }
}
