/** Statements at work: their threads, how they are run, counted, cancelled and, if need be, ended with the JVM. */
package sqe.bridge.exec;
