package com.acme;

import java.util.HashMap;
import java.util.Map;
import org.apache.iceberg.jdbc.JdbcCatalog;

/** The metastore as Iceberg sees it, which notes on each new table who keeps its name. */
public class Metastore extends JdbcCatalog {
  @Override
  public void initialize(String name, Map<String, String> properties) {
    Map<String, String> mine = new HashMap<>(properties);
    mine.put("table-default.acme.kept-by", "metastore");
    super.initialize(name, mine);
  }
}
