/** Results on their way from the tasks to the reader: as Arrow, in order, and in bounded memory. */
package sqe.bridge.stream;
