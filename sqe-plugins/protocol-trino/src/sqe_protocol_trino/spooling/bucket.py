"""Segments in a bucket of S3, or what speaks like it."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

from pyarrow import fs

from sqe_protocol_trino.config import SpoolingConfig
from sqe_protocol_trino.spooling.storage import StoredSegment

_log = logging.getLogger("sqe_core.trino")
_PROBE = "probe"
_LEFTOVER_AGE = timedelta(days=1)


class Bucket:
    """A prefix of this process in a bucket. Clients never read it: the server does.

    Args:
        config: where it is.

    Raises:
        OSError: it cannot be reached, or not be written to.
    """

    def __init__(self, config: SpoolingConfig) -> None:
        place = urlsplit(config.location or "")
        self._parent = (place.netloc + place.path).rstrip("/")
        self._own = f"{self._parent}/{secrets.token_hex(16)}"
        options: dict[str, Any] = {"background_writes": False}
        if config.s3_endpoint is not None:
            endpoint = urlsplit(config.s3_endpoint)
            options |= {"scheme": endpoint.scheme, "endpoint_override": endpoint.netloc}
        if config.s3_region is not None:
            options["region"] = config.s3_region
        if config.s3_access_key is not None and config.s3_secret_key is not None:
            options["access_key"] = config.s3_access_key.reveal()
            options["secret_key"] = config.s3_secret_key.reveal()
        self._files = fs.S3FileSystem(**options)
        self.write(_PROBE, ())
        self.delete(_PROBE)
        self._remove_leftovers()

    def has_room(self, size: int) -> bool:
        """Whether as many bytes more would leave enough for others: buckets do not fill up."""
        return True

    def write(self, name: str, frames: Iterable[bytes]) -> None:
        """Keep a segment; it is there when all of it is."""
        with self._files.open_output_stream(f"{self._own}/{name}") as file:
            for frame in frames:
                file.write(frame)

    def open(self, name: str) -> StoredSegment:
        """Read a segment."""
        opened: StoredSegment = self._files.open_input_stream(f"{self._own}/{name}")
        return opened

    def delete(self, name: str) -> None:
        """Forget a segment, which may be gone."""
        with suppress(FileNotFoundError):
            self._files.delete_file(f"{self._own}/{name}")

    def close(self) -> None:
        """Delete what is left."""
        try:
            self._files.delete_dir_contents(self._own, missing_dir_ok=True)
        except OSError as error:
            _log.warning("spooled segments could not be removed: %s", error)

    def _remove_leftovers(self) -> None:
        """Delete what no server can want any more. Others may use the prefix: only what is old."""
        before = datetime.now(UTC) - _LEFTOVER_AGE
        for found in self._files.get_file_info(fs.FileSelector(self._parent, allow_not_found=True, recursive=True)):
            if found.is_file and found.mtime is not None and found.mtime < before:
                self._files.delete_file(found.path)
