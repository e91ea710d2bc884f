"""Acme's plugin for SQE."""

__version__ = "1.0.0"
