package sqe.bridge.catalog;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.Closeable;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.iceberg.expressions.Term;
import org.apache.iceberg.expressions.Expressions;
import org.apache.iceberg.UpdatePartitionSpec;
import org.apache.iceberg.ReplaceSortOrder;
import org.apache.iceberg.PartitionField;
import org.apache.iceberg.Schema;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableUtil;
import org.apache.iceberg.Transaction;
import org.apache.iceberg.UpdateSchema;
import org.apache.iceberg.catalog.Catalog;
import org.apache.iceberg.catalog.Namespace;
import org.apache.iceberg.catalog.SupportsNamespaces;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.catalog.ViewCatalog;
import org.apache.iceberg.exceptions.ForbiddenException;
import org.apache.iceberg.exceptions.NoSuchNamespaceException;
import org.apache.iceberg.exceptions.NoSuchTableException;
import org.apache.iceberg.exceptions.NoSuchViewException;
import org.apache.iceberg.expressions.Literal;
import org.apache.iceberg.spark.SparkSchemaUtil;
import org.apache.iceberg.types.Type;
import org.apache.iceberg.types.TypeUtil;
import org.apache.iceberg.types.Types;
import org.apache.iceberg.view.UpdateViewProperties;
import org.apache.iceberg.view.ViewBuilder;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.EvalMode;
import org.apache.spark.sql.types.DataType;
import scala.Option;
import sqe.bridge.BridgeException;
import sqe.bridge.Json;
import sqe.bridge.plan.Literals;
import sqe.bridge.types.IcebergTypes;

/** The metadata of one mounted catalog, and its DDL that Spark's SQL cannot say. Names are JSON arrays of parts. */
public final class Catalogs {
  private static final String QUERY_COLUMNS = "spark.query-column-names"; // Spark binds a view's columns with it

  /** Where a table keeps its files; a copy of a table must not share the place. */
  private static final Set<String> PLACES =
      Set.of("write.data.path", "write.metadata.path", "write.object-storage.path", "write.folder-storage.path");

  private static final int MOST_NAMESPACES = 100000;
  private static final int DEEPEST_NAMESPACE = 100;

  private final Catalog catalog;

  public Catalogs(SqeCatalog mounted) {
    this.catalog = mounted.icebergCatalog();
  }

  public static void close(Catalog catalog) {
    try {
      if (TableScope.unwrap(catalog) instanceof Closeable own) own.close();
    } catch (IOException ignored) {
      // It is not used any more.
    }
  }

  private static Namespace namespace(String json) {
    return Namespace.of(Json.textArray(Json.read(json)));
  }

  private static TableIdentifier identifier(String json, String name) {
    return TableIdentifier.of(namespace(json), name);
  }

  private SupportsNamespaces namespaces() {
    if (catalog instanceof SupportsNamespaces namespaces) return namespaces;
    throw new BridgeException("SQE_CATALOG_WITHOUT_NAMESPACES", catalog.name());
  }

  private ViewCatalog views() {
    if (catalog instanceof ViewCatalog viewCatalog) return viewCatalog;
    throw new BridgeException("SQE_CATALOG_WITHOUT_VIEWS", catalog.name());
  }

  // ------------------------------------------------------------------ namespaces

  public String listNamespaces(String parent) {
    return levels(namespaces().listNamespaces(namespace(parent)));
  }

  /** The namespaces of every level, in one round trip. */
  public String allNamespaces() {
    List<Namespace> found = new ArrayList<>();
    below(Namespace.empty(), found);
    return levels(found);
  }

  private static String levels(List<Namespace> namespaces) {
    StringBuilder out = new StringBuilder();
    Json.array(out, namespaces, each -> Json.strings(out, each.levels()));
    return out.toString();
  }

  private void below(Namespace parent, List<Namespace> found) {
    List<Namespace> children;
    try {
      children = namespaces().listNamespaces(parent);
    } catch (NoSuchNamespaceException gone) {
      if (parent.isEmpty()) throw gone;
      return; // somebody dropped it meanwhile
    } catch (ForbiddenException denied) {
      if (parent.isEmpty()) throw denied;
      return; // its name may be known, what is in it may not
    }
    for (Namespace namespace : children) {
      // A catalog that answers with more than it was asked for must not make this run in circles, or for ever.
      if (!isChild(namespace, parent)) continue;
      if (namespace.length() > DEEPEST_NAMESPACE || found.size() >= MOST_NAMESPACES)
        throw new BridgeException("SQE_CATALOG_ENDLESS", "the catalog has more namespaces than are listed");
      found.add(namespace);
      below(namespace, found);
    }
  }

  private static boolean isChild(Namespace namespace, Namespace parent) {
    return namespace.length() == parent.length() + 1
        && Arrays.asList(namespace.levels()).subList(0, parent.length()).equals(Arrays.asList(parent.levels()));
  }

  public String loadNamespace(String name) {
    StringBuilder out = new StringBuilder();
    Json.map(out, namespaces().loadNamespaceMetadata(namespace(name)));
    return out.toString();
  }

  public void createNamespace(String name, String properties) {
    namespaces().createNamespace(namespace(name), Json.textMap(Json.read(properties)));
  }

  public void setNamespaceProperties(String name, String properties) {
    Map<String, String> wanted = Json.textMap(Json.read(properties));
    Set<String> removed = new HashSet<>(wanted.keySet());
    removed.removeIf(key -> wanted.get(key) != null);
    wanted.keySet().removeAll(removed);
    if (!wanted.isEmpty()) namespaces().setProperties(namespace(name), wanted);
    if (!removed.isEmpty()) namespaces().removeProperties(namespace(name), removed);
  }

  public void dropNamespace(String name) {
    Namespace namespace = namespace(name);
    if (!namespaces().dropNamespace(namespace))
      throw new NoSuchNamespaceException("Namespace does not exist: %s", namespace);
  }

  // ------------------------------------------------------------------ tables

  public String listTables(String namespace) {
    List<TableIdentifier> found = catalog.listTables(namespace(namespace));
    if (found.isEmpty()) requireExists(namespace(namespace));
    return names(found);
  }

  /** Tables and views, in one round trip. */
  public String listObjects(String namespace) {
    List<TableIdentifier> tables = catalog.listTables(namespace(namespace));
    List<TableIdentifier> views = viewsIn(namespace(namespace));
    if (tables.isEmpty() && views.isEmpty()) requireExists(namespace(namespace));
    return "[" + names(tables) + "," + names(views) + "]";
  }

  /** Some catalogs, Hive's among them, list nothing for a namespace that they do not have. */
  private void requireExists(Namespace namespace) {
    if (catalog instanceof SupportsNamespaces && !namespaces().namespaceExists(namespace))
      throw new NoSuchNamespaceException("Namespace does not exist: %s", namespace);
  }

  private static String names(List<TableIdentifier> identifiers) {
    StringBuilder out = new StringBuilder();
    Json.array(out, identifiers, each -> Json.string(out, each.name()));
    return out.toString();
  }

  public String loadTable(String namespace, String name) {
    return TableJson.table(catalog.loadTable(identifier(namespace, name)));
  }

  public String tableStatistics(String namespace, String name) throws IOException {
    return TableStatistics.json(catalog.loadTable(identifier(namespace, name)));
  }

  public void dropTable(String namespace, String name, boolean purge) {
    TableIdentifier identifier = identifier(namespace, name);
    if (!catalog.dropTable(identifier, purge))
      throw new NoSuchTableException("Table does not exist: %s", identifier);
  }

  public void renameTable(String fromNamespace, String from, String toNamespace, String to) {
    catalog.renameTable(identifier(fromNamespace, from), identifier(toNamespace, to));
  }

  public void createTableLike(String namespace, String name, String fromNamespace, String from, String properties) {
    Table source = catalog.loadTable(identifier(fromNamespace, from));
    Map<String, String> all = new LinkedHashMap<>(source.properties());
    all.keySet().removeAll(PLACES);
    all.put("format-version", String.valueOf(TableUtil.formatVersion(source)));
    all.putAll(Json.textMap(Json.read(properties)));
    catalog
        .buildTable(identifier(namespace, name), source.schema())
        .withPartitionSpec(source.spec())
        .withSortOrder(source.sortOrder())
        .withProperties(all)
        .create();
  }

  /**
   * Partitions and sorts a table otherwise from now on, with one commit. `partitioning` is a list of [transform, column,
   * number or null], `sorted` is as `SortOrders` reads it; null leaves either as it is.
   */
  public void setLayout(String namespace, String name, String partitioning, String sorted) {
    Table table = catalog.loadTable(identifier(namespace, name));
    Transaction transaction = table.newTransaction();
    if (partitioning != null) {
      UpdatePartitionSpec update = transaction.updateSpec().caseSensitive(false);
      for (PartitionField field : table.spec().fields()) if (!field.transform().isVoid()) update.removeField(field.name());
      for (JsonNode field : Json.read(partitioning)) update.addField(term(field));
      update.commit();
    }
    if (sorted != null) {
      ReplaceSortOrder order = transaction.replaceSortOrder().caseSensitive(false);
      SortOrders.write(order, table.schema(), sorted);
      order.commit();
    }
    transaction.commitTransaction();
  }

  private static Term term(JsonNode field) {
    String column = field.get(1).asText();
    return switch (field.get(0).asText()) {
      case "year" -> Expressions.year(column);
      case "month" -> Expressions.month(column);
      case "day" -> Expressions.day(column);
      case "hour" -> Expressions.hour(column);
      case "bucket" -> Expressions.bucket(column, field.get(2).asInt());
      case "truncate" -> Expressions.truncate(column, field.get(2).asInt());
      default -> Expressions.ref(column);
    };
  }

  /** Adds a column with a default; `value` is null or a literal in the form of `Literals`. */
  public void addColumn(String namespace, String name, String column, String type, String value, String comment) {
    Table table = catalog.loadTable(identifier(namespace, name));
    Type icebergType = IcebergTypes.parse(type);
    JsonNode spec = Json.read(value);
    Literal<?> literal = spec.isNull() ? null : defaultValue(spec, type, icebergType);
    Transaction transaction = table.newTransaction();
    boolean needsFormat3 = literal != null || icebergType instanceof Types.TimestampNanoType;
    if (needsFormat3 && TableUtil.formatVersion(table) < 3)
      transaction.updateProperties().set("format-version", "3").commit();
    UpdateSchema update = transaction.updateSchema();
    if (literal == null) update.addColumn(column, icebergType, comment);
    else update.addColumn(column, icebergType, comment, literal);
    update.commit();
    transaction.commitTransaction();
  }

  /** The default in the column's type, converted as Spark would on INSERT. */
  private static Literal<?> defaultValue(JsonNode spec, String type, Type icebergType) {
    var given = Literals.read(spec);
    DataType wanted = SparkSchemaUtil.convert(icebergType);
    if (given.dataType().sameType(wanted)) return ColumnDefaults.literal(given.value(), icebergType);
    if (!Cast.canANSIStoreAssign(given.dataType(), wanted)) throw new BridgeException("SQE_DEFAULT_TYPE", type);
    return ColumnDefaults.literal(new Cast(given, wanted, Option.apply("UTC"), EvalMode.ANSI()).eval(null), icebergType);
  }

  // ------------------------------------------------------------------ views

  public String listViews(String namespace) {
    List<TableIdentifier> found = viewsIn(namespace(namespace));
    if (found.isEmpty()) requireExists(namespace(namespace));
    return names(found);
  }

  private List<TableIdentifier> viewsIn(Namespace namespace) {
    return catalog instanceof ViewCatalog ? views().listViews(namespace) : List.of();
  }

  public String loadView(String namespace, String name) {
    return TableJson.view(views().loadView(identifier(namespace, name)));
  }

  /** `request`: columns (name, type, nullable), comments, representations, properties, default catalog, namespace. */
  public void createView(String namespace, String name, String request) {
    JsonNode view = Json.read(request);
    Map<String, String> comments = Json.textMap(view.get("comments"));
    List<Types.NestedField> columns = new ArrayList<>();
    AtomicInteger last = new AtomicInteger(view.get("columns").size()); // of fields inside of types, above the columns' own
    for (JsonNode column : view.get("columns")) {
      String columnName = column.get("name").asText();
      Type type = TypeUtil.assignFreshIds(IcebergTypes.parse(column.get("type").asText()), last::incrementAndGet);
      boolean nullable = column.get("nullable").asBoolean();
      columns.add(Types.NestedField.of(columns.size() + 1, nullable, columnName, type, comments.get(columnName)));
    }
    ViewBuilder builder = views().buildView(identifier(namespace, name));
    builder.withSchema(new Schema(columns));
    builder.withDefaultNamespace(Namespace.of(Json.textArray(view.get("default_namespace"))));
    if (!view.get("default_catalog").isNull()) builder.withDefaultCatalog(view.get("default_catalog").asText());
    Map<String, String> representations = Json.textMap(view.get("representations"));
    representations.forEach(builder::withQuery);
    builder.withProperties(Json.textMap(view.get("properties")));
    String joined = String.join(",", columns.stream().map(Types.NestedField::name).toList());
    boolean separable = joined.split(",", -1).length == columns.size();
    if (representations.containsKey("spark") && separable) builder.withProperty(QUERY_COLUMNS, joined);
    if (view.get("replace").asBoolean()) builder.createOrReplace();
    else builder.create();
  }

  public void dropView(String namespace, String name) {
    TableIdentifier identifier = identifier(namespace, name);
    if (!views().dropView(identifier))
      throw new NoSuchViewException("View does not exist: %s", identifier);
  }

  public void renameView(String fromNamespace, String from, String toNamespace, String to) {
    views().renameView(identifier(fromNamespace, from), identifier(toNamespace, to));
  }

  public void setViewProperties(String namespace, String name, String properties) {
    UpdateViewProperties update = views().loadView(identifier(namespace, name)).updateProperties();
    Json.textMap(Json.read(properties))
        .forEach(
            (key, value) -> {
              if (value == null) update.remove(key);
              else update.set(key, value);
            });
    update.commit();
  }
}
