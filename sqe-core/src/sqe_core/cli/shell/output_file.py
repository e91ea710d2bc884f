"""`.output FILE`: where results go in place of standard output."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from sqe_core.spi.errors import ErrorCode, UserError

_BACK = "write .output to have results here again"


class OutputFile:
    """A file that is written as results come. What cannot be written is an error at once, and from then on.

    Args:
        name: as it was typed; what the file held is gone.

    Raises:
        UserError: it cannot be written.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._failure: str | None = None
        self._holds_parquet = False
        try:
            self._file: BinaryIO = Path(name).expanduser().open("wb")
        except (OSError, RuntimeError, ValueError) as error:
            raise UserError(f"cannot write {name}: {_reason(error)}", code=ErrorCode.INVALID_ARGUMENTS) from error

    def write(self, text: str) -> None:
        """Write a piece of a result. Raises UserError."""
        if self._holds_parquet:
            raise _one_result(self.name)
        self._write(text.encode("utf-8", "backslashreplace"))

    def begin_parquet(self) -> Callable[[bytes], None]:
        """Return what writes a Parquet file, which holds one result and nothing else. Raises UserError."""
        self._raise()
        if self._holds_parquet or self._file.tell():
            raise _one_result(self.name)
        self._holds_parquet = True
        return self._write

    def _write(self, data: bytes) -> None:
        self._raise()
        try:
            self._file.write(data)
        except OSError as error:
            self._fail(error)

    def flush(self) -> None:
        """Hand over what is buffered. Raises UserError."""
        self._raise()
        try:
            self._file.flush()
        except OSError as error:
            self._fail(error)

    def close(self) -> None:
        """End it. Raises UserError: not all of it was written."""
        try:
            self._file.close()
        except OSError as error:
            if self._failure is None:
                self._fail(error)

    def _fail(self, error: OSError) -> None:
        self._failure = _reason(error)
        self._raise()

    def _raise(self) -> None:
        if self._failure is not None:
            raise UserError(
                f"cannot write {self.name}: {self._failure}; what it holds is not complete",
                code=ErrorCode.INVALID_ARGUMENTS,
                hint=_BACK,
            )


def _one_result(name: str) -> UserError:
    return UserError(
        f"{name} cannot take a result more: a Parquet file holds one, and nothing else",
        code=ErrorCode.INVALID_ARGUMENTS,
        hint="name another file with .output",
    )


def _reason(error: Exception) -> str:
    return error.strerror if isinstance(error, OSError) and error.strerror else str(error)
