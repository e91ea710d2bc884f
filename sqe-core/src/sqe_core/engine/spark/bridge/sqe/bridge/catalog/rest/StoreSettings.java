package sqe.bridge.catalog.rest;

import java.util.Map;
import java.util.regex.Pattern;

/**
 * What a catalog may say of a store (ISO-7). Its settings come in groups (defaults, overrides, those of a table, those of
 * each of its prefixes), each laid over the one before and all over the mount's. So what is safe for a group alone has to
 * stay safe under any other: a group names another store only together with its own means to open it, and no later group
 * can take these means away.
 */
final class StoreSettings {
  static final String KEY_ID = "s3.access-key-id";
  static final String SECRET = "s3.secret-access-key";
  static final String SESSION = "s3.session-token";
  static final String EXPIRES = "s3.session-token-expires-at-ms";
  static final String ENDPOINT = "s3.endpoint";
  static final String REGION = "client.region";
  static final String SIGNING = "s3.remote-signing-enabled";

  /** What Iceberg's file access would do by itself, under names of ours: as the user of the mount, see StoreClients. */
  static final String RENEWAL = "sqe.files.renewal-endpoint";

  static final String ENDS = "sqe.files.keys-end-at-ms";

  /** Which files the settings of a credential are for. */
  static final String PREFIX = "sqe.files.prefix";

  static final String SIGNER_ELSEWHERE = "sqe.files.signer-elsewhere";

  /** How PyIceberg is told of signing. */
  private static final String SIGNER = "s3.signer";

  private static final String REMOTE_SIGNER = "S3V4RestSigner";

  /** In the place of keys where only those of the catalog count: whoever learns it learns nothing. */
  static final String NO_KEY = "vended-keys-only";

  /** It becomes a part of the name of a host. */
  private static final Pattern PLAIN_REGION = Pattern.compile("[a-z0-9-]{1,40}");

  private StoreSettings() {}

  /** Takes out of a group of settings what would send requests with keys of ours, or of the machine, to another store. */
  static void keepOursHome(Map<String, String> group, Map<String, String> own, boolean defaults) {
    boolean ownKeys = own.containsKey(KEY_ID) && !NO_KEY.equals(own.get(KEY_ID));
    boolean nothingToLose = own.containsKey(KEY_ID) && !ownKeys;
    // Half a key of theirs would be filled up with half a key of ours.
    boolean theirKeys = isGiven(group, KEY_ID) && isGiven(group, SECRET) && !(defaults && own.containsKey(KEY_ID));
    if (!theirKeys) {
      group.remove(KEY_ID);
      group.remove(SECRET);
      group.remove(SESSION);
      group.remove(EXPIRES);
    }
    // Only ever switched on: what opens a store for one group must not end with the next.
    boolean signing =
        "true".equalsIgnoreCase(group.get(SIGNING))
            || (!theirKeys && REMOTE_SIGNER.equals(group.get(SIGNER)));
    group.remove(SIGNER);
    if (signing) group.put(SIGNING, "true");
    else group.remove(SIGNING);
    if (!theirKeys && !signing && !nothingToLose) group.remove(ENDPOINT);
    if (group.containsKey(REGION) && !PLAIN_REGION.matcher(group.get(REGION)).matches()) group.remove(REGION);
  }

  static void rename(Map<String, String> group) {
    String endpoint = group.remove("client.refresh-credentials-endpoint");
    String enabled = group.remove("client.refresh-credentials-enabled");
    if ("false".equalsIgnoreCase(enabled)) group.put(RENEWAL, "");
    else if (endpoint != null) group.put(RENEWAL, endpoint);
    String ends = group.remove(EXPIRES);
    if (ends != null) group.put(ENDS, ends);
  }

  private static boolean isGiven(Map<String, String> group, String key) {
    String value = group.get(key);
    return value != null && !value.isEmpty();
  }
}
