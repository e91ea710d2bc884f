package sqe.bridge.catalog;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.lang.reflect.Proxy;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.regex.Pattern;
import org.apache.iceberg.BaseMetadataTable;
import org.apache.iceberg.Table;
import org.apache.iceberg.catalog.Catalog;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.exceptions.ForbiddenException;
import org.apache.iceberg.exceptions.NoSuchTableException;
import org.apache.iceberg.exceptions.NoSuchViewException;
import org.apache.iceberg.exceptions.ServiceFailureException;

/**
 * Within a statement every table is loaded once, so that what was decided about is what is read. Iceberg's own cache
 * cannot do that: it lives on for as long as it is read from, across statements.
 */
public final class TableScope {
  // Nessie and SeaweedFS answer some denials with 500; nothing but the text tells those from a fault.
  private static final Pattern DENIAL =
      Pattern.compile("AccessCheckException|[Nn]ot authorized to|is not allowed for role|ForbiddenException");

  private static final Map<String, TableScope> BY_ALIAS = new ConcurrentHashMap<>();

  private final Map<String, Table> tables = new HashMap<>(); // by alias and identifier
  private int depth;

  public static void register(String alias, TableScope scope) {
    BY_ALIAS.put(alias, scope);
  }

  public static void forget(String alias) {
    BY_ALIAS.remove(alias);
  }

  public synchronized void enter() {
    depth++;
  }

  public synchronized void exit() {
    if (depth > 0) depth--;
    if (depth == 0) tables.clear();
  }

  /** The catalog, with its tables kept within statements of the session that mounted the alias. */
  static Catalog wrap(String alias, Catalog catalog) {
    TableScope scope = BY_ALIAS.get(alias);
    if (scope == null) throw new IllegalStateException("nobody mounted " + alias);
    Set<Class<?>> interfaces = new LinkedHashSet<>(Set.of(Unwrappable.class));
    for (Class<?> type = catalog.getClass(); type != null; type = type.getSuperclass())
      for (Class<?> each : type.getInterfaces()) if (Modifier.isPublic(each.getModifiers())) interfaces.add(each);
    Class<?>[] all = interfaces.toArray(new Class<?>[0]);
    return (Catalog) Proxy.newProxyInstance(TableScope.class.getClassLoader(), all, new Handler(alias, catalog, scope));
  }

  static Catalog unwrap(Catalog catalog) {
    return catalog instanceof Unwrappable wrapped ? wrapped.unwrapped() : catalog;
  }

  public interface Unwrappable {
    Catalog unwrapped();
  }

  private record Handler(String alias, Catalog catalog, TableScope scope) implements InvocationHandler {
    public Object invoke(Object proxy, Method method, Object[] arguments) throws Throwable {
      String name = method.getName();
      if (name.equals("unwrapped")) return catalog;
      if (name.equals("loadTable") && arguments.length == 1) return load((TableIdentifier) arguments[0]);
      if (name.equals("dropTable") || name.equals("renameTable") || name.equals("registerTable")) scope.clear();
      try {
        return method.invoke(catalog, arguments);
      } catch (InvocationTargetException failed) {
        Throwable cause = failed.getCause();
        if (name.equals("loadView") && isDenial(cause))
          throw new NoSuchViewException("View does not exist: %s", arguments);
        if ((name.equals("tableExists") || name.equals("viewExists")) && isDenial(cause)) return Boolean.FALSE;
        if (isDenial(cause)) throw new ForbiddenException(cause, "The catalog refused %s", name);
        throw cause;
      }
    }

    private Table load(TableIdentifier identifier) {
      String key = alias + "\u0000" + identifier;
      Table table = scope.find(key);
      if (table == null) {
        try {
          table = catalog.loadTable(identifier);
        } catch (RuntimeException failed) {
          if (isDenial(failed)) throw missing(identifier);
          throw failed;
        }
        // Iceberg reads default.pay.files as the files of default.pay, whose policy nobody asked for (NAME-3).
        if (table instanceof BaseMetadataTable) throw missing(identifier);
        scope.keep(key, table);
      }
      return table;
    }

    /** How catalogs say that somebody may not see an object, which has to look as if there were none (ERR-5). */
    private static boolean isDenial(Throwable failure) {
      return failure instanceof ForbiddenException
          || failure instanceof ServiceFailureException && DENIAL.matcher(String.valueOf(failure.getMessage())).find();
    }

    private static NoSuchTableException missing(TableIdentifier identifier) {
      return new NoSuchTableException("Table does not exist: %s", identifier);
    }
  }

  private synchronized Table find(String key) {
    return tables.get(key);
  }

  private synchronized void keep(String key, Table table) {
    if (depth > 0) tables.put(key, table);
  }

  private synchronized void clear() {
    tables.clear();
  }
}
