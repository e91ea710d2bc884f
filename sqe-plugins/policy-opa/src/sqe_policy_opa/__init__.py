"""Open Policy Agent as a policy engine of SQE."""

__version__ = "0.1.0"
