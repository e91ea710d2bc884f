package sqe.bridge.functions;

import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.trees.TreeNodeTag;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.TimestampType;

/** Types that a statement declares and Spark has no word for: they are told with results, and change nothing else. */
public final class DeclaredTypes {
  private static final TreeNodeTag<String> TAG = new TreeNodeTag<>("sqe.declared");
  private static final TreeNodeTag<String> ZONE = new TreeNodeTag<>("sqe.zone");
  private static final String SESSION = "session";

  private DeclaredTypes() {}

  /** An expression with the type that the second one says, if it says one, and the zone that the third one says. */
  static Expression declare(Expression... values) {
    // A copy: a name of a column is the same object as the column, and that declares nothing.
    Expression declared = (Expression) values[0].clone();
    String type = TypeClasses.literal(values[1]);
    if (!type.isEmpty()) declared.setTagValue(TAG, type);
    if (values.length > 2 && declared.dataType() instanceof TimestampType) {
      String zone = TypeClasses.literal(values[2]);
      declared.setTagValue(ZONE, zone.equals(SESSION) ? SQLConf.get().sessionLocalTimeZone() : zone);
    }
    return declared;
  }

  /** The type that an expression declares; null for most. */
  public static String of(Expression value) {
    return value.getTagValue(TAG).getOrElse(() -> null);
  }

  /** The time zone in which an expression is told; null for most. */
  public static String zoneOf(Expression value) {
    return value.getTagValue(ZONE).getOrElse(() -> null);
  }
}
