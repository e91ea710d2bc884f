"""The catalog `system`: rows about this server, of ours and nobody's to change.

The name is reserved; a single catalog whose warehouse is called so has it all the same, and keeps it.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import pyarrow as pa

from sqe_core.catalog.registry import Mount
from sqe_core.spi.catalog import CatalogBackend
from sqe_core.spi.errors import NotSupportedError
from sqe_core.spi.identity import Identity

RUNTIME = ("runtime",)

_TEXT, _LONG, _TIME = pa.string(), pa.int64(), pa.timestamp("us", tz="UTC")

TABLES: Mapping[str, pa.Schema] = MappingProxyType(
    {
        "queries": pa.schema(
            [
                ("query_id", _TEXT),
                ("state", _TEXT),
                ("user", _TEXT),
                ("source", _TEXT),
                ("query", _TEXT),
                ("resource_group_id", _TEXT),
                ("queued_time_ms", _LONG),
                ("analysis_time_ms", _LONG),
                ("planning_time_ms", _LONG),
                ("execution_time_ms", _LONG),
                ("created", _TIME),
                ("started", _TIME),
                ("last_heartbeat", _TIME),
                ("end", _TIME),
                ("output_rows", _LONG),
                ("bytes_scanned", _LONG),
                ("rows_scanned", _LONG),
                ("spill_bytes", _LONG),
                ("peak_memory_bytes", _LONG),
                ("trace_id", _TEXT),
                ("error_type", _TEXT),
                ("error_code", _TEXT),
                ("rows_written", _LONG),
            ]
        ),
        "sessions": pa.schema(
            [
                ("session_id", _TEXT),
                ("user", _TEXT),
                ("protocol", _TEXT),
                ("client_address", _TEXT),
                ("state", _TEXT),
                ("created", _TIME),
                ("idle_secs", _LONG),
                ("expires", _TIME),
                ("current", pa.bool_()),
            ]
        ),
    }
)
"""The tables of `system.runtime`."""


class _Ours(CatalogBackend):
    """Serves no engine: its rows are put into statements."""

    read_only = True
    supports_views = False

    def spark_properties(self, identity: Identity) -> Mapping[str, str]:
        raise NotSupportedError(f"Catalog {SYSTEM.name} belongs to SQE and cannot be changed")


SYSTEM = Mount(name="system", backend=_Ours())
"""What `system` means where no catalog of that name is mounted."""
