package sqe.bridge.exec;

import java.util.Arrays;
import org.apache.spark.SparkContext;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.InternalRow$;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.InterpretedMutableProjection;
import org.apache.spark.sql.catalyst.optimizer.ComputeCurrentTime$;
import org.apache.spark.sql.catalyst.optimizer.SpecialDatetimeValues$;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.execution.*;
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanExec;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.Platform;
import scala.collection.immutable.Range$;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.reflect.ClassTag$;
import scala.runtime.BoxedUnit;
import sqe.bridge.plan.Trees;
import sqe.bridge.stream.StreamBatch;
import sqe.bridge.stream.StreamEncoder;
import sqe.bridge.stream.StreamFormat;
import sqe.bridge.stream.StreamSink;
import sqe.bridge.stream.StreamTask;

/** Runs a physical plan so that its rows reach the sink. */
final class ExecQuery {
  private static final int COLLECTED_ROWS = 10000;

  private final SparkContext context;
  private final StreamSink sink;
  private final StructType type;
  private final StreamFormat format;
  private int partitions;

  ExecQuery(SparkContext context, StreamSink sink, StructType type, StreamFormat format) {
    this.context = context;
    this.sink = sink;
    this.type = type;
    this.format = format;
  }

  /** Whether the answer needs no job: rows that are here already, or one row to compute. */
  boolean runHere(SparkPlan physical) throws Exception {
    if (physical instanceof LocalTableScanExec || physical instanceof CommandResultExec) {
      deliver(physical.executeCollect());
      return true;
    }
    ProjectExec projection = overOneRow(physical);
    if (projection == null) return false;
    compute(projection.projectList(), projection.child().output());
    return true;
  }

  /** The one row of a query that is `Constant`, after what the optimizer does to make such expressions computable. */
  void runConstant(LogicalPlan analysed) throws Exception {
    LogicalPlan timed = ComputeCurrentTime$.MODULE$.apply(analysed);
    compute(((Project) SpecialDatetimeValues$.MODULE$.apply(timed)).projectList(), Trees.seq());
  }

  private void compute(Seq<?> expressions, Seq<Attribute> input) throws Exception {
    // Interpreted: to generate code for one row takes longer than to compute it.
    InterpretedMutableProjection row = new InterpretedMutableProjection((Seq<Expression>) expressions, input);
    row.initialize(0);
    deliver(new InternalRow[] {row.apply(InternalRow$.MODULE$.empty())});
  }

  /** The projection of a plan that is nothing but `SELECT <expressions>`. */
  private static ProjectExec overOneRow(SparkPlan plan) {
    SparkPlan top = plan instanceof WholeStageCodegenExec compiled ? compiled.child() : plan;
    if (!(top instanceof ProjectExec project)) return null;
    SparkPlan below = project.child() instanceof InputAdapter adapter ? adapter.child() : project.child();
    // A subquery among the expressions runs jobs of its own.
    return below instanceof OneRowRelationExec && Trees.size(top.subqueries()) == 0 ? project : null;
  }

  /** Encodes rows that are in the driver. */
  void deliver(InternalRow[] rows) throws Exception {
    var each = CollectionConverters.asScala(Arrays.asList(rows).iterator());
    try (StreamEncoder encoder = new StreamEncoder(type, format, Long.MAX_VALUE)) {
      for (StreamBatch batch; (batch = encoder.next(each)) != null; ) sink.push(0, 0, batch);
    }
    sink.complete(0, 0);
    partitions = 1;
  }

  /** How many partitions the result has; known when everything is done. */
  int partitions() {
    return partitions;
  }

  Object run(SparkPlan physical) {
    try {
      SparkPlan root = physical instanceof AdaptiveSparkPlanExec adaptive ? adaptive.finalPhysicalPlan() : physical;
      if (root instanceof CollectLimitExec limit) {
        limited(limit);
      } else if (root instanceof TakeOrderedAndProjectExec top && top.limit() <= COLLECTED_ROWS) {
        // One job, while the same rows as a partition of their own would need a shuffle.
        deliver(root.executeCollect());
      } else {
        RDD<InternalRow> rdd = root.execute();
        int count = rdd.getNumPartitions();
        if (count > 0) stream(rdd, 0, count, Long.MAX_VALUE);
        partitions = count;
      }
    } catch (Throwable error) {
      Platform.throwException(error);
    }
    return BoxedUnit.UNIT;
  }

  /**
   * LIMIT as the last step: looks at a few partitions first and at more while rows are missing, as Spark's own `take`
   * does, but streams what it finds. The reader cuts the first and the last batch.
   */
  private void limited(CollectLimitExec plan) {
    long wanted = plan.limit() < 0 ? Long.MAX_VALUE : plan.limit();
    sink.window(plan.offset(), wanted == Long.MAX_VALUE ? -1 : Math.max(0, wanted - plan.offset()));
    RDD<InternalRow> rdd = plan.child().execute();
    int count = rdd.getNumPartitions();
    SQLConf conf = plan.conf();
    int done = 0;
    long rows = 0;
    int round = wanted > 100L * COLLECTED_ROWS ? count : Math.max(1, conf.limitInitialNumPartitions());
    while (done < count && rows < wanted) {
      int next = (int) Math.min(count, (long) done + round);
      stream(rdd, done, next, wanted - rows);
      done = next;
      rows = sink.completeRows();
      long guess = rows == 0 ? Long.MAX_VALUE : (long) (1.5 * (wanted - rows) * done / rows) + 1;
      round = (int) Math.min(guess, (long) done * Math.max(2, conf.limitScaleUpFactor()));
    }
    partitions = done;
  }

  private void stream(RDD<InternalRow> rdd, int from, int to, long maxRows) {
    context.runJob(
        rdd,
        new StreamTask(sink, type, format, maxRows),
        Range$.MODULE$.apply(from, to),
        (index, value) -> BoxedUnit.UNIT,
        ClassTag$.MODULE$.apply(Boolean.class));
  }
}
