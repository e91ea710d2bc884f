package sqe.bridge.catalog;

import java.lang.reflect.Field;
import org.apache.spark.sql.connector.catalog.CatalogManager;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;

/** Forgets one loaded catalog of a session, which Spark can only do for all of them at once. */
public final class LoadedCatalogs {
  private LoadedCatalogs() {}

  public static CatalogPlugin remove(CatalogManager manager, String name) {
    try {
      Field field = CatalogManager.class.getDeclaredField("catalogs");
      field.setAccessible(true);
      synchronized (manager) {
        scala.Option removed = ((scala.collection.mutable.HashMap) field.get(manager)).remove(name);
        return removed.isDefined() ? (CatalogPlugin) removed.get() : null;
      }
    } catch (ReflectiveOperationException otherSpark) {
      manager.reset();
      return null;
    }
  }
}
