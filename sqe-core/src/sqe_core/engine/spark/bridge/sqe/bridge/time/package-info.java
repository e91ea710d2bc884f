/** Columns of TIME and of nanoseconds, which Spark's side of Iceberg does not know. */
package sqe.bridge.time;
