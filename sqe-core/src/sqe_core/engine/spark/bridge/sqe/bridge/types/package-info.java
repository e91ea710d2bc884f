/** The types of columns: between Spark, Iceberg and Arrow, and what of them a write or a result changes. */
package sqe.bridge.types;
