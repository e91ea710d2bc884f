"""Where the command line's log goes: a file, so that it never mixes with results; with SQE_LOG to standard error."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from pathlib import Path

from sqe_core.cli.exit_codes import UsageError
from sqe_core.config.environment import log_level

_LARGEST = 1 << 20
_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


def configure(environment: Mapping[str, str], file: Path) -> None:
    """Send warnings and errors to a private file, or what SQE_LOG asks for to standard error."""
    level, faults = log_level(environment)
    if faults:
        raise UsageError(f"SQE_LOG: {faults[0].message}")
    root = logging.getLogger()
    for old in [handler for handler in root.handlers if getattr(handler, "of_sqe_cli", False)]:
        root.removeHandler(old)
        old.close()
    if "SQE_LOG" in environment:
        handler: logging.Handler = logging.StreamHandler()
        logging.getLogger("sqe_core").setLevel("DEBUG" if level == "trace" else level.upper())
    else:
        handler = _file_handler(file)
        logging.getLogger("sqe_core").setLevel(logging.WARNING)
    handler.of_sqe_cli = True  # type: ignore[attr-defined]
    handler.setFormatter(logging.Formatter(_FORMAT))
    root.addHandler(handler)


def _file_handler(file: Path) -> logging.Handler:
    """Nobody else may read the file: an engine's errors quote data. Without a place to write, nothing is kept."""
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if file.exists() and file.stat().st_size > _LARGEST:
            file.replace(file.with_suffix(".log.1"))
        os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600))
        return logging.FileHandler(file, encoding="utf-8", delay=True)
    except OSError:
        return logging.NullHandler()
