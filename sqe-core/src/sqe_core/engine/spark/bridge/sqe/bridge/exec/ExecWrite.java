package sqe.bridge.exec;

import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.SnapshotRef;
import org.apache.iceberg.Table;
import org.apache.iceberg.spark.CommitMetadata;
import org.apache.iceberg.spark.source.SparkTable;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.analysis.ResolvedIdentifier;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.*;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.write.RowLevelOperationTable;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;

/**
 * How many rows a statement wrote: read from the snapshot that it made, found by a property that carries the statement's
 * tag, so that nobody else's commit is counted. Null wherever the snapshot does not tell exactly.
 *
 * Two counts are taken before the write, at the snapshot it reads: an UPDATE that rewrites files (the summary shows all
 * rows of those files), and a DELETE from a table that has delete files (dropped files still count the rows that were
 * deleted before).
 */
final class ExecWrite {
  private static final String QUERY_ID = "sqe.query-id";
  private enum Kind {
    INSERT,
    DELETE,
    UPDATE,
    MERGE
  }

  private static final int DEPTH = 100;
  private static final String MERGED = "spark.merge-into.num-target-rows-";

  private final Kind kind;
  private final SparkTable target; // null when the statement creates the table
  private final ResolvedIdentifier created;
  private final LogicalPlan relation;
  private final Expression condition;
  private final Long scanned; // the snapshot that the statement reads
  private boolean metadataOnly;
  private Long counted;

  private ExecWrite(
      Kind kind, SparkTable target, ResolvedIdentifier created, LogicalPlan relation, Expression condition) {
    this.kind = kind;
    this.target = target;
    this.created = created;
    this.relation = relation;
    this.condition = condition;
    Snapshot base = target == null ? null : base();
    this.scanned = base == null ? null : base.snapshotId();
  }

  /** Null when the plan writes no rows, or not to an Iceberg table. */
  static ExecWrite of(LogicalPlan plan) {
    if (plan instanceof WithCTE with) return of(with.plan());
    if (plan instanceof CreateTableAsSelect select) return created(select.name());
    if (plan instanceof ReplaceTableAsSelect replace) return created(replace.name());
    if (plan instanceof DeleteFromTable delete) {
      LogicalPlan relation = delete.table();
      while (relation instanceof SubqueryAlias alias) relation = alias.child();
      SparkTable target = target(relation);
      return target == null ? null : new ExecWrite(Kind.DELETE, target, null, relation, delete.condition());
    }
    SparkTable target = plan instanceof V2WriteCommand write ? target((LogicalPlan) write.table()) : null;
    if (target == null) return null;
    if (!(plan instanceof RowLevelWrite write)) return new ExecWrite(Kind.INSERT, target, null, null, null);
    Kind kind = Kind.valueOf(write.operation().command().name());
    return new ExecWrite(kind, target, null, (LogicalPlan) write.originalTable(), write.condition());
  }

  private static ExecWrite created(LogicalPlan name) {
    return name instanceof ResolvedIdentifier created ? new ExecWrite(Kind.INSERT, null, created, null, null) : null;
  }

  private static SparkTable target(LogicalPlan relation) {
    if (!(relation instanceof DataSourceV2Relation known)) return null;
    Object table = known.table() instanceof RowLevelOperationTable operation ? operation.table() : known.table();
    return table instanceof SparkTable iceberg ? iceberg : null;
  }

  private Snapshot base() {
    Table table = target.table();
    return target.branch() == null ? table.currentSnapshot() : table.snapshot(target.branch());
  }

  // ---- before

  /** Whether the rows must be counted before; `optimized` shows how Spark is going to write. */
  boolean mustCount(LogicalPlan optimized) {
    if (condition == null || kind == Kind.INSERT || kind == Kind.MERGE) return false;
    metadataOnly = !(optimized instanceof RowLevelWrite);
    boolean untold =
        kind == Kind.UPDATE
            ? optimized instanceof ReplaceData
            : !(optimized instanceof WriteDelta) && mayHaveDeletes(base());
    return untold && condition.deterministic();
  }

  LogicalPlan countPlan(SparkSession session) {
    Dataset<Row> rows = Dataset.ofRows(session, new Filter(condition, relation));
    return rows.groupBy(new Column[0]).count().queryExecution().analyzed();
  }

  void counted(long rows) {
    counted = rows;
  }

  /** A summary without that total, as some writers leave it, may hide deletes. */
  private static boolean mayHaveDeletes(Snapshot snapshot) {
    return snapshot != null && !"0".equals(snapshot.summary().get("total-delete-files"));
  }

  // ---- after

  /** Runs with the statement's tag in the summary of every snapshot that is made. */
  static <T> T marked(String tag, Callable<T> body) throws Exception {
    return CommitMetadata.withCommitProperties(Map.of(QUERY_ID, tag), body, Exception.class);
  }

  Long affected(String tag) throws Exception {
    Table table = created == null ? target.table() : load();
    if (table == null) return null;
    Snapshot made = find(table, tag);
    if (made == null) {
      table.refresh();
      made = find(table, tag);
    }
    // Nothing was committed, since there was nothing to do.
    if (made == null) return 0L;
    Map<String, String> summary = made.summary();
    return switch (kind) {
      case INSERT -> (Long) number(summary, "added-records");
      case UPDATE -> updated(summary);
      case DELETE -> deleted(table, made, summary);
      case MERGE -> merged(summary);
    };
  }

  private Table load() throws Exception {
    Object loaded = ((TableCatalog) created.catalog()).loadTable(created.identifier());
    return loaded instanceof SparkTable iceberg ? iceberg.table() : null;
  }

  private Long updated(Map<String, String> summary) {
    if (counted != null) return counted;
    // Rewritten files hold rows that were not updated.
    return number(summary, "deleted-data-files") > 0 ? null : (Long) number(summary, "added-records");
  }

  private Long deleted(Table table, Snapshot made, Map<String, String> summary) {
    Snapshot parent = made.parentId() == null ? null : table.snapshot(made.parentId());
    if (counted != null) {
      // Dropping files happens at the newest snapshot, which may be a later one than was counted.
      boolean same = scanned != null && scanned.equals(made.parentId());
      return !metadataOnly || same ? counted : null;
    }
    long positions = number(summary, "added-position-deletes") - number(summary, "removed-position-deletes");
    if (number(summary, "deleted-data-files") == 0) return positions;
    if (mayHaveDeletes(parent)) return null;
    return number(summary, "deleted-records") - number(summary, "added-records") + positions;
  }

  private static Long merged(Map<String, String> summary) {
    long rows = 0;
    boolean found = false;
    for (String kind : List.of("inserted", "updated", "deleted")) {
      found |= summary.containsKey(MERGED + kind);
      rows += number(summary, MERGED + kind);
    }
    return found ? (Long) rows : null;
  }

  private static long number(Map<String, String> summary, String key) {
    return Long.parseLong(summary.getOrDefault(key, "0"));
  }

  /** Looks along the branches first, since a catalog may load the other snapshots only on demand. */
  private Snapshot find(Table table, String tag) {
    for (SnapshotRef ref : table.refs().values()) {
      Snapshot snapshot = table.snapshot(ref.snapshotId());
      for (int i = 0; i < DEPTH && snapshot != null; i++) {
        if (tag.equals(snapshot.summary().get(QUERY_ID))) return snapshot;
        Long parent = snapshot.parentId();
        snapshot = parent == null || parent.equals(scanned) ? null : table.snapshot(parent);
      }
    }
    // A write that is staged for publication is on no branch.
    for (Snapshot snapshot : table.snapshots()) {
      if (tag.equals(snapshot.summary().get(QUERY_ID))) return snapshot;
    }
    return null;
  }
}
