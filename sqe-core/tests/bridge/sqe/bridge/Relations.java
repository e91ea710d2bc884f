package sqe.bridge;

import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.types.DataTypes;
import scala.Option;
import sqe.bridge.plan.Trees;

/** Tables as they stand in an analysed plan, with a number `k`, a text `name` and a list `xs`. */
public final class Relations {
  private record Stub(String name) implements Table {
    public Column[] columns() {
      return new Column[] {
        Column.create("k", DataTypes.IntegerType),
        Column.create("name", DataTypes.StringType),
        Column.create("xs", DataTypes.createArrayType(DataTypes.IntegerType))
      };
    }

    public Set<TableCapability> capabilities() {
      return Set.of(TableCapability.BATCH_READ);
    }
  }

  private Relations() {}

  public static DataSourceV2Relation named(String name) {
    Identifier identifier = Identifier.of(new String[] {"hr"}, name);
    return DataSourceV2Relation.create(new Stub(name), Option.empty(), Option.apply(identifier));
  }

  public static AttributeReference column(DataSourceV2Relation relation, String name) {
    return Trees.list(relation.output()).stream().filter(each -> each.name().equals(name)).findFirst().orElseThrow();
  }
}
