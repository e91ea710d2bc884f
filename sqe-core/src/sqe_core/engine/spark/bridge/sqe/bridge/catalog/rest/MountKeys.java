package sqe.bridge.catalog.rest;

import java.util.Map;
import software.amazon.awssdk.auth.credentials.AwsBasicCredentials;
import software.amazon.awssdk.auth.credentials.AwsCredentials;
import software.amazon.awssdk.auth.credentials.AwsCredentialsProvider;
import software.amazon.awssdk.auth.credentials.AwsSessionCredentials;

/**
 * The AWS keys of a mount, by its handle: what its backend gave last, also for clients that were made with other keys. Iceberg
 * makes it of `client.credentials-provider`, and hands it the options below that name.
 */
public final class MountKeys implements AwsCredentialsProvider {
  private final String handle;

  private MountKeys(String handle) {
    this.handle = handle;
  }

  /** Called by Iceberg. */
  public static MountKeys create(Map<String, String> options) {
    return new MountKeys(options.get(MountTokens.HANDLE));
  }

  @Override
  public AwsCredentials resolveCredentials() {
    String[] keys = MountTokens.current(handle).split("\n", -1);
    return keys(keys[0], keys[1], keys[2]);
  }

  static AwsCredentials keys(String id, String secret, String session) {
    return session == null || session.isEmpty()
        ? AwsBasicCredentials.create(id, secret)
        : AwsSessionCredentials.create(id, secret, session);
  }
}
