package sqe.bridge.catalog;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.Base64;
import org.apache.iceberg.NullOrder;
import org.apache.iceberg.Schema;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.SortField;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableUtil;
import org.apache.iceberg.view.SQLViewRepresentation;
import org.apache.iceberg.view.View;
import org.apache.iceberg.view.ViewRepresentation;
import sqe.bridge.Json;
import sqe.bridge.types.ArrowTypes;
import sqe.bridge.types.IcebergTypes;
import sqe.bridge.types.Output;

/** Tables, snapshots and views as JSON. */
final class TableJson {
  private TableJson() {}

  static String table(Table table) {
    StringBuilder out = new StringBuilder("{");
    Json.member(out, "uuid", String.valueOf(table.uuid()));
    Json.member(out, "location", table.location());
    Json.member(out, "format_version").append(TableUtil.formatVersion(table));
    Json.member(out, "schema_id").append(table.schema().schemaId());
    columns(Json.member(out, "columns"), table.schema());
    arrow(out, table.schema());
    Json.array(
        Json.member(out, "partitioning"),
        table.spec().fields(),
        field -> Json.strings(out, field.name(), table.schema().findColumnName(field.sourceId()), field.transform().toString()));
    Json.array(Json.member(out, "sort_order"), table.sortOrder().fields(), field -> Json.string(out, sort(table.schema(), field)));
    Json.map(Json.member(out, "properties"), table.properties());
    Snapshot current = table.currentSnapshot();
    Json.member(out, "current_snapshot_id").append(current == null ? null : (Object) current.snapshotId());
    Json.array(
        Json.member(out, "refs"),
        table.refs().entrySet(),
        each -> {
          Json.string(out.append('['), each.getKey());
          out.append(each.getValue().isTag() ? ",\"tag\"," : ",\"branch\",").append(each.getValue().snapshotId()).append(']');
        });
    return out.append('}').toString();
  }

  private static void columns(StringBuilder out, Schema schema) {
    Json.array(
        out,
        schema.columns(),
        field -> {
          out.append('{');
          Json.member(out, "name", field.name());
          Json.member(out, "type", IcebergTypes.text(field.type()));
          Json.member(out, "nullable").append(field.isOptional());
          if (field.doc() != null) Json.member(out, "comment", field.doc());
          if (field.writeDefault() != null)
            Json.member(out, "default", IcebergTypes.sql(field.writeDefault(), field.type()));
          Json.member(out, "field_id").append(field.fieldId()).append('}');
        });
  }

  /** The columns' Arrow types as an IPC message; left out for types that Spark does not have. */
  private static void arrow(StringBuilder out, Schema schema) {
    try {
      Json.member(out, "arrow", Base64.getEncoder().encodeToString(Output.message(ArrowTypes.schema(schema, "UTC"))));
    } catch (UnsupportedOperationException unknown) {
      return;
    } catch (IOException impossible) {
      throw new UncheckedIOException(impossible);
    }
  }

  private static String sort(Schema schema, SortField field) {
    String column = schema.findColumnName(field.sourceId());
    String transform = field.transform().toString();
    int bracket = transform.indexOf('[');
    String term = column;
    if (bracket > 0)
      term = transform.substring(0, bracket) + "(" + transform.substring(bracket + 1, transform.length() - 1) + ", " + column + ")";
    else if (!field.transform().isIdentity()) term = transform + "(" + column + ")";
    return term + " " + field.direction() + (field.nullOrder() == NullOrder.NULLS_FIRST ? " NULLS FIRST" : " NULLS LAST");
  }

  static String view(View view) {
    StringBuilder out = new StringBuilder("{");
    Json.member(out, "uuid", String.valueOf(view.uuid()));
    columns(Json.member(out, "columns"), view.schema());
    arrow(out, view.schema());
    Json.member(out, "representations").append('{');
    for (ViewRepresentation each : view.currentVersion().representations())
      if (each instanceof SQLViewRepresentation sql) Json.member(out, sql.dialect(), sql.sql());
    out.append('}');
    Json.member(out, "default_catalog", view.currentVersion().defaultCatalog());
    Json.strings(Json.member(out, "default_namespace"), view.currentVersion().defaultNamespace().levels());
    Json.map(Json.member(out, "properties"), view.properties());
    return out.append('}').toString();
  }
}
