package sqe.bridge.spool;

import org.apache.spark.sql.connector.read.InputPartition;

/** One file of spooled rows: where the driver has it, and where executors in other JVMs get it, if there are any. */
final class SpoolPart implements InputPartition {
  final String path;
  final String address;

  SpoolPart(String path, String address) {
    this.path = path;
    this.address = address;
  }
}
