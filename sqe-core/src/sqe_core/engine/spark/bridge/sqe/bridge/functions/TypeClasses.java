package sqe.bridge.functions;

import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.ByteType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.DayTimeIntervalType;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.NullType;
import org.apache.spark.sql.types.ShortType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimeType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;
import org.apache.spark.sql.types.VariantType;
import org.apache.spark.sql.types.YearMonthIntervalType;

/** The short words by which templates are chosen, and what a template may ask about the types of its arguments. */
public final class TypeClasses {
  private static final int MAX_PRECISION = 38;

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

  /** A NULL without a type fits everything; the first rule that fits the others is taken. */
  public static boolean fits(String actual, String wanted) {
    if (wanted.equals("any") || wanted.equals(actual)) return true;
    if (actual.equals("nul")) return true;
    String[] choices = wanted.split("\\|");
    for (String choice : choices) {
      if (choice.equals(actual)) return true;
      if (choice.equals("num") && isNumber(actual)) return true;
      if (choice.equals("fp") && (actual.equals("dbl") || actual.equals("flt"))) return true;
      if (choice.equals("exact") && (actual.equals("int") || actual.equals("dec"))) return true;
      if (choice.equals("day") && (actual.equals("date") || actual.equals("ts") || actual.equals("tsz"))) return true;
    }
    return false;
  }

  static boolean isNumber(String actual) {
    return actual.equals("int") || actual.equals("dec") || actual.equals("dbl") || actual.equals("flt");
  }

  /**
   * Fills {t0} the type of an argument, {e0} of its elements, {p0} {s0} its precision and scale as a decimal, {v0} its literal
   * value (a plain word), {f1} the name, as a string, of the field of argument 0 that literal argument 1 counts, {n0} the
   * type's name in SQL, {wider} the widest type of whole numbers, {x0} {y0} the names of the first and the second field of
   * the rows in an array, {all} all arguments, {nulls} whether one of them is NULL.
   */
  static String fill(String template, Expression[] values) {
    int open = template.indexOf('{');
    if (open < 0) return template;
    StringBuilder out = new StringBuilder();
    int done = 0;
    while (open >= 0) {
      int close = template.indexOf('}', open);
      out.append(template, done, open).append(answer(template.substring(open + 1, close), values));
      done = close + 1;
      open = template.indexOf('{', done);
    }
    return out.append(template.substring(done)).toString();
  }

  private static String answer(String question, Expression[] values) {
    if (question.equals("all")) return listed(values.length, ", ", "");
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
    if (kind == 'p') return String.valueOf(decimal(type).precision());
    return String.valueOf(decimal(type).scale());
  }

  private static String listed(int count, String separator, String suffix) {
    StringBuilder out = new StringBuilder();
    for (int i = 0; i < count; i++) out.append(i == 0 ? "" : separator).append("__a").append(i).append(suffix);
    return out.toString();
  }

  private static String word(Expression value) {
    String text = literal(value);
    for (int i = 0; i < text.length(); i++) {
      char c = text.charAt(i);
      if (!((c >= 'a' && c <= 'z') || c == '_')) throw new IllegalArgumentException("not a word");
    }
    return text;
  }

  static String literal(Expression value) {
    if (!(value instanceof Literal) || ((Literal) value).value() == null)
      throw new TemplateMismatch("a literal argument", new String[] {of(value.dataType())});
    return String.valueOf(((Literal) value).value());
  }

  private static String field(DataType row, Expression position) {
    StructType struct = (StructType) row;
    int at = Integer.parseInt(literal(position));
    if (at < 1 || at > struct.fields().length)
      throw new TemplateMismatch("a field number", new String[] {String.valueOf(at)});
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
    int size = 0;
    for (Expression each : values) {
      DataType type = each.dataType();
      if (type instanceof LongType) size = Math.max(size, 4);
      else if (type instanceof IntegerType) size = Math.max(size, 3);
      else if (type instanceof ShortType) size = Math.max(size, 2);
      else if (type instanceof ByteType) size = Math.max(size, 1);
    }
    String[] names = new String[] {"INT", "TINYINT", "SMALLINT", "INT", "BIGINT"};
    return names[size];
  }
}
