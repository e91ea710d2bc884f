import java.net.InetSocketAddress;
import java.util.HashMap;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.CatalogUtil;
import org.apache.iceberg.rest.RESTCatalogAdapter;
import org.apache.iceberg.rest.RESTCatalogServlet;
import org.eclipse.jetty.ee10.servlet.ServletContextHandler;
import org.eclipse.jetty.ee10.servlet.ServletHolder;
import org.eclipse.jetty.server.Server;

/** Iceberg's own REST catalog adapter over a JDBC catalog, on the loopback interface only. */
public class RestFixture {
  public static void main(String[] args) throws Exception {
    Map<String, String> properties = new HashMap<>();
    for (int i = 1; i < args.length; i++) {
      String[] pair = args[i].split("=", 2);
      properties.put(pair[0], pair[1]);
    }
    ServletContextHandler context = new ServletContextHandler(ServletContextHandler.NO_SESSIONS);
    context.addServlet(
        new ServletHolder(new RESTCatalogServlet(new RESTCatalogAdapter(
            CatalogUtil.buildIcebergCatalog("fixture", properties, new Configuration())))), "/*");
    Server server = new Server(new InetSocketAddress("127.0.0.1", Integer.parseInt(args[0])));
    server.setHandler(context);
    server.start();
    server.join();
  }
}
