package sqe.bridge.plan;

import org.apache.spark.sql.catalyst.analysis.UnresolvedFunction;
import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * About what number a little arithmetic of literals is, such as CAST(1000 * 1000 AS INT). Whoever bounds the arguments of
 * functions (LIM-6) would otherwise take it for no literal. Nothing is evaluated: the parsed plan has no types yet.
 */
final class LiteralNumbers {
  private static final int MAX_DEPTH = 64;
  private static final String CASTS = "_sqe_to_"; // templates that are casts

  private LiteralNumbers() {}

  /** Appends the number, or null when the expression is more than that. */
  static void write(StringBuilder out, Expression expression) {
    double number = of(expression, 0);
    if (Double.isNaN(number)) out.append("null");
    else if (Double.isInfinite(number)) out.append(number > 0 ? "1e300" : "-1e300");
    else if (number == Math.rint(number) && Math.abs(number) < 1e15) out.append((long) number);
    else out.append(number);
  }

  private static double of(Expression expression, int depth) {
    if (depth > MAX_DEPTH) return Double.NaN;
    if (expression instanceof Literal literal) return literal(literal.value());
    if (expression instanceof Cast cast) return of(cast.child(), depth + 1);
    if (expression instanceof UnresolvedFunction call)
      return isCast(call) ? of(Trees.first(call.arguments()), depth + 1) : Double.NaN;
    if (expression instanceof UnaryPositive positive) return of(positive.child(), depth + 1);
    if (expression instanceof UnaryMinus minus) return -of(minus.child(), depth + 1);
    if (!(expression instanceof BinaryArithmetic pair)) return Double.NaN;
    double left = of(pair.left(), depth + 1);
    double right = of(pair.right(), depth + 1);
    if (expression instanceof Add) return left + right;
    if (expression instanceof Subtract) return left - right;
    if (expression instanceof Multiply) return left * right;
    if (expression instanceof Divide || expression instanceof IntegralDivide) return left / right;
    return Double.NaN;
  }

  private static boolean isCast(UnresolvedFunction call) {
    return Trees.first(call.nameParts()).startsWith(CASTS) && Trees.size(call.arguments()) > 0;
  }

  private static double literal(Object value) {
    if (value instanceof Number number) return number.doubleValue();
    if (value instanceof Decimal decimal) return decimal.toDouble();
    if (!(value instanceof UTF8String)) return Double.NaN;
    try {
      return Double.parseDouble(value.toString().trim());
    } catch (NumberFormatException text) {
      return Double.NaN;
    }
  }
}
