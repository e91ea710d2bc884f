"""TLS without a look at the certificate, for --insecure.

gRPC for Python always checks it, expired ones and host names too. So gRPC speaks to a Unix socket in a folder that only
this user can enter, and a thread carries the bytes to the server through a TLS connection of Python's.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import socket
import ssl
import tempfile
import threading
from pathlib import Path

_PIECE_BYTES = 256 << 10


class UncheckedTls:
    """A tunnel. Connections are made when gRPC makes them."""

    def __init__(self, host: str, port: int, context: ssl.SSLContext) -> None:
        self._host, self._port, self._context = host, port, context
        self._folder = Path(tempfile.mkdtemp(prefix="sqe-"))  # mode 0700
        path = self._folder / "tls"
        self.target = f"unix:{path}"
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(path))
        self._listener.listen()
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._carriers: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(target=self._run, name="sqe-tls", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End every connection. Idempotent."""
        if self._thread.is_alive():
            with contextlib.suppress(RuntimeError):  # it ended just now
                self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._serve())
        finally:
            self._loop.close()

    async def _serve(self) -> None:
        server = await asyncio.start_unix_server(self._accept, sock=self._listener)
        await self._stop.wait()
        server.close()
        for carrier in self._carriers:
            carrier.cancel()
        await asyncio.gather(*self._carriers, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._carriers.add(task)
        try:
            await self._carry(reader, writer)
        except (OSError, asyncio.CancelledError):
            pass  # gRPC sees its connection end, and says what that means
        finally:
            self._carriers.discard(task)
            writer.close()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection(self._host, self._port, ssl=self._context)
        there = asyncio.create_task(_copy(reader, far_writer))
        back = asyncio.create_task(_copy(far_reader, writer))
        try:
            await asyncio.wait((there, back), return_when=asyncio.FIRST_COMPLETED)
        finally:
            there.cancel()
            back.cancel()
            far_writer.close()


async def _copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while piece := await source.read(_PIECE_BYTES):
            target.write(piece)
            await target.drain()
