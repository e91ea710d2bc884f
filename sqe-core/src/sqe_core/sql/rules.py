"""All the rules of the writer; importing this module registers them."""

from __future__ import annotations

from sqe_core.sql import call_writer, comparison_writer, dml_writer, operator_writer, query_writer
from sqe_core.sql.writer import Writer

__all__ = ["Writer", "call_writer", "comparison_writer", "dml_writer", "operator_writer", "query_writer"]
