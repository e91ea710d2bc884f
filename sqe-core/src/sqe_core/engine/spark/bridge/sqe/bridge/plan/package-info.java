/** Plans of Catalyst: described as JSON, rewritten by place, explained, and asked where their columns come from. */
package sqe.bridge.plan;
