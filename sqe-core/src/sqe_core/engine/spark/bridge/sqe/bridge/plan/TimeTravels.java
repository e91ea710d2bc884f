package sqe.bridge.plan;

import java.time.Instant;
import java.time.ZoneId;
import java.time.format.DateTimeFormatter;
import java.time.temporal.ChronoUnit;
import org.apache.spark.sql.catalyst.analysis.RelationTimeTravel;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import scala.Option;
import sqe.bridge.Json;

/** Reads time-travel clauses: literals become text, in the session's zone; anything else is only named (NAME-5). */
final class TimeTravels {
  private static final DateTimeFormatter SECONDS = DateTimeFormatter.ofPattern("yyyy-MM-dd HH:mm:ss");
  private static final DateTimeFormatter MICROS = DateTimeFormatter.ofPattern("yyyy-MM-dd HH:mm:ss.SSSSSS");

  private TimeTravels() {}

  static void write(StringBuilder out, RelationTimeTravel travel) {
    String timestamp = travel.timestamp().isDefined() ? text(travel.timestamp().get()) : null;
    boolean literal = timestamp != null || !travel.timestamp().isDefined();
    out.append('{');
    Json.member(out, "literal").append(literal);
    if (travel.version().isDefined()) Json.member(out, "version", travel.version().get());
    if (timestamp != null) Json.member(out, "timestamp", timestamp);
    out.append('}');
  }

  private static String text(Expression expression) {
    Literal literal = fold(expression);
    if (literal == null || literal.value() == null) return null;
    Literal instant = cast(literal, DataTypes.TimestampType);
    // What Spark cannot read as a time stays as written, so that Spark says so.
    if (instant == null || instant.value() == null) return literal.value().toString();
    long micros = (Long) instant.value();
    DateTimeFormatter format = micros % 1000000 == 0 ? SECONDS : MICROS;
    return format.withZone(ZoneId.of(SQLConf.get().sessionLocalTimeZone())).format(Instant.EPOCH.plus(micros, ChronoUnit.MICROS));
  }

  private static Literal fold(Expression expression) {
    if (expression instanceof Literal literal) return literal;
    Literal child = expression instanceof Cast cast ? fold(cast.child()) : null;
    return child == null ? null : cast(child, expression.dataType());
  }

  private static Literal cast(Literal literal, DataType type) {
    try {
      Cast cast = new Cast(literal, type, Option.apply(SQLConf.get().sessionLocalTimeZone()), Cast.apply$default$4());
      return new Literal(cast.eval(null), type);
    } catch (RuntimeException invalid) {
      return null;
    }
  }
}
