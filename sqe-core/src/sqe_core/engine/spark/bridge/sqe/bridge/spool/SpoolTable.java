package sqe.bridge.spool;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Set;
import org.apache.spark.SparkEnv;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.read.*;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.ArrowUtils;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.unsafe.Platform;
import scala.Option;
import sqe.bridge.Json;

/**
 * Rows of a client that SQE wrote to files of its own, each an Arrow stream, as a table that one statement reads. No
 * catalog knows it and no name leads to it: it comes into a plan only by a rewrite (ENF-11).
 */
public final class SpoolTable implements SupportsRead {
  /** Tells the verifier which rows these are. */
  public final String token;

  private final String[] files;
  private final StructType schema;

  private SpoolTable(String token, String[] files, StructType schema) {
    this.token = token;
    this.files = files;
    this.schema = schema;
  }

  public static LogicalPlan relation(JsonNode request) throws Exception {
    String[] files = Json.textArray(request.get("files"));
    try (SpoolReader first = new SpoolReader(Spools.open(files[0]))) {
      SpoolTable table = new SpoolTable(request.get("token").asText(), files, ArrowUtils.fromArrowSchema(first.schema()));
      return DataSourceV2Relation.create(table, Option.empty(), Option.empty());
    }
  }

  public String name() {
    return "rows";
  }

  public StructType schema() {
    return schema;
  }

  public Set<TableCapability> capabilities() {
    return Set.of(TableCapability.BATCH_READ);
  }

  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
    return new Rows(schema, files);
  }

  /** A file is a partition. */
  private record Rows(StructType schema, String[] files) implements ScanBuilder, Scan, Batch {
    public Scan build() {
      return this;
    }

    public StructType readSchema() {
      return schema;
    }

    public String description() {
      return "rows of the client";
    }

    public Batch toBatch() {
      return this;
    }

    public InputPartition[] planInputPartitions() {
      return Arrays.stream(files).map(file -> new Part(file, Spools.address(Path.of(file)))).toArray(InputPartition[]::new);
    }

    public PartitionReaderFactory createReaderFactory() {
      return new Readers();
    }
  }

  /** One file: where the driver has it, and where executors in other JVMs get it, if there are any. */
  private record Part(String path, String address) implements InputPartition {}

  /** Opens files where the tasks run. */
  private static final class Readers implements PartitionReaderFactory {
    public boolean supportColumnarReads(InputPartition part) {
      return true;
    }

    public PartitionReader<InternalRow> createReader(InputPartition part) {
      throw new UnsupportedOperationException("spooled rows are read by the column");
    }

    public PartitionReader<ColumnarBatch> createColumnarReader(InputPartition given) {
      Part part = (Part) given;
      try {
        if (part.address == null) return new SpoolReader(Spools.open(part.path));
        return new SpoolReader(SparkEnv.get().rpcEnv().openChannel(part.address));
      } catch (IOException error) {
        Platform.throwException(error);
        return null;
      }
    }
  }
}
