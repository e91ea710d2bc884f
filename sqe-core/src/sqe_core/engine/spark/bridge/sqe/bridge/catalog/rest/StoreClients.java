package sqe.bridge.catalog.rest;

import java.util.Map;
import org.apache.iceberg.aws.AwsClientProperties;
import org.apache.iceberg.aws.HttpClientProperties;
import org.apache.iceberg.aws.s3.S3FileIOAwsClientFactory;
import org.apache.iceberg.aws.s3.S3FileIOProperties;
import software.amazon.awssdk.auth.credentials.AnonymousCredentialsProvider;
import software.amazon.awssdk.auth.credentials.AwsCredentialsProvider;
import software.amazon.awssdk.core.client.config.ClientOverrideConfiguration;
import software.amazon.awssdk.core.client.config.SdkAdvancedClientOption;
import software.amazon.awssdk.services.s3.S3AsyncClient;
import software.amazon.awssdk.services.s3.S3Client;
import software.amazon.awssdk.services.s3.S3ClientBuilder;

/**
 * Opens the files of tables of REST catalogs as Iceberg does, but for what is asked of the catalog meanwhile: RenewedKeys
 * and RemoteSigner. Iceberg's own signer shares signatures, connections and logins between all users of a JVM.
 */
public final class StoreClients implements S3FileIOAwsClientFactory {
  private Map<String, String> properties;

  public void initialize(Map<String, String> properties) {
    this.properties = properties;
  }

  public S3Client s3() {
    AwsClientProperties aws = new AwsClientProperties(properties);
    S3FileIOProperties files = new S3FileIOProperties(properties);
    S3ClientBuilder builder = S3Client.builder();
    aws.applyClientRegionConfiguration(builder);
    aws.applyLegacyMd5Plugin(builder);
    new HttpClientProperties(properties).applyHttpClientConfigurations(builder);
    files.applyEndpointConfigurations(builder);
    files.applyServiceConfigurations(builder);
    files.applyUserAgentConfigurations(builder);
    files.applyRetryConfigurations(builder);
    if (files.isRemoteSigningEnabled()) {
      builder.credentialsProvider((AwsCredentialsProvider) AnonymousCredentialsProvider.create());
      ClientOverrideConfiguration.Builder changed = builder.overrideConfiguration().toBuilder();
      changed.putAdvancedOption(SdkAdvancedClientOption.SIGNER, new RemoteSigner(properties));
      builder.overrideConfiguration((ClientOverrideConfiguration) changed.build());
    } else {
      builder.credentialsProvider(keys(aws, files));
    }
    return builder.build();
  }

  private AwsCredentialsProvider keys(AwsClientProperties aws, S3FileIOProperties files) {
    String renewal = properties.get(StoreSettings.RENEWAL);
    if (renewal != null && !renewal.isEmpty()) return new RenewedKeys(properties);
    return aws.credentialsProvider(files.accessKeyId(), files.secretAccessKey(), files.sessionToken());
  }

  public S3AsyncClient s3Async() {
    throw new UnsupportedOperationException("files are read and written by the other client");
  }
}
