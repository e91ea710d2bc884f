/** What policies do to a plan: filters, masks and hidden columns above relations, checks below writes. */
package sqe.bridge.secure;
