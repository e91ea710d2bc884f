/** What Python calls first, and what all packages share: sessions, JSON, failures. */
package sqe.bridge;
