"""`sqe doctor`: what keeps SQE from working here."""
