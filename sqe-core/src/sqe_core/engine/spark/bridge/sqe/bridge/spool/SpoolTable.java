package sqe.bridge.spool;

import com.fasterxml.jackson.databind.JsonNode;
import java.nio.file.Paths;
import java.util.Collections;
import java.util.Set;
import org.apache.arrow.vector.types.pojo.Schema;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.connector.catalog.CatalogV2Util;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.ArrowUtils;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
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
    SpoolReader first = new SpoolReader(Spools.open(files[0]));
    Schema schema;
    try {
      schema = first.schema();
    } finally {
      first.close();
    }
    SpoolTable table = new SpoolTable(request.get("token").asText(), files, ArrowUtils.fromArrowSchema(schema));
    return DataSourceV2Relation.create(table, Option.empty(), Option.empty());
  }

  public String name() {
    return "rows";
  }

  public StructType schema() {
    return schema;
  }

  public Column[] columns() {
    return CatalogV2Util.structTypeToV2Columns(schema);
  }

  public Set capabilities() {
    return Collections.singleton(TableCapability.BATCH_READ);
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
      InputPartition[] parts = new InputPartition[files.length];
      for (int i = 0; i < files.length; i++) parts[i] = new SpoolPart(files[i], Spools.address(Paths.get(files[i])));
      return parts;
    }

    public PartitionReaderFactory createReaderFactory() {
      return new SpoolReaders();
    }
  }
}
