"""A configuration file of a test, read; `config_files.faults` when it cannot be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sqe_core.config import LoadedConfig, load
from sqe_core.spi.errors import ConfigError


def written(tmp_path: Path, text: str | bytes, environ: dict[str, str] | None = None, **flags: Any) -> LoadedConfig:
    file = tmp_path / "sqe.toml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return load(file, environ=environ or {}, flags={key.replace("__", "."): value for key, value in flags.items()})


def faults(tmp_path: Path, text: str | bytes, environ: dict[str, str] | None = None) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as caught:
        written(tmp_path, text, environ)
    return tuple(fault.removeprefix(f"{tmp_path}/") for fault in caught.value.faults)
