"""All the rules of the writer; importing this module registers them."""

from __future__ import annotations

from sqe_core.sql.spark import write_calls, write_comparisons, write_dml, write_operators, write_queries
from sqe_core.sql.spark.writer import Writer

__all__ = ["Writer", "write_calls", "write_comparisons", "write_dml", "write_operators", "write_queries"]
