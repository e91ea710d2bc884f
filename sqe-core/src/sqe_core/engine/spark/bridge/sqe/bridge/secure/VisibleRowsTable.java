package sqe.bridge.secure;

import java.util.Arrays;
import java.util.Set;
import org.apache.iceberg.RowLevelOperationMode;
import org.apache.iceberg.TableUtil;
import org.apache.iceberg.common.DynFields;
import org.apache.iceberg.spark.source.SparkTable;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.write.RowLevelOperationBuilder;
import org.apache.spark.sql.connector.write.RowLevelOperationInfo;
import sqe.bridge.catalog.Operations;

/**
 * A table of which a user changes the rows that they see. Whatever the table says, its files are left as they are and the
 * rows that go are listed beside them: a file that is written anew would have to be given the hidden rows again, and a
 * plan that reads those is no plan that the user's conditions may stand in.
 */
public final class VisibleRowsTable extends SparkTable {
  /** What Iceberg finds true of no NULL but where SQL does: less than and not equal are true of a NULL there. */
  private static final Set<String> SAME_OF_NULL =
      Set.of("=", "IN", "IS_NULL", "IS_NOT_NULL", "AND", "OR", "ALWAYS_TRUE", "ALWAYS_FALSE");

  private final boolean dropsFiles;

  public VisibleRowsTable(org.apache.iceberg.Table table, boolean dropsFiles) {
    super(table);
    this.dropsFiles = dropsFiles;
  }

  /** Whether a DELETE may drop whole files by its condition alone. */
  public boolean canDeleteWhere(Predicate[] predicates) {
    if (!dropsFiles) return false;
    for (Predicate each : predicates) if (!isSameOfNull(each)) return false;
    return super.canDeleteWhere(predicates);
  }

  private static boolean isSameOfNull(Expression expression) {
    if (!(expression instanceof Predicate predicate)) return true; // what is compared
    return SAME_OF_NULL.contains(predicate.name()) && Arrays.stream(predicate.children()).allMatch(VisibleRowsTable::isSameOfNull);
  }

  public RowLevelOperationBuilder newRowLevelOperationBuilder(RowLevelOperationInfo info) {
    if (TableUtil.formatVersion(table()) < 2)
      Operations.refuse(this, info.command() + " of the rows that you see while its format version is 1");
    RowLevelOperationBuilder builder = super.newRowLevelOperationBuilder(info);
    DynFields.builder().hiddenImpl(builder.getClass(), "mode").build(builder).set(RowLevelOperationMode.MERGE_ON_READ);
    return builder;
  }
}
