package sqe.bridge.secure;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import org.apache.spark.sql.catalyst.expressions.*;
import org.junit.jupiter.api.Test;
import sqe.bridge.plan.Trees;

class ShieldTest {
  private static final Expression RAISES = new Divide(Literal$.MODULE$.apply(1.0), Literal$.MODULE$.apply(0.0));

  @Test
  void anErrorIsNull() {
    assertThrows(RuntimeException.class, () -> RAISES.eval(null));
    assertNull(new Shield(RAISES).eval(null));
    assertEquals(3, new Shield(new Add(Literal$.MODULE$.apply(1), Literal$.MODULE$.apply(2))).eval(null));
    assertTrue(new Shield(Literal$.MODULE$.apply(1)).nullable());
  }

  @Test
  void noPartIsTakenOut() {
    Shield shield = new Shield(RAISES);
    assertFalse(shield.foldable());
    assertEquals(new TryEval(RAISES).nullIntolerant(), shield.nullIntolerant());
    assertTrue(Trees.list(shield.alwaysEvaluatedInputs()).isEmpty());
    assertTrue(Trees.list(shield.branchGroups()).isEmpty());
  }

  @Test
  void newChildrenStandInANewOne() {
    Expression changed = new Shield(RAISES).withNewChildren(Trees.seq((Expression) Literal$.MODULE$.apply(7)));
    assertEquals(new Shield(Literal$.MODULE$.apply(7)), changed);
    assertNotEquals(new Shield(Literal$.MODULE$.apply(8)), changed);
    assertEquals(7, changed.eval(null));
  }

  @Test
  void itTravelsToExecutors() throws Exception {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    new ObjectOutputStream(bytes).writeObject(new Shield(RAISES));
    Object read = new ObjectInputStream(new ByteArrayInputStream(bytes.toByteArray())).readObject();
    assertEquals(new Shield(RAISES), read);
    assertNull(((Shield) read).eval(null));
  }
}
