"""`sqe doctor`: what would keep SQE from working here, and which exact pair is bad."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from sqe_core import __version__
from sqe_core.bootstrap import engine_options
from sqe_core.cli.examinations import EXAMINATIONS, Finding, Level, Patient
from sqe_core.cli.plugin_settings import check_plugin_settings
from sqe_core.config.loading import LoadedConfig, load
from sqe_core.config.unbuilt import check_built, without_effect
from sqe_core.engine.spark.options import default_cache_dir
from sqe_core.spi.errors import ConfigError


def examine(path: Path | None, environ: Mapping[str, str]) -> Iterator[Finding]:
    """Look at everything; a configuration with faults does not keep the rest from being looked at."""
    yield Finding(level=Level.OK, subject="SQE", text=f"sqe-core {__version__}")
    try:
        loaded = load(path, environ=environ)
    except ConfigError as error:
        for fault in error.faults:
            yield Finding(level=Level.FAULT, subject="configuration", text=fault)
        # The defaults stand in, so that a typing error does not hide a missing Java.
        loaded = load(None, environ={})
    else:
        yield from _configuration(loaded, path)
    options = engine_options(loaded.config.engine)
    patient = Patient(
        config=loaded.config,
        options=options if loaded.config.engine.cache_dir else replace(options, cache_dir=default_cache_dir(environ)),
        environ=environ,
        home=Path(environ.get("HOME") or Path.home()),
    )
    for examination in EXAMINATIONS:
        yield from examination(patient)


def _configuration(loaded: LoadedConfig, path: Path | None) -> Iterator[Finding]:
    subject = "configuration"
    yield Finding(level=Level.OK, subject=subject, text=str(path) if path else "no file; defaults and environment")
    settings = check_plugin_settings(loaded)
    for fault in settings.faults:
        yield Finding(level=Level.FAULT, subject=subject, text=fault)
    for note in (*settings.notes, *check_built(loaded.config, loaded.sources, settings.consumed)):
        yield Finding(level=Level.NOTE, subject="server", text=f"would not start: {note}")
    for note in without_effect(loaded.config, loaded.sources, settings.consumed):
        yield Finding(level=Level.NOTE, subject=subject, text=note)
