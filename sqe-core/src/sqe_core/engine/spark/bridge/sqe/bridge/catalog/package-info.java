/** Mounted catalogs: Iceberg's Spark catalog with what it lacks, metadata, and DDL that Spark's SQL cannot say. */
package sqe.bridge.catalog;
