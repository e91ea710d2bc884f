package sqe.bridge.catalog;

import org.apache.iceberg.common.DynFields;
import org.apache.spark.sql.connector.catalog.CatalogManager;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import scala.Option;
import scala.collection.mutable.HashMap;

/** Forgets one loaded catalog of a session, which Spark can only do for all of them at once. */
public final class LoadedCatalogs {
  private static final DynFields.UnboundField<HashMap<String, CatalogPlugin>> LOADED =
      DynFields.builder().hiddenImpl(CatalogManager.class, "catalogs").build();

  private LoadedCatalogs() {}

  /** The catalog that is forgotten; null when it was not loaded. */
  public static CatalogPlugin remove(CatalogManager manager, String name) {
    synchronized (manager) {
      Option<CatalogPlugin> removed = LOADED.get(manager).remove(name);
      return removed.isDefined() ? removed.get() : null;
    }
  }
}
