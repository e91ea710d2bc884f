"""Trino's HTTP protocol, over SQE's pipeline."""

__version__ = "0.1.0"
