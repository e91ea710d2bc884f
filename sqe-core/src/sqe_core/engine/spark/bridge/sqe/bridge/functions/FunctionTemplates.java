package sqe.bridge.functions;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.iceberg.common.DynFields;
import org.apache.spark.sql.catalyst.FunctionIdentifier;
import org.apache.spark.sql.catalyst.analysis.FunctionRegistry;
import org.apache.spark.sql.catalyst.analysis.FunctionRegistry$;
import org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute;
import org.apache.spark.sql.catalyst.analysis.UnresolvedFunction;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.ExpressionInfo;
import org.apache.spark.sql.catalyst.expressions.SupportQueryContext;
import org.apache.spark.sql.catalyst.expressions.UnresolvedNamedLambdaVariable;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateFunction;
import org.apache.spark.sql.catalyst.parser.CatalystSqlParser$;
import org.apache.spark.sql.catalyst.trees.CurrentOrigin$;
import org.apache.spark.sql.catalyst.trees.Origin;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.classic.SparkSession;
import scala.Function1;
import scala.Option;
import scala.collection.immutable.Seq;
import scala.runtime.AbstractFunction1;
import sqe.bridge.Refusal;
import sqe.bridge.plan.Trees;

/**
 * Functions of SQE's dialect that Spark lacks or means otherwise. A call is exchanged, while it is analysed, for a template of
 * Spark SQL that the types of its arguments choose; so plans hold Spark's own expressions, and rules and policies see
 * through. The table comes from Python (sql/spark/templates.toml): lines of name, types, template, between tabs.
 */
public final class FunctionTemplates {
  private static volatile Map<String, Builder> builders = Map.of(); // by name
  private static volatile String loaded;
  private static final DynFields.UnboundField<Origin> ORIGIN =
      DynFields.builder().hiddenImpl(TreeNode.class, "origin").build();
  private static final Map<String, Expression> PARSED = new ConcurrentHashMap<>(); // by filled template
  private static final int MAX_PARSED = 5000;

  private FunctionTemplates() {}

  /** Reads the table, once for each JVM. */
  public static synchronized void load(String table, String digest) {
    if (digest.equals(loaded)) return;
    Map<String, Builder> read = new LinkedHashMap<>();
    for (String line : table.split("\n")) {
      String[] parts = line.split("\t", 3);
      read.computeIfAbsent(parts[0], Builder::new).rules.add(new Rule(parts[1].split(","), parts[2]));
    }
    builders = read;
    loaded = digest;
  }

  /** Makes the functions known to a session; false when the table was not read yet. */
  public static boolean install(Object session, String digest) {
    if (!digest.equals(loaded)) return false;
    FunctionRegistry registry = ((SparkSession) session).sessionState().functionRegistry();
    for (Builder builder : builders.values()) registry.registerFunction(builder.identifier, builder.info, builder);
    UnnestFunction.install((SparkSession) session);
    return true;
  }

  /** The types of the arguments, each a word or several joined by |, and what is put in place. */
  private record Rule(String[] types, String template) {
    boolean fits(String[] classes, Expression[] values) {
      int last = types.length - 1;
      boolean open = types[last].endsWith("...");
      if (types[0].equals("none")) return classes.length == 0;
      if (open ? classes.length < last : classes.length != types.length) return false;
      for (int i = 0; i < classes.length; i++) {
        String wanted = types[Math.min(i, last)];
        if (wanted.endsWith("...")) wanted = wanted.substring(0, wanted.length() - 3);
        if (wanted.equals("utc") ? !TypeClasses.isUtcHere(values[i]) : !TypeClasses.fits(classes[i], wanted)) return false;
      }
      return true;
    }
  }

  /** Called by Spark when the arguments are resolved. */
  private static final class Builder extends AbstractFunction1<Seq<Expression>, Expression> {
    final String name;
    final FunctionIdentifier identifier;
    final ExpressionInfo info;
    final List<Rule> rules = new ArrayList<>();

    Builder(String name) {
      this.name = name;
      identifier = new FunctionIdentifier(name);
      info = new ExpressionInfo(FunctionTemplates.class.getName(), name);
    }

    public Expression apply(Seq<Expression> arguments) {
      Expression[] values = Trees.list(arguments).toArray(new Expression[0]);
      String[] classes = Arrays.stream(values).map(each -> TypeClasses.nested(each.dataType())).toArray(String[]::new);
      for (Rule rule : rules) {
        if (rule.fits(classes, values)) return build(rule, values);
      }
      throw Refusal.ofTypes(name, Arrays.stream(classes).map(each -> each.replaceFirst(":.*", "")).toArray(String[]::new));
    }

    private Expression build(Rule rule, Expression[] values) {
      if (rule.template.startsWith("java:")) return StaticCalls.build(rule.template.substring(5), values);
      if (rule.template.startsWith("operator:")) return Operators.build(rule.template.substring(9), values);
      if (rule.template.equals("declared:")) return DeclaredTypes.declare(values);
      if (rule.template.startsWith("error:")) throw Refusal.ofArgument(rule.template.substring(6));
      return parse(TypeClasses.fill(rule.template, values), values);
    }
  }

  /** An expression of a text in which __a0, __a1, ... stand for the arguments. */
  static Expression parse(String text, Expression... values) {
    Expression parsed = PARSED.get(text);
    if (parsed == null) {
      parsed = CatalystSqlParser$.MODULE$.parseExpression(text);
      if (PARSED.size() < MAX_PARSED) PARSED.put(text, parsed);
    }
    Expression fresh = parsed.clone();
    // Before the arguments come in: their places are the user's already.
    place(fresh, CurrentOrigin$.MODULE$.get());
    return fresh.transformUp(Trees.where(node -> argument(node, values))).transformUp(Trees.where(FunctionTemplates::called));
  }

  /**
   * Exchanges calls inside a template at once where that is possible. The analyser would need another round for each level
   * of nesting, and has a hundred of them.
   */
  private static Expression called(Expression node) {
    if (!(node instanceof UnresolvedFunction call)) return null;
    if (Trees.size(call.nameParts()) != 1 || call.isDistinct() || call.filter().isDefined()) return null;
    for (Expression each : Trees.each(call.arguments())) if (!each.resolved()) return null;
    String name = Trees.first(call.nameParts());
    Function1<Seq<Expression>, Expression> builder = builders.get(name);
    if (builder == null) {
      var found = FunctionRegistry$.MODULE$.builtin().lookupFunctionBuilder(new FunctionIdentifier(name));
      if (found.isEmpty()) return null;
      builder = found.get();
    }
    Expression made = builder.apply(call.arguments());
    return made instanceof AggregateFunction ? node : made;
  }

  /** What stands for __a0, __a1, ... */
  private static Expression argument(Expression node, Expression[] values) {
    Seq<String> parts;
    if (node instanceof UnresolvedAttribute attribute) parts = attribute.nameParts();
    else if (node instanceof UnresolvedNamedLambdaVariable variable) parts = variable.nameParts();
    else return null;
    if (Trees.size(parts) != 1 || !Trees.first(parts).startsWith("__a")) return null;
    return values[Integer.parseInt(Trees.first(parts).substring(3))];
  }

  /** Errors inside a template shall point at the call, not into the template's text (ERR-3). */
  private static void place(Expression node, Origin origin) {
    ORIGIN.set(node, origin);
    if (node instanceof SupportQueryContext context) context.queryContext_$eq(Option.apply(origin.context()));
    for (Expression child : Trees.each(node.children())) place(child, origin);
  }
}
