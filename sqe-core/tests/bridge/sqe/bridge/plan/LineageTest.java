package sqe.bridge.plan;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static sqe.bridge.Relations.column;

import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.sql.catalyst.plans.JoinType;
import org.apache.spark.sql.catalyst.plans.logical.*;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Metadata;
import org.junit.jupiter.api.Test;
import scala.Option;
import sqe.bridge.Json;
import sqe.bridge.Relations;

class LineageTest {
  private final DataSourceV2Relation people = Relations.named("people");
  private final DataSourceV2Relation gone = Relations.named("gone");

  private static String indirect(LogicalPlan plan) {
    return Json.read(Lineage.json(plan)).get("indirect").toString();
  }

  private static LogicalPlan keys(DataSourceV2Relation relation) {
    return new Project(Trees.<NamedExpression>seq(column(relation, "k")), relation);
  }

  @Test
  void bothSidesDecideWhatIsTakenAwayOrShared() {
    String both = "{\"FILTER\":[[[\"hr\",\"people\"],\"k\"],[[\"hr\",\"gone\"],\"k\"]]}";
    assertEquals(both, indirect(new Except(keys(people), keys(gone), false)));
    assertEquals(both, indirect(new Intersect(keys(people), keys(gone), false)));
  }

  @Test
  void aGeneratorDecidesHowManyRowsThereAre() {
    var made = new AttributeReference("x", DataTypes.IntegerType, true, Metadata.empty(), NamedExpression.newExprId(), Trees.seq());
    LogicalPlan plan =
        new Generate(new Explode(column(people, "xs")), Trees.seq(), false, Option.empty(), Trees.seq(made), people);
    assertEquals("{\"FILTER\":[[[\"hr\",\"people\"],\"xs\"]]}", indirect(plan));
  }

  @Test
  void aLateralJoinHasACondition() {
    var query = new LateralSubquery(gone, Trees.seq(), NamedExpression.newExprId(), Trees.seq(), Option.empty());
    var condition = new EqualTo(column(people, "k"), column(gone, "name"));
    LogicalPlan plan = new LateralJoin(people, query, JoinType.apply("inner"), Option.apply(condition));
    assertEquals("{\"JOIN\":[[[\"hr\",\"people\"],\"k\"],[[\"hr\",\"gone\"],\"name\"]]}", indirect(plan));
  }
}
