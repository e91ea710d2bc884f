package sqe.bridge.spool;

import org.apache.spark.SparkEnv;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.unsafe.Platform;

/** Opens files of spooled rows where the tasks run. */
final class SpoolReaders implements PartitionReaderFactory {
  public boolean supportColumnarReads(InputPartition part) {
    return true;
  }

  public PartitionReader createReader(InputPartition part) {
    throw new UnsupportedOperationException("spooled rows are read by the column");
  }

  public PartitionReader createColumnarReader(InputPartition given) {
    SpoolPart part = (SpoolPart) given;
    try {
      if (part.address == null) return new SpoolReader(Spools.open(part.path));
      return new SpoolReader(SparkEnv.get().rpcEnv().openChannel(part.address));
    } catch (Exception error) {
      Platform.throwException(error);
      return null;
    }
  }
}
