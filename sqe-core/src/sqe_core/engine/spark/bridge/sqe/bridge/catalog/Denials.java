package sqe.bridge.catalog;

import java.util.regex.Pattern;
import org.apache.iceberg.exceptions.ForbiddenException;
import org.apache.iceberg.exceptions.ServiceFailureException;

/** How catalogs say that somebody may not see an object, which has to look as if there were none (ERR-5). */
final class Denials {
  // Nessie and SeaweedFS answer some denials with 500; nothing but the text tells those from a fault.
  private static final Pattern TEXT =
      Pattern.compile("AccessCheckException|[Nn]ot authorized to|is not allowed for role|ForbiddenException");

  private Denials() {}

  static boolean is(Throwable failure) {
    if (failure instanceof ForbiddenException) return true;
    return failure instanceof ServiceFailureException && TEXT.matcher(String.valueOf(failure.getMessage())).find();
  }
}
