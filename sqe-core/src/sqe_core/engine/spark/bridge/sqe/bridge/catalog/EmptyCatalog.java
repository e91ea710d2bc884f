package sqe.bridge.catalog;

import java.util.Map;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** The current catalog of every session: it has nothing and takes nothing. */
public class EmptyCatalog implements TableCatalog {
  public static final String NAME = "_sqe_none";

  public void initialize(String name, CaseInsensitiveStringMap options) {}

  public String name() {
    return NAME;
  }

  public Identifier[] listTables(String[] namespace) {
    return new Identifier[0];
  }

  public Table loadTable(Identifier identifier) throws NoSuchTableException {
    throw new NoSuchTableException(identifier);
  }

  public Table createTable(Identifier identifier, StructType schema, Transform[] transforms, Map<String, String> properties) {
    throw new UnsupportedOperationException("no tables here");
  }

  public Table alterTable(Identifier identifier, TableChange[] changes) throws NoSuchTableException {
    throw new NoSuchTableException(identifier);
  }

  public boolean dropTable(Identifier identifier) {
    return false;
  }

  public void renameTable(Identifier from, Identifier to) throws NoSuchTableException {
    throw new NoSuchTableException(from);
  }
}
