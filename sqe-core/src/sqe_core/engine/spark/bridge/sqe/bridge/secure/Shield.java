package sqe.bridge.secure;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.ConditionalExpression;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.TryEval;
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenContext;
import org.apache.spark.sql.catalyst.expressions.codegen.ExprCode;
import org.apache.spark.sql.types.DataType;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Seq;
import sqe.bridge.plan.Trees;

/**
 * The guard of a policy's expression: an error in it is NULL (POL-11). Spark knows it as something that may not be
 * evaluated at all, so that no part of it is taken out of the guard: neither when a statement's constant stands in it and
 * it is folded, nor when it holds what occurs twice. It works as Spark's TryEval does, which Java cannot extend: what
 * Scala's traits give it has signatures that no Java class may have.
 */
public final class Shield extends Expression implements ConditionalExpression, java.io.Serializable {
  private final Expression child;
  private final TryEval guard;

  public Shield(Expression child) {
    this.child = child;
    this.guard = new TryEval(child);
  }

  public boolean foldable() {
    return false;
  }

  public Seq<Expression> alwaysEvaluatedInputs() {
    return Trees.seq();
  }

  public ConditionalExpression withNewAlwaysEvaluatedInputs(Seq<Expression> inputs) {
    return this;
  }

  public Seq<Seq<Expression>> branchGroups() {
    return Trees.seq();
  }

  public boolean nullable() {
    return true;
  }

  public boolean nullIntolerant() {
    return guard.nullIntolerant();
  }

  public DataType dataType() {
    return child.dataType();
  }

  public Object eval(InternalRow row) {
    return guard.eval(row);
  }

  public ExprCode doGenCode(CodegenContext context, ExprCode code) {
    return guard.doGenCode(context, code);
  }

  public Seq<Expression> children() {
    return Trees.seq(child);
  }

  public Expression withNewChildrenInternal(IndexedSeq<Expression> children) {
    return new Shield(Trees.first(children));
  }

  public int productArity() {
    return 1;
  }

  public Object productElement(int place) {
    return child;
  }

  public String productElementName(int place) {
    return "child";
  }

  public boolean canEqual(Object other) {
    return other instanceof Shield;
  }

  public boolean equals(Object other) {
    return other instanceof Shield shield && shield.child.equals(child);
  }
}
