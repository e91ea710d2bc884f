package sqe.bridge.catalog;

import java.util.Map;
import org.apache.iceberg.StatisticsFile;
import org.apache.iceberg.Table;
import org.apache.iceberg.UpdateStatistics;
import org.apache.iceberg.actions.RewriteDataFiles;
import org.apache.iceberg.actions.SizeBasedFileRewritePlanner;
import org.apache.iceberg.spark.actions.DeleteOrphanFilesSparkAction;
import org.apache.iceberg.spark.actions.SparkActions;
import org.apache.iceberg.util.PropertyUtil;
import org.apache.iceberg.TableProperties;
import org.apache.spark.sql.classic.SparkSession;
import sqe.bridge.BridgeException;

/** Iceberg's own maintenance of one table. Each is one commit, or none. */
public final class Maintenance {
  private Maintenance() {}

  public static void run(SparkSession session, Table table, String action, Map<String, String> options) {
    SparkActions actions = SparkActions.get(session);
    switch (action) {
      case "optimize" -> optimize(actions, table, Long.parseLong(options.get("threshold")));
      case "optimize_manifests" -> actions.rewriteManifests(table).execute();
      case "expire_snapshots" -> actions.expireSnapshots(table).expireOlderThan(before(options)).execute();
      // Files are listed as the catalog's own access to them lists, which has the user's keys.
      case "remove_orphan_files" ->
          ((DeleteOrphanFilesSparkAction) actions.deleteOrphanFiles(table)).usePrefixListing(true).olderThan(before(options)).execute();
      case "drop_extended_stats" -> dropStatistics(table);
      default -> throw new BridgeException("SQE_BAD_REQUEST", action);
    }
  }

  private static long before(Map<String, String> options) {
    return System.currentTimeMillis() - Long.parseLong(options.get("retention"));
  }

  /** Files below the threshold become larger ones, and rows that were deleted in place go. */
  private static void optimize(SparkActions actions, Table table, long threshold) {
    long target =
        PropertyUtil.propertyAsLong(
            table.properties(), TableProperties.WRITE_TARGET_FILE_SIZE_BYTES, TableProperties.WRITE_TARGET_FILE_SIZE_BYTES_DEFAULT);
    RewriteDataFiles rewrite = actions.rewriteDataFiles(table);
    rewrite
        .option(SizeBasedFileRewritePlanner.TARGET_FILE_SIZE_BYTES, String.valueOf(target))
        .option(SizeBasedFileRewritePlanner.MIN_FILE_SIZE_BYTES, String.valueOf(Math.min(threshold, target - 1)))
        .option(SizeBasedFileRewritePlanner.MIN_INPUT_FILES, "2")
        .option("delete-file-threshold", "1");
    (table.sortOrder().isSorted() ? rewrite.sort() : rewrite.binPack()).execute();
  }

  private static void dropStatistics(Table table) {
    UpdateStatistics update = table.updateStatistics();
    for (StatisticsFile file : table.statisticsFiles()) update.removeStatistics(file.snapshotId());
    if (!table.statisticsFiles().isEmpty()) update.commit();
  }
}
