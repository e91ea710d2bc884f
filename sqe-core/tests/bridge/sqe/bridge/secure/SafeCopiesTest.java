package sqe.bridge.secure;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static sqe.bridge.Relations.column;

import java.util.List;
import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.types.DataTypes;
import org.junit.jupiter.api.Test;
import scala.Option;
import sqe.bridge.Relations;
import sqe.bridge.plan.PlanRewrite;
import sqe.bridge.plan.Trees;

class SafeCopiesTest {
  private static final String MARKER = "_sqe_r_1";
  private final DataSourceV2Relation table = Relations.named("people");
  private final AttributeReference k = column(table, "k");
  private final AttributeReference name = column(table, "name");

  private static Expression number(Object value) {
    return Literal$.MODULE$.apply(value);
  }

  /** The table as a policy secures it: rows where the condition holds, and these columns. */
  private LogicalPlan secured(Expression policy, NamedExpression... visible) {
    return secured(table, policy, visible);
  }

  private LogicalPlan secured(LogicalPlan relation, Expression policy, NamedExpression... visible) {
    LogicalPlan rows = new Filter(policy, Restricted.named(Restricted.named(relation, "people"), MARKER));
    LogicalPlan all = Restricted.named(new Project(Trees.<NamedExpression>seq(k, name), rows), MARKER);
    LogicalPlan barrier = new Filter(new GreaterThanOrEqual(new SparkPartitionID(), number(0)), all);
    return Secured.cover(new Project(Trees.seq(visible), barrier), List.of("hr", "people"));
  }

  /** The policy's condition once the statement's conditions were copied beside it. */
  private String copied(LogicalPlan secured, Expression condition) {
    LogicalPlan plan = SafeCopies.within(new Filter(condition, secured));
    List<Filter> filters =
        Trees.all(plan).stream().filter(Filter.class::isInstance).map(Filter.class::cast).toList();
    assertEquals(condition, filters.get(0).condition(), "nothing is moved");
    return filters.get(2).condition().sql();
  }

  private final LogicalPlan open = secured(new GreaterThan(k, number(5)), k, name);

  @Test
  void whatCannotFailIsCopiedBesideThePolicy() {
    assertEquals("((k > 5) AND (_sqe_r_1.k = 7))", copied(open, new EqualTo(k, number(7))));
    assertEquals("((k > 5) AND (8 > _sqe_r_1.k))", copied(open, new GreaterThan(number(8), k)));
    assertEquals(
        "(((k > 5) AND (_sqe_r_1.k IN (1, 2))) AND (_sqe_r_1.name IS NOT NULL))",
        copied(open, new And(new In(k, Trees.seq(number(1), number(2))), new IsNotNull(name))));
    Expression wide = new Cast(k, DataTypes.LongType, Option.empty(), EvalMode.ANSI());
    assertEquals("((k > 5) AND (CAST(_sqe_r_1.k AS BIGINT) = 7L))", copied(open, new EqualTo(wide, number(7L))));
  }

  @Test
  void whatMayFailIsNot() {
    Expression wide = new Cast(k, DataTypes.DoubleType, Option.empty(), EvalMode.ANSI());
    Expression raises = new EqualTo(wide, new Divide(number(1.0), number(0.0)));
    Expression narrow = new EqualTo(new Cast(name, DataTypes.IntegerType, Option.empty(), EvalMode.ANSI()), number(7));
    for (Expression condition : List.of(raises, narrow, new EqualTo(k, k))) {
      LogicalPlan plan = new Filter(condition, open);
      assertSame(plan, SafeCopies.within(plan), condition.sql());
    }
  }

  @Test
  void whatIsMaskedOrGuardedIsNot() {
    Expression condition = new EqualTo(k, number(7));
    LogicalPlan masked = new Filter(condition, secured(new GreaterThan(k, number(5)), PlanRewrite.alias(number(0), "k"), name));
    assertSame(masked, SafeCopies.within(masked));
    LogicalPlan guarded = new Filter(condition, secured(new Shield(new GreaterThan(k, number(5))), k, name));
    assertSame(guarded, SafeCopies.within(guarded));
  }

  @Test
  void aboveAViewNothingIs() {
    LogicalPlan view = new Project(Trees.<NamedExpression>seq(k, name), table);
    LogicalPlan plan = new Filter(new EqualTo(k, number(7)), secured(view, new GreaterThan(k, number(5)), k));
    assertSame(plan, SafeCopies.within(plan));
  }
}
