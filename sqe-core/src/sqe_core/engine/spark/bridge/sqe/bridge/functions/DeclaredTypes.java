package sqe.bridge.functions;

import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.trees.TreeNodeTag;

/** Types that a statement declares and Spark has no word for: they are told with results, and change nothing else. */
public final class DeclaredTypes {
  private static final TreeNodeTag<String> TAG = new TreeNodeTag<>("sqe.declared");

  private DeclaredTypes() {}

  static Expression declare(Expression value, String type) {
    // A copy: a name of a column is the same object as the column, and that declares nothing.
    Expression declared = (Expression) value.clone();
    declared.setTagValue(TAG, type);
    return declared;
  }

  /** The type that an expression declares; null for most. */
  public static String of(Expression value) {
    return value.getTagValue(TAG).getOrElse(() -> null);
  }
}
