package sqe.bridge.secure;

import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.Cast$;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.NumericType;

/** Casts that fail for no value: what Spark puts between a column and a constant of another width. */
public final class SafeCasts {
  private SafeCasts() {}

  /**
   * Whether every number of the one type is one of the other. Spark's own word for it is wider: a date far enough away
   * overflows as a timestamp.
   */
  public static boolean widens(Cast cast) {
    DataType from = cast.child().dataType();
    return from instanceof NumericType && cast.dataType() instanceof NumericType
        && Cast$.MODULE$.canUpCast(from, cast.dataType());
  }

  /** Whether a cast fails for no row: it widens, or it is of a constant and does not fail now. */
  static boolean neverFails(Cast cast) {
    if (cast.child() instanceof Literal) return cast.resolved() && succeeds(cast);
    return widens(cast);
  }

  private static boolean succeeds(Expression constant) {
    try {
      constant.eval(null);
      return true;
    } catch (Exception fails) {
      return false;
    }
  }
}
