package sqe.bridge.functions;

import java.util.Arrays;
import java.util.Comparator;
import java.util.Map;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.*;
import sqe.bridge.Refusal;

/** The short words by which templates are chosen, and what a template may ask about the types of its arguments. */
public final class TypeClasses {
  private static final int MAX_PRECISION = 38;

  /** Words for several types. */
  private static final Map<String, Set<String>> GROUPS =
      Map.of(
          "num", Set.of("int", "dec", "dbl", "flt"),
          "fp", Set.of("dbl", "flt"),
          "exact", Set.of("int", "dec"),
          "day", Set.of("date", "ts", "tsz"));

  private static final Pattern QUESTION = Pattern.compile("\\{([^}]*)\\}");

  private TypeClasses() {}

  public static String of(DataType type) {
    if (type instanceof StringType) return "str";
    if (type instanceof LongType || type instanceof IntegerType) return "int";
    if (type instanceof ShortType || type instanceof ByteType) return "int";
    if (type instanceof DoubleType) return "dbl";
    if (type instanceof DecimalType) return "dec";
    if (type instanceof BooleanType) return "bool";
    if (type instanceof DateType) return "date";
    if (type instanceof TimestampNTZType) return "ts";
    if (type instanceof TimestampType) return "tsz";
    if (type instanceof FloatType) return "flt";
    if (type instanceof ArrayType) return "arr";
    if (type instanceof MapType) return "map";
    if (type instanceof StructType) return "row";
    if (type instanceof BinaryType) return "bin";
    if (type instanceof VariantType) return "var";
    if (type instanceof NullType) return "nul";
    if (type instanceof DayTimeIntervalType) return "ivl";
    if (type instanceof YearMonthIntervalType) return "ivm";
    if (type instanceof TimeType) return "time";
    return "other";
  }

  /** The word of a type, with that of an array's elements or a map's keys behind it: arr:int. */
  static String nested(DataType type) {
    if (type instanceof ArrayType array) return "arr:" + of(array.elementType());
    if (type instanceof MapType map) return "map:" + of(map.keyType());
    return of(type);
  }

  /** A NULL without a type fits everything; the first rule that fits the others is taken. */
  public static boolean fits(String actual, String wanted) {
    if (wanted.equals("any") || wanted.equals(actual)) return true;
    if (actual.equals("nul")) return true;
    int colon = actual.indexOf(':');
    for (String choice : wanted.split("\\|")) {
      if (colon > 0 && choice.startsWith(actual.substring(0, colon + 1))) {
        if (fits(actual.substring(colon + 1), choice.substring(colon + 1))) return true;
      } else if (fitsOne(colon > 0 ? actual.substring(0, colon) : actual, choice)) return true;
    }
    return false;
  }

  private static boolean fitsOne(String actual, String choice) {
    return choice.equals(actual) || GROUPS.getOrDefault(choice, Set.of()).contains(actual);
  }

  /**
   * Whether TRUE stands in the place of a zone, which is UTC then, and the session's is UTC too: Spark's own expressions say
   * the same, and filters move with them. No policy says TRUE there, so that its plan is one in all sessions.
   */
  static boolean isUtcHere(Expression zone) {
    return zone.dataType() instanceof BooleanType && SQLConf.get().sessionLocalTimeZone().equals("UTC");
  }

  static boolean isNumber(String actual) {
    return GROUPS.get("num").contains(actual);
  }

  /**
   * Fills {t0} the type of an argument, {e0} of its elements, {p0} {s0} its precision and scale as a decimal, {v0} its literal
   * value (a plain word), {f1} the name, as a string, of the field of argument 0 that literal argument 1 counts, {n0} the
   * type's name in SQL, {o0} that of its elements, {b0} its bits, {r0} a digit more than {p0}, {w0} the digits before the point, {wider} the widest type of
   * whole numbers, {x0} {y0} the names of the first and the second field of
   * the rows in an array, {all} all arguments, {numbers} all without NaN, {nulls} whether one of them is NULL.
   */
  static String fill(String template, Expression[] values) {
    return QUESTION.matcher(template).replaceAll(asked -> Matcher.quoteReplacement(answer(asked.group(1), values)));
  }

  private static String answer(String question, Expression[] values) {
    if (question.equals("all")) return listed(values.length, ", ", "");
    if (question.equals("numbers")) return "_sqe_number(" + listed(values.length, "), _sqe_number(", "") + ")";
    if (question.equals("nulls")) return listed(values.length, " OR ", " IS NULL");
    if (question.equals("wider")) return wider(values);
    char kind = question.charAt(0);
    int index = Integer.parseInt(question.substring(1));
    if (kind == 'v') return word(values[index]);
    if (kind == 'x' || kind == 'y') {
      StructType entry = (StructType) element(values[index].dataType());
      return quoted(entry.fields()[kind == 'x' ? 0 : 1].name());
    }
    if (kind == 'f') return field(values[0].dataType(), values[index]);
    DataType type = values[index].dataType();
    if (kind == 't') return type.sql();
    if (kind == 'e') return element(type).sql();
    if (kind == 'n') return TypeNames.of(type);
    if (kind == 'o') return TypeNames.of(element(type));
    if (kind == 'b') return String.valueOf(type.defaultSize() * 8);
    if (kind == 'p') return String.valueOf(decimal(type).precision());
    if (kind == 'r') return String.valueOf(Math.min(MAX_PRECISION, decimal(type).precision() + 1));
    if (kind == 'w') return String.valueOf(Math.max(1, decimal(type).precision() - decimal(type).scale()));
    return String.valueOf(decimal(type).scale());
  }

  static String listed(int count, String separator, String suffix) {
    return IntStream.range(0, count).mapToObj(i -> "__a" + i + suffix).collect(Collectors.joining(separator));
  }

  private static String word(Expression value) {
    String text = literal(value);
    if (!text.matches("[a-z_]*")) throw new IllegalArgumentException("not a word");
    return text;
  }

  static String literal(Expression value) {
    if (value instanceof Literal literal && literal.value() != null) return literal.value().toString();
    throw Refusal.ofTypes("a literal argument", of(value.dataType()));
  }

  private static String field(DataType row, Expression position) {
    StructType struct = (StructType) row;
    int at = Integer.parseInt(literal(position));
    if (at < 1 || at > struct.fields().length)
      throw Refusal.ofTypes("a field number", String.valueOf(at));
    return quoted(struct.fields()[at - 1].name());
  }

  /** A string literal; escapedStringLiterals is false (CONF-1). */
  static String quoted(String text) {
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'";
  }

  private static DataType element(DataType type) {
    return type instanceof ArrayType at ? at.elementType() : type;
  }

  static DecimalType decimal(DataType type) {
    if (type instanceof DecimalType decimalType) return decimalType;
    if (type instanceof LongType) return new DecimalType(19, 0);
    if (type instanceof IntegerType) return new DecimalType(10, 0);
    if (type instanceof ShortType) return new DecimalType(5, 0);
    if (type instanceof ByteType) return new DecimalType(3, 0);
    return new DecimalType(MAX_PRECISION, 0);
  }

  private static String wider(Expression[] values) {
    return Arrays.stream(values)
        .map(Expression::dataType)
        .filter(IntegralType.class::isInstance)
        .max(Comparator.comparingInt(DataType::defaultSize))
        .map(DataType::sql)
        .orElse("INT");
  }
}
