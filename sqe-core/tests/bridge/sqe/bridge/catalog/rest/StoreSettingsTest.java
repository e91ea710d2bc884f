package sqe.bridge.catalog.rest;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.lang.reflect.Proxy;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import org.apache.iceberg.exceptions.CommitStateUnknownException;
import org.apache.iceberg.exceptions.ForbiddenException;
import org.apache.iceberg.exceptions.NotAuthorizedException;
import org.apache.iceberg.rest.RESTClient;
import org.apache.iceberg.rest.RESTResponse;
import org.apache.iceberg.rest.responses.ConfigResponse;
import org.apache.iceberg.rest.responses.ErrorResponse;
import org.junit.jupiter.api.Test;
import sqe.bridge.BridgeException;

class StoreSettingsTest {
  private static final Map<String, String> KEYS = Map.of("s3.access-key-id", "theirs", "s3.secret-access-key", "secret");
  private static final Map<String, String> OURS = Map.of("s3.access-key-id", "ours", "s3.secret-access-key", "ours");

  private static Map<String, String> kept(Map<String, String> group, Map<String, String> own, boolean defaults) {
    Map<String, String> changed = new HashMap<>(group);
    StoreSettings.keepOursHome(changed, own, defaults);
    return changed;
  }

  private static Map<String, String> with(Map<String, String> map, String key, String value) {
    Map<String, String> changed = new HashMap<>(map);
    changed.put(key, value);
    return changed;
  }

  @Test
  void anotherStoreNeedsKeysOfItsOwn() {
    Map<String, String> elsewhere = Map.of("s3.endpoint", "https://elsewhere");
    assertEquals(Map.of(), kept(elsewhere, OURS, false));
    assertEquals(Map.of(), kept(elsewhere, Map.of(), false), "the machine's keys are ours, too");
    Map<String, String> whole = with(KEYS, "s3.endpoint", "https://elsewhere");
    assertEquals(whole, kept(whole, OURS, false));
    assertEquals(elsewhere, kept(elsewhere, Map.of("s3.access-key-id", StoreSettings.NO_KEY), false));
  }

  @Test
  void halfAKeyIsNone() {
    for (String half : KEYS.keySet()) {
      Map<String, String> group = Map.of(half, "theirs", "s3.endpoint", "https://elsewhere", "s3.session-token", "t");
      assertEquals(Map.of(), kept(group, OURS, false));
    }
    assertEquals(Map.of(), kept(with(KEYS, "s3.secret-access-key", ""), OURS, false));
  }

  @Test
  void defaultsDoNotReplaceOurKeys() {
    assertEquals(Map.of(), kept(KEYS, OURS, true));
    assertEquals(KEYS, kept(KEYS, Map.of(), true));
  }

  @Test
  void signingIsOnlyEverSwitchedOn() {
    Map<String, String> on = Map.of("s3.remote-signing-enabled", "true");
    assertEquals(on, kept(on, OURS, false));
    assertEquals(Map.of(), kept(Map.of("s3.remote-signing-enabled", "false"), OURS, false));
    assertEquals(on, kept(Map.of("s3.signer", "S3V4RestSigner"), OURS, false));
  }

  @Test
  void aRegionBecomesAPartOfAHostName() {
    assertEquals(Map.of("client.region", "eu-central-1"), kept(Map.of("client.region", "eu-central-1"), OURS, false));
    assertEquals(Map.of(), kept(Map.of("client.region", "x.evil.example/"), OURS, false));
  }

  @FunctionalInterface
  interface Answer {
    Object to(Consumer<ErrorResponse> errors) throws Throwable;
  }

  private static RESTClient client(Answer answer, boolean changes) {
    RESTClient inner =
        (RESTClient)
            Proxy.newProxyInstance(
                StoreSettingsTest.class.getClassLoader(),
                new Class<?>[] {RESTClient.class},
                (proxy, method, arguments) -> {
                  for (Object argument : arguments)
                    if (argument instanceof Consumer<?> errors) return answer.to((Consumer<ErrorResponse>) errors);
                  throw new AssertionError(method);
                });
    Map<String, String> own = Map.of("uri", "https://catalog:1/v1", "token", "mine");
    return changes ? RestAnswers.over(inner, own) : RestAnswers.reading(inner, own);
  }

  private static <T extends RESTResponse> T get(Class<T> type, Answer answer) {
    return client(answer, true).get("path", Map.of(), type, Map.<String, String>of(), error -> {});
  }

  private static ConfigResponse config(Map<String, String> overrides) {
    return get(ConfigResponse.class, errors -> ConfigResponse.builder().withOverrides(new HashMap<>(overrides)).withEndpoints(List.of()).build());
  }

  @Test
  void noClassAndNoOtherServerIsBelieved() {
    Map<String, String> given =
        Map.of(
            "prefix", "p", "io-impl", "evil.Io", "rest.client.anything", "x", "token", "theirs",
            "client.refresh-credentials-endpoint", "https://catalog:1/v1/keys", "s3.signer.uri", "https://evil", "uri", "http://catalog:1/");
    assertEquals(
        Map.of("prefix", "p", "token", "theirs", StoreSettings.RENEWAL, "https://catalog:1/v1/keys", StoreSettings.SIGNER_ELSEWHERE, "true"),
        config(given).overrides());
  }

  @Test
  void signaturesWithTheMachinesKeysAreRefused() {
    for (Map<String, String> wish : List.of(Map.of("rest.sigv4-enabled", "TRUE"), Map.of("rest.auth.type", "SigV4"))) {
      BridgeException refused = assertThrows(BridgeException.class, () -> config(wish));
      assertEquals("SQE_CATALOG_WANTS_SIGNATURES", refused.condition);
    }
  }

  private static Answer error(int code, String type, String message) {
    return errors -> {
      errors.accept(ErrorResponse.builder().responseCode(code).withType(type).withMessage(message).build());
      throw new IllegalStateException("the usual handler took it");
    };
  }

  @Test
  void aDenialInTheDressOfAFaultIsADenial() {
    assertThrows(ForbiddenException.class, () -> get(ConfigResponse.class, error(500, "x.ForbiddenException", "no")));
    assertThrows(ForbiddenException.class, () -> get(ConfigResponse.class, error(500, null, "Not authorized to see it")));
    assertThrows(NotAuthorizedException.class, () -> get(ConfigResponse.class, error(419, null, "ended")));
    assertThrows(BridgeException.class, () -> get(ConfigResponse.class, error(429, null, "later")));
    assertThrows(IllegalStateException.class, () -> get(ConfigResponse.class, error(500, null, "disk is full")));
  }

  @Test
  void whatBecameOfAChangeWithoutAnswerIsUnknown() {
    Answer silent = errors -> { throw new org.apache.iceberg.exceptions.RESTException(new java.io.IOException("reset"), "%s", "x"); };
    Answer refused = errors -> { throw new org.apache.iceberg.exceptions.RESTException(new java.net.ConnectException("no"), "%s", "x"); };
    assertThrows(CommitStateUnknownException.class, () -> post(client(silent, true)));
    assertThrows(BridgeException.class, () -> post(client(silent, false)));
    assertThrows(BridgeException.class, () -> post(client(refused, true)), "it was never sent");
  }

  private static void post(RESTClient client) {
    client.post("path", null, ConfigResponse.class, Map.<String, String>of(), error -> {});
  }

  @Test
  void tokensAreForgotten() {
    MountTokens.put("h", "1");
    assertEquals(true, MountTokens.renew("h", "2"));
    assertEquals("2", MountTokens.current("h"));
    MountTokens.forget("h");
    assertEquals(false, MountTokens.renew("h", "3"));
    assertThrows(NotAuthorizedException.class, () -> MountTokens.current("h"));
    assertThrows(NotAuthorizedException.class, () -> MountTokens.current(null));
  }
}
