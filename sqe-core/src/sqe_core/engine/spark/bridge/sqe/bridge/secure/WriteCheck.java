package sqe.bridge.secure;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.sql.catalyst.plans.logical.*;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.catalyst.util.RowDeltaUtils;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.unsafe.types.UTF8String;
import sqe.bridge.BridgeException;
import sqe.bridge.plan.PlanHandle;
import sqe.bridge.plan.Rebuild;

/**
 * Rows that are written have to satisfy what a policy says of them (DML-3): directly below the write, where they have the
 * columns of the table, one that does not ends the statement with a text that names no row.
 *
 * <p>The barrier inside keeps the condition where it is: pushed below a join it would meet rows that are never written.
 */
public final class WriteCheck {
  static final String REFUSED = "sqe.row.not.allowed";

  private final Restricted restricted;
  private int placed;

  private WriteCheck(Restricted restricted) {
    this.restricted = restricted;
  }

  public static LogicalPlan above(LogicalPlan plan, JsonNode restriction, Map<Long, PlanHandle> plans) {
    WriteCheck check = new WriteCheck(new Restricted(restriction, plans));
    LogicalPlan checked = Rebuild.each(plan, check::checked);
    if (check.placed != 1) throw new BridgeException("SQE_CANNOT_CHECK", check.placed + " writes");
    return checked;
  }

  private TreeNode<?> checked(TreeNode<?> after) {
    if (!(after instanceof AppendData) && !(after instanceof WriteDelta)) return after;
    placed++;
    V2WriteCommand write = (V2WriteCommand) after;
    Expression holds = new And(Restricted.barrier(), restricted.condition());
    // A row that goes is no new one.
    if (after instanceof WriteDelta) holds = new Or(new EqualTo(restricted.operation(), deletion()), holds);
    // A condition that no new row can satisfy is folded, and the refusal stands alone: it stays where it is as well.
    Expression refusal = new If(Restricted.barrier(), refusal(), Literal.TrueLiteral());
    LogicalPlan rows = restricted.named(write.query());
    return (TreeNode<?>) write.withNewQuery(new Filter(new If(holds, Literal.TrueLiteral(), refusal), rows));
  }

  private static Expression deletion() {
    return new Literal(RowDeltaUtils.DELETE_OPERATION(), DataTypes.IntegerType);
  }

  private static Expression refusal() {
    return Restricted.call("raise_error", new Literal(UTF8String.fromString(REFUSED), DataTypes.StringType));
  }
}
