"""Rows that a client brings, as record batches or as parameters."""
