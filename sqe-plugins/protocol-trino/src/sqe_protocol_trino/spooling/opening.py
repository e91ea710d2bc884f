"""Opens the place of segments when the server starts."""

from __future__ import annotations

import tempfile
from pathlib import Path

from sqe_core.spi import ProtocolContext, StartupError
from sqe_protocol_trino.config import SpoolingConfig
from sqe_protocol_trino.spooling.folder import Folder
from sqe_protocol_trino.spooling.segments import Segments
from sqe_protocol_trino.spooling.storage import Storage

_NAME = "trino-segments"


def open_segments(config: SpoolingConfig, context: ProtocolContext) -> Segments | None:
    """Return what keeps segments; None where there are none.

    Where every connection needs a client certificate there are none: clients fetch segments without theirs.

    Raises:
        StartupError: the place cannot be used.
    """
    if not config.enabled or (context.tls is not None and context.tls.ca_file is not None):
        return None
    try:
        return Segments(config, _storage(config, context))
    except OSError as error:
        place = config.location or "the folder of spooled results"
        raise StartupError(f"Results cannot be spooled to {place}: {error.strerror or error}") from error


def _storage(config: SpoolingConfig, context: ProtocolContext) -> Storage:
    if config.location is not None and config.location.startswith("s3://"):
        from sqe_protocol_trino.spooling.bucket import Bucket

        return Bucket(config)
    if config.location is not None:
        return Folder(Path(config.location), config.min_free_bytes)
    if context.state_dir is not None:
        return Folder(context.state_dir / _NAME, config.min_free_bytes)
    return Folder(Path(tempfile.mkdtemp(prefix="sqe-trino-")), config.min_free_bytes, temporary=True)
