"""Iceberg REST catalogs for SQE: each request carries the token of the person who sent the statement."""

__version__ = "0.1.0"
