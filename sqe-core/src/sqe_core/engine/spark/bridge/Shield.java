package sqe.bridge;

import java.util.ArrayList;
import org.apache.spark.sql.catalyst.expressions.ConditionalExpression;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.TryEval;
import scala.collection.immutable.Seq;

/**
 * The guard of a policy's expression: an error in it is NULL (POL-11). Spark knows it as something that may not be
 * evaluated at all, so that no part of it is taken out of the guard: neither when a statement's constant stands in it and
 * it is folded, nor when it holds what occurs twice.
 */
public final class Shield extends TryEval implements ConditionalExpression {
  public Shield(Expression child) {
    super(child);
  }

  public boolean foldable() {
    return false;
  }

  public Seq alwaysEvaluatedInputs() {
    return Trees.seq(new ArrayList());
  }

  public ConditionalExpression withNewAlwaysEvaluatedInputs(Seq inputs) {
    return this;
  }

  public Seq branchGroups() {
    return Trees.seq(new ArrayList());
  }

  public Expression withNewChildInternal(Expression child) {
    return new Shield(child);
  }
}
