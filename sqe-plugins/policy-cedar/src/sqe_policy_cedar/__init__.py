"""Cedar policies for SQE, evaluated in process."""

__version__ = "0.1.0"
