/** How the JVM of the engine begins, and what every Spark session in it gets. */
package sqe.bridge.boot;
