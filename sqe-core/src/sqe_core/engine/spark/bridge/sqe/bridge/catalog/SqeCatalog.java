package sqe.bridge.catalog;

import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.MetadataTableType;
import org.apache.iceberg.MetadataTableUtils;
import org.apache.iceberg.PartitionSpec;
import org.apache.iceberg.Schema;
import org.apache.iceberg.catalog.Catalog;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.exceptions.AlreadyExistsException;
import org.apache.iceberg.spark.Spark3Util;
import org.apache.iceberg.spark.SparkCatalog;
import org.apache.iceberg.spark.source.SparkTable;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.analysis.TableAlreadyExistsException;
import org.apache.spark.sql.connector.catalog.*;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import sqe.bridge.secure.VisibleRowsTable;
import sqe.bridge.time.PlainTypes;
import sqe.bridge.time.TimesTable;

/**
 * Iceberg's Spark catalog, and what it lacks: a name of its own apart from Spark's alias, tables that stay the same
 * within a statement, DEFAULT in CREATE TABLE, and times and nanoseconds as column types.
 */
public class SqeCatalog extends SparkCatalog {
  /** JdbcCatalog writes its name into every row; the alias is new in each session. */
  public static final String NAME_OPTION = "sqe.catalog-name";

  private static final String NOT_NULL_ROWS = "sqe.not.null.rows"; // engine/port.py

  /** Begins the last part of a metadata table's name. Users cannot write it, and a plain name is never such a table. */
  static final String METADATA_PREFIX = "_sqe_metadata_";

  /** The last part of the name under which a user changes the rows that they see of a table. */
  public static final String VISIBLE_ROWS = "_sqe_visible_rows";

  protected Catalog buildIcebergCatalog(String alias, CaseInsensitiveStringMap options) {
    String name = options.get(NAME_OPTION);
    return TableScope.wrap(alias, super.buildIcebergCatalog(name == null ? alias : name, options));
  }

  public Set<TableCatalogCapability> capabilities() {
    return Set.of(TableCatalogCapability.SUPPORT_COLUMN_DEFAULT_VALUE);
  }

  public Table loadTable(Identifier identifier) throws NoSuchTableException {
    if (identifier.name().startsWith(METADATA_PREFIX)) return metadataTable(identifier);
    if (identifier.name().equals(VISIBLE_ROWS)) return visibleRows(identifier.namespace());
    return readable(super.loadTable(identifier));
  }

  /** The name of the table itself. */
  public static Identifier real(Identifier identifier) {
    if (!identifier.name().equals(VISIBLE_ROWS)) return identifier;
    String[] name = identifier.namespace();
    return Identifier.of(Arrays.copyOf(name, name.length - 1), name[name.length - 1]);
  }

  private Table visibleRows(String[] name) throws NoSuchTableException {
    Table table = loadTable(real(Identifier.of(name, VISIBLE_ROWS)));
    return table instanceof TimesTable ? table : new VisibleRowsTable(((SparkTable) table).table(), true);
  }

  private Table metadataTable(Identifier identifier) throws NoSuchTableException {
    MetadataTableType type = MetadataTableType.from(identifier.name().substring(METADATA_PREFIX.length()));
    if (type == null || identifier.namespace().length == 0) throw new NoSuchTableException(identifier);
    try {
      org.apache.iceberg.Table table = icebergCatalog().loadTable(TableIdentifier.of(identifier.namespace()));
      return readable(new SparkTable(MetadataTableUtils.createMetadataTableInstance(table, type)));
    } catch (org.apache.iceberg.exceptions.NoSuchTableException missing) {
      throw new NoSuchTableException(identifier);
    }
  }

  public Table loadTable(Identifier identifier, String version) throws NoSuchTableException {
    return readable(super.loadTable(identifier, version));
  }

  public Table loadTable(Identifier identifier, long timestamp) throws NoSuchTableException {
    return readable(super.loadTable(identifier, timestamp));
  }

  /** A table that Spark's side of Iceberg would refuse as a whole, in a form that can be read. */
  private static Table readable(Table loaded) {
    if (!(loaded instanceof SparkTable table) || !(table.table() instanceof BaseTable)) return loaded;
    Schema schema = IcebergFields.schema(table);
    if (PlainTypes.areAll(schema)) return table;
    BaseTable plain = PlainTypes.over(table.table());
    SparkTable chosen =
        table.branch() == null
            ? SparkTable.create(plain, IcebergFields.timeTravel(table))
            : SparkTable.create(plain, table.branch());
    return new TimesTable(table.table(), schema, chosen);
  }

  /** Of rows that a client brings, what it says to be never NULL is kept; what a query computes may be. */
  public boolean useNullableQuerySchema() {
    return !SQLConf.get().contains(NOT_NULL_ROWS);
  }

  public String toString() {
    return name();
  }

  public Table createTable(Identifier identifier, TableInfo info) throws TableAlreadyExistsException {
    if (!isOurs(info)) return super.createTable(identifier, info);
    try {
      return readable(new SparkTable(builder(identifier, info).create()));
    } catch (AlreadyExistsException exists) {
      throw new TableAlreadyExistsException(identifier);
    }
  }

  public StagedTable stageCreate(Identifier identifier, TableInfo info) throws TableAlreadyExistsException {
    if (!isOurs(info)) return super.stageCreate(identifier, info);
    try {
      return TimesTable.staged(builder(identifier, info).createTransaction());
    } catch (AlreadyExistsException exists) {
      throw new TableAlreadyExistsException(identifier);
    }
  }

  public StagedTable stageReplace(Identifier identifier, TableInfo info) throws NoSuchTableException {
    if (!isOurs(info)) return super.stageReplace(identifier, info);
    try {
      return TimesTable.staged(builder(identifier, info).replaceTransaction());
    } catch (org.apache.iceberg.exceptions.NoSuchTableException missing) {
      throw new NoSuchTableException(identifier);
    }
  }

  public StagedTable stageCreateOrReplace(Identifier identifier, TableInfo info) {
    if (!isOurs(info)) return super.stageCreateOrReplace(identifier, info);
    return TimesTable.staged(builder(identifier, info).createOrReplaceTransaction());
  }

  /** Whether it says of a table what Spark's side of Iceberg does not know. */
  private static boolean isOurs(TableInfo info) {
    return NewColumns.needed(info) || info.properties().containsKey(SortOrders.PROPERTY);
  }

  private Catalog.TableBuilder builder(Identifier identifier, TableInfo info) {
    Schema schema = NewColumns.schema(info);
    PartitionSpec spec = Spark3Util.toPartitionSpec(schema, info.partitions());
    Map<String, String> properties = new HashMap<>(Spark3Util.rebuildCreateProperties(info.properties()));
    properties.remove(NewColumns.NANOSECONDS);
    String sorted = properties.remove(SortOrders.PROPERTY);
    if (NewColumns.needFormat3(info)) ColumnDefaults.requireFormat(properties);
    return icebergCatalog()
        .buildTable(buildIdentifier(identifier), schema)
        .withPartitionSpec(spec)
        .withSortOrder(SortOrders.read(schema, sorted))
        .withLocation(info.properties().get("location"))
        .withProperties(properties);
  }
}
