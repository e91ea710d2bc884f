/** Rows that a client brought, as a table. */
package sqe.bridge.spool;
