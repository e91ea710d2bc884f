/** Functions and operators of the SQL dialect that Spark lacks or means otherwise. */
package sqe.bridge.functions;
