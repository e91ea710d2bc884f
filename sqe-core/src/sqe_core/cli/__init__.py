"""The commands: sqe-cli, sqe-server, sqe."""
