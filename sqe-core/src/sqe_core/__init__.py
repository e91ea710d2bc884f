"""SQE, the Sovereign Query Engine. `sqe_core.spi` is all that a plugin may import."""

__version__ = "0.1.0"
