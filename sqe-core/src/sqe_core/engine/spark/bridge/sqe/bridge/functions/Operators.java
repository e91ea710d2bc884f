package sqe.bridge.functions;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.IntStream;
import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.sql.types.*;
import scala.Option;
import sqe.bridge.Refusal;
import sqe.bridge.plan.Markers;
import sqe.bridge.plan.Trees;

/**
 * Arithmetic and comparisons where SQL means them otherwise than Spark: decimals keep all their digits or fail, a REAL
 * beside an exact number stays a REAL, NaN equals nothing, and NULLs inside rows and arrays leave a comparison open. What
 * is not about these stays Spark's own expression, which coerces its arguments itself.
 */
final class Operators {
  private static final int MAX_SCALE = 38;
  private static final int MOST_COPIED = 256; // nodes
  private static final int SMALL = 16; // nodes; what is larger is never repeated, so that nesting cannot multiply it

  private Operators() {}

  static Expression build(String operator, Expression[] values) {
    if (operator.equals("chain")) return chain(values);
    if (operator.equals("in")) return in(values);
    if (operator.equals("lost")) return lost(values[0], values[1]);
    if (operator.equals("between")) return between(values[0], values[1], values[2]);
    if (operator.startsWith("try")) return arithmetic(operator.charAt(3), values[0], values[1], true);
    if (operator.length() == 1 && "+-*%".indexOf(operator) >= 0)
      return arithmetic(operator.charAt(0), values[0], values[1], false);
    return compare(operator, values[0], values[1]);
  }

  // ------------------------------------------------------------------ arithmetic

  /** A sum or product of many terms: the first argument holds the operators. */
  private static Expression chain(Expression[] values) {
    String operators = TypeClasses.literal(values[0]);
    Expression result = values[1];
    for (int i = 2; i < values.length; i++) {
      if (!result.resolved()) return rest(operators.substring(i - 2), result, values, i);
      result = arithmetic(operators.charAt(i - 2), result, values[i], false);
    }
    return result;
  }

  /** What waits for the analyser to coerce the terms before it. */
  private static Expression rest(String operators, Expression result, Expression[] values, int from) {
    List<Expression> left = new ArrayList<>(Arrays.asList(values).subList(from - 1, values.length));
    left.set(0, result);
    String text = "_sqe_chain('" + operators + "', " + TypeClasses.listed(left.size(), ", ", "") + ")";
    return FunctionTemplates.parse(text, left.toArray(new Expression[0]));
  }

  private static Expression arithmetic(char operator, Expression left, Expression right, boolean tried) {
    String l = TypeClasses.of(left.dataType());
    String r = TypeClasses.of(right.dataType());
    if (l.equals("nul") && r.equals("nul")) {
      // NULL + NULL is an integer, as in Trino; a parameter whose type nothing tells is as wide as clients bind them.
      boolean bound = Markers.is(left) || Markers.is(right);
      DataType type = bound ? DataTypes.LongType : DataTypes.IntegerType;
      return arithmetic(operator, cast(left, type), cast(right, type), tried);
    }
    if (l.equals("nul") && TypeClasses.isNumber(r)) return arithmetic(operator, cast(left, right.dataType()), right, tried);
    if (r.equals("nul") && TypeClasses.isNumber(l)) return arithmetic(operator, left, cast(right, left.dataType()), tried);
    if (TypeClasses.fits(l, "num") && TypeClasses.fits(r, "num")) {
      DataType common = floating(l, r);
      boolean decimal = common == null && (l.equals("dec") || r.equals("dec"));
      if (common == null && !decimal) common = wider(left.dataType(), right.dataType());
      Expression a = cast(left, decimal ? TypeClasses.decimal(left.dataType()) : common);
      Expression b = cast(right, decimal ? TypeClasses.decimal(right.dataType()) : common);
      if (decimal && operator == '*') return product(a, b, tried);
      return plain(operator, a, b, tried);
    }
    if (l.equals("date") && r.equals("ivl") && !wholeDays(right) && (operator == '+' || operator == '-'))
      return days(operator == '+' ? "date_add" : "date_sub", left, right);
    if (l.equals("ivl") && r.equals("date") && !wholeDays(left) && operator == '+') return days("date_add", right, left);
    if (l.equals("time") && r.equals("ivl") && (operator == '+' || operator == '-'))
      return FunctionTemplates.parse("_sqe_add_to_time(__a0, " + (operator == '-' ? "-" : "") + "__a1)", left, right);
    if (l.equals("ivl") && r.equals("time") && operator == '+')
      return FunctionTemplates.parse("_sqe_add_to_time(__a1, __a0)", left, right);
    if (!tried) return plain(operator, left, right, false);
    String name = operator == '+' ? "try_add" : operator == '-' ? "try_subtract" : operator == '*' ? "try_multiply" : "try_mod";
    return FunctionTemplates.parse(name + "(__a0, __a1)", left, right);
  }

  private static boolean wholeDays(Expression interval) {
    return ((DayTimeIntervalType) interval.dataType()).endField() == 0;
  }

  private static Expression days(String function, Expression date, Expression interval) {
    Expression count = StaticCalls.build("SqlTime.wholeDays() -> INT", interval);
    return FunctionTemplates.parse(function + "(__a0, __a1)", date, count);
  }

  private static Expression plain(char operator, Expression left, Expression right, boolean tried) {
    // Without loss of precision: the scale of a result is never cut to make room for digits that may not be there.
    scala.Enumeration.Value mode = tried ? EvalMode$.MODULE$.TRY() : EvalMode$.MODULE$.ANSI();
    NumericEvalContext context = new NumericEvalContext(mode, false);
    if (operator == '+') return new Add(left, right, context);
    if (operator == '-') return new Subtract(left, right, context);
    if (operator == '*') return new Multiply(left, right, context);
    return new Remainder(left, right, context);
  }

  private static Expression product(Expression left, Expression right, boolean tried) {
    DecimalType a = (DecimalType) left.dataType();
    DecimalType b = (DecimalType) right.dataType();
    int scale = a.scale() + b.scale();
    if (scale > MAX_SCALE) throw Refusal.ofArgument("PRODUCT_SCALE");
    Expression product = plain('*', left, right, tried);
    DecimalType type = new DecimalType(Math.max(Math.min(MAX_SCALE, a.precision() + b.precision()), scale), scale);
    return type.equals(product.dataType()) ? product : cast(product, type);
  }

  /** The type of a pair of numbers of which one is floating; null for exact numbers. */
  private static DataType floating(String left, String right) {
    if (left.equals("dbl") || right.equals("dbl")) return DataTypes.DoubleType;
    if (left.equals("flt") || right.equals("flt")) return DataTypes.FloatType;
    return null;
  }

  private static DataType wider(DataType left, DataType right) {
    return left.defaultSize() >= right.defaultSize() ? left : right;
  }

  private static Expression cast(Expression value, DataType type) {
    if (value.dataType().equals(type)) return value;
    return new Cast(value, type, Option.empty(), EvalMode$.MODULE$.ANSI());
  }

  // ------------------------------------------------------------------ comparisons

  private static Expression compare(String operator, Expression left, Expression right) {
    String l = TypeClasses.of(left.dataType());
    String r = TypeClasses.of(right.dataType());
    if (TypeClasses.isNumber(l) && TypeClasses.isNumber(r)) {
      DataType common = floating(l, r);
      if (common == null) return ordinary(operator, left, right);
      return floats(operator, cast(left, common), cast(right, common));
    }
    Expression found = null;
    if (operator.equals("<=>")) return ordinary(operator, left, right);
    if (l.equals("row") && r.equals("row")) found = rows(operator, left, right);
    else if (l.equals("arr") && r.equals("arr")) found = arrays(operator, left, right);
    else if (l.equals("map") && r.equals("map")) found = maps(operator, left, right);
    else if (l.equals("var") && r.equals("var")) found = documents(operator, left, right);
    return found == null ? ordinary(operator, left, right) : found;
  }

  private static Expression ordinary(String operator, Expression left, Expression right) {
    // Beside a text Spark would put NULL in the place of a marker, and nobody knew its type.
    if (Markers.is(left)) left = expected(left, right);
    else if (Markers.is(right)) right = expected(right, left);
    return switch (operator) {
      case "=" -> new EqualTo(left, right);
      case "<>" -> new Not(new EqualTo(left, right));
      case "<" -> new LessThan(left, right);
      case "<=" -> new LessThanOrEqual(left, right);
      case ">" -> new GreaterThan(left, right);
      case ">=" -> new GreaterThanOrEqual(left, right);
      default -> new EqualNullSafe(left, right);
    };
  }

  private static Expression expected(Expression marker, Expression other) {
    return other.dataType() instanceof NullType ? marker : cast(marker, other.dataType());
  }

  /** Spark takes NaN for equal to itself and larger than all other numbers. */
  private static Expression floats(String operator, Expression left, Expression right) {
    Expression plain = ordinary(operator, left, right);
    if (operator.equals("<=>")) return plain;
    boolean leftMay = mayBeNaN(left);
    boolean rightMay = mayBeNaN(right);
    boolean equality = operator.equals("=") || operator.equals("<>");
    if (equality ? !(leftMay && rightMay) : operator.charAt(0) == '<' ? !rightMay : !leftMay) return plain;
    if (!isSmall(left) || !isSmall(right)) {
      String method =
          equality
              ? (operator.equals("=") ? "equal" : "different")
              : (operator.charAt(0) == '<' ? "less" : "greater") + (operator.length() == 2 ? "OrEqual" : "");
      return StaticCalls.build("SqlMath." + method + "(DOUBLE, DOUBLE) -> BOOLEAN", left, right);
    }
    if (equality) {
      Expression equal =
          new And(new EqualTo(left, right), new Not(new And(new IsNaN(left), new IsNaN(right))));
      return operator.equals("=") ? equal : new Not(equal);
    }
    // Where the other side is NULL the answer is NULL, whatever this side is.
    Expression larger = operator.charAt(0) == '<' ? right : left;
    Expression other = operator.charAt(0) == '<' ? left : right;
    Expression number = new Not(new IsNaN(larger));
    return new And(plain, other.nullable() ? new Or(number, new IsNull(other)) : number);
  }

  private static boolean mayBeNaN(Expression value) {
    if (value instanceof Cast cast && !isFloating(cast.child().dataType())) {
      String from = TypeClasses.of(cast.child().dataType());
      return !TypeClasses.isNumber(from) || from.equals("nul");
    }
    if (!(value instanceof Literal literal)) return true;
    return literal.value() != null && Double.isNaN(((Number) literal.value()).doubleValue());
  }

  private static boolean isFloating(DataType type) {
    return type instanceof DoubleType || type instanceof FloatType;
  }

  /** Field by field, so that NULLs count as they do outside of rows; null when Spark's way must do. */
  private static Expression rows(String operator, Expression left, Expression right) {
    List<Expression> a = fields(left);
    List<Expression> b = fields(right);
    if (a == null || b == null || a.size() != b.size() || a.isEmpty()) return null;
    int last = a.size() - 1;
    if (operator.equals("=") || operator.equals("<>")) {
      Expression equal = null;
      for (int i = 0; i <= last; i++) {
        Expression one = compare("=", a.get(i), b.get(i));
        equal = equal == null ? one : new And(equal, one);
      }
      return operator.equals("=") ? equal : new Not(equal);
    }
    for (int i = 0; i <= last; i++)
      if (!isSmall(a.get(i)) || !isSmall(b.get(i))) return null;
    Expression ordered = compare(operator, a.get(last), b.get(last));
    for (int i = last - 1; i >= 0; i--) {
      Expression x = a.get(i);
      Expression y = b.get(i);
      ordered = new Or(compare(operator.substring(0, 1), x, y), new And(compare("=", x, y), ordered));
    }
    return ordered;
  }

  private static List<Expression> fields(Expression row) {
    if (row instanceof CreateNamedStruct struct) return Trees.list(struct.valExprs());
    if (!isSmall(row)) return null;
    int count = ((StructType) row.dataType()).length();
    return IntStream.range(0, count).<Expression>mapToObj(i -> new GetStructField(row, i, Option.empty())).toList();
  }

  private static Expression arrays(String operator, Expression left, Expression right) {
    if (!operator.equals("=") && !operator.equals("<>")) return null;
    if (!isOpen((ArrayType) left.dataType()) && !isOpen((ArrayType) right.dataType())) return null;
    if (!isSmall(left) || !isSmall(right)) return null;
    Expression equal =
        FunctionTemplates.parse(
            "CASE WHEN size(__a0) <> size(__a1) THEN FALSE"
                + " ELSE forall(zip_with(__a0, __a1, (x, y) -> _sqe_eq(x, y)), e -> e) END",
            left,
            right);
    return operator.equals("=") ? equal : new Not(equal);
  }

  /** Whether elements may make a comparison other than Spark's. */
  private static boolean isOpen(ArrayType type) {
    return type.containsNull() || isFloating(type.elementType()) || type.elementType() instanceof StructType;
  }

  private static Expression maps(String operator, Expression left, Expression right) {
    if (!operator.equals("=") && !operator.equals("<>")) return null;
    if (!isSmall(left) || !isSmall(right)) return null;
    Expression equal =
        FunctionTemplates.parse(
            "CASE WHEN size(__a0) <> size(__a1) THEN FALSE ELSE forall(map_keys(__a0), k -> map_contains_key(__a1, k)"
                + " AND _sqe_eq(try_element_at(__a0, k), try_element_at(__a1, k))) END",
            left,
            right);
    return operator.equals("=") ? equal : new Not(equal);
  }

  private static Expression documents(String operator, Expression left, Expression right) {
    if (!operator.equals("=") && !operator.equals("<>")) return null;
    return FunctionTemplates.parse("to_json(__a0) " + operator + " to_json(__a1)", left, right);
  }

  private static Expression in(Expression[] values) {
    Expression value = values[0];
    String type = TypeClasses.of(value.dataType());
    List<Expression> list = new ArrayList<>();
    boolean alike = true;
    for (int i = 1; i < values.length; i++) {
      String other = TypeClasses.of(values[i].dataType());
      boolean real = type.equals("flt") && TypeClasses.isNumber(other) && !other.equals("dbl");
      list.add(real ? cast(values[i], DataTypes.FloatType) : values[i]);
      alike = alike && (other.equals(type) || other.equals("nul"));
    }
    if (type.equals("var") && alike) {
      value = FunctionTemplates.parse("to_json(__a0)", value);
      list.replaceAll(each -> FunctionTemplates.parse("to_json(__a0)", each));
    }
    // The value is repeated for each row of the list; inside of another list that would multiply.
    boolean bounded = isSmall(value) || nodes(value, MOST_COPIED) * list.size() <= MOST_COPIED;
    if (!type.equals("row") || !alike || !bounded || !value.deterministic()) return new In(value, Trees.seq(list));
    List<Expression> terms = new ArrayList<>();
    for (Expression each : list) terms.add(compare("=", value, each));
    return joined(terms);
  }

  /** Halves of halves: a list of thousands must not become as deep. */
  private static Expression joined(List<Expression> terms) {
    int half = terms.size() / 2;
    if (half == 0) return terms.get(0);
    return new Or(joined(terms.subList(0, half)), joined(terms.subList(half, terms.size())));
  }

  private static Expression between(Expression value, Expression low, Expression high) {
    if (Markers.is(value)) value = expected(value, Markers.is(low) ? high : low);
    if (Markers.is(low)) low = expected(low, value);
    if (Markers.is(high)) high = expected(high, value);
    String type = TypeClasses.of(value.dataType());
    String lower = TypeClasses.of(low.dataType());
    String upper = TypeClasses.of(high.dataType());
    boolean numbers = TypeClasses.isNumber(type) && TypeClasses.isNumber(lower) && TypeClasses.isNumber(upper);
    if (numbers && type.equals("flt") && !lower.equals("dbl") && !upper.equals("dbl")) {
      low = cast(low, DataTypes.FloatType);
      high = cast(high, DataTypes.FloatType);
    }
    boolean parts = type.equals("row") || (numbers && isFloating(high.dataType()) && mayBeNaN(high));
    if (parts && isSmall(value)) return new And(compare(">=", value, low), compare("<=", value, high));
    return FunctionTemplates.parse("__a0 BETWEEN __a1 AND __a2", value, low, high);
  }

  /** Whether a field of a row is NULL that was not before a cast. */
  private static Expression lost(Expression before, Expression after) {
    Expression any = new Literal(false, DataTypes.BooleanType);
    for (int i = 0; i < ((StructType) before.dataType()).length(); i++) {
      Expression field = new GetStructField(before, i, Option.empty());
      Expression cast = new GetStructField(after, i, Option.empty());
      any = new Or(any, FunctionTemplates.parse("_sqe_lost(__a0, __a1)", field, cast));
    }
    return any;
  }

  // ------------------------------------------------------------------ size

  private static boolean isSmall(Expression expression) {
    return expression.deterministic() && nodes(expression, SMALL) <= SMALL;
  }

  private static int nodes(Expression expression, int most) {
    if (expression instanceof PlanExpression) return MOST_COPIED + 1;
    int count = 1;
    for (Expression each : Trees.each(expression.children())) if (count <= most) count += nodes(each, most - count);
    return count;
  }
}
