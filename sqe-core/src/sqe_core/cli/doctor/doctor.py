"""`sqe doctor`: what would keep SQE from working here, and which exact pair is bad."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from pathlib import Path

from sqe_core import __version__
from sqe_core.bootstrap import engine_options
from sqe_core.bootstrap.checking import check_configuration
from sqe_core.cli.doctor.examinations import EXAMINATIONS, Finding, Level, Patient
from sqe_core.cli.doctor.reachability import examine_servers
from sqe_core.config.checks import PRODUCTION
from sqe_core.config.loading import LoadedConfig, load, read
from sqe_core.engine.spark.options import default_cache_dir
from sqe_core.spi.errors import ConfigError

_WAIVERS = ("allow_", "tls_ends_upstream")


def examine(path: Path | None, environ: Mapping[str, str]) -> Iterator[Finding]:
    """Look at everything; a configuration with faults does not keep the rest from being looked at."""
    yield Finding(Level.OK, "SQE", f"sqe-core {__version__}")
    reading = read(path, environ=environ)
    checked = check_configuration(reading)
    yield from (Finding(Level.FAULT, "configuration", fault) for fault in checked.faults)
    if not checked.faults:
        yield Finding(Level.OK, "configuration", str(path) if path else "no file; defaults and environment")
    yield from (Finding(Level.NOTE, "configuration", note) for note in checked.notes)
    loaded = checked.loaded or _without_faults(path, environ)
    if not reading.faults:
        yield from _weaknesses(loaded)
    options = engine_options(loaded.config.engine)
    patient = Patient(
        config=loaded.config,
        options=options if loaded.config.engine.cache_dir else replace(options, cache_dir=default_cache_dir(environ)),
        environ=environ,
        home=Path(environ.get("HOME") or Path.home()),
    )
    for examination in EXAMINATIONS:
        yield from examination(patient)
    yield from examine_servers(loaded)


def _without_faults(path: Path | None, environ: Mapping[str, str]) -> LoadedConfig:
    """What can be looked at all the same: the file where only production refuses it, else the defaults.

    So a weak setting does not hide an identity provider that is down, and a typing error not a missing Java.
    """
    try:
        return load(path, environ={**environ, "SQE_PRODUCTION_MODE": "false"})
    except ConfigError:
        return load(None, environ={})


def _weaknesses(loaded: LoadedConfig) -> Iterator[Finding]:
    """What production_mode would refuse, and what it was told to accept."""
    subject = "production"
    if loaded.config.coordinator.production_mode:
        for waiver in fields(loaded.config.security):
            if waiver.name.startswith(_WAIVERS) and getattr(loaded.config.security, waiver.name):
                text = f"accepted on request: security.{waiver.name}"
                yield Finding(Level.NOTE, subject, text)
        return
    weak = [fault for run in PRODUCTION for fault in run(loaded.config)]
    for fault in weak:
        text = str(fault).replace(": refused by production_mode: ", ": ")
        yield Finding(Level.NOTE, subject, f"would be refused: {text}")
    if loaded.path is not None and not weak:
        text = "nothing would be refused; set coordinator.production_mode = true"
        yield Finding(Level.NOTE, subject, text)
