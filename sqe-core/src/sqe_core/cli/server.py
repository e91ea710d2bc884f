"""`sqe-server`: reads its configuration, serves until it is told to end, and lets running statements finish first."""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from sqe_core import __version__
from sqe_core.cli.exit_codes import ExitCode
from sqe_core.cli.remote.grpc_log import silence_grpc
from sqe_core.cli.shell.terminal_text import escape_unprintable
from sqe_core.spi.errors import ConfigError, SqeError, StartupError

if TYPE_CHECKING:
    from sqe_core.config.loading import LoadedConfig
    from sqe_core.server import Server

_log = logging.getLogger("sqe_core.server")

_LOOK_SECS = 0.25

_EPILOG = """\
SIGTERM, SIGINT and SIGHUP end the server: nothing new is taken, running statements get [coordinator]
shutdown_drain_secs. A second signal ends it at once.
Exit codes: 0 ended by a signal, 1 the server cannot serve (a port is taken, the engine does not
start), 2 the command line or the configuration cannot be used, 129, 130 and 143 ended at once by a second SIGHUP,
SIGINT or SIGTERM."""


def main(arguments: Sequence[str] | None = None) -> int:
    return _run(_parser(None).parse_args(arguments))


def coordinator(arguments: Sequence[str] | None = None) -> int:
    """Run `sqe-coordinator [FILE]`, short for `sqe-server --mode coordinator`."""
    return _run(_short_options("coordinator", arguments))


def worker(arguments: Sequence[str] | None = None) -> int:
    """Run `sqe-worker [FILE]`, short for `sqe-server --mode worker`."""
    return _run(_short_options("worker", arguments))


def _run(options: argparse.Namespace) -> int:
    silence_grpc()
    stop = _Stop()
    stop.install()
    try:
        loaded, notes = configuration(options, os.environ, Path.cwd())
        return _serve(loaded, notes, stop)
    except ConfigError as error:
        for fault in error.faults:
            _complain(fault)
        return ExitCode.USAGE
    except StartupError as error:
        _complain(f"sqe-server: {error.message}{f' ({error.hint})' if error.hint else ''}")
        return ExitCode.STATEMENT_FAILED


def configuration(
    options: argparse.Namespace, environ: Mapping[str, str], folder: Path
) -> tuple[LoadedConfig, tuple[str, ...]]:
    """Read the configuration, and say which of its keys change nothing.

    Raises ConfigError for what is wrong in it, and for what this version cannot do.
    """
    from sqe_core.bootstrap.checking import check_configuration
    from sqe_core.config.loading import locate, read

    path = locate(options.config, environ, folder)
    reading = read(path, environ=environ, flags={"coordinator.mode": options.mode})
    checked = check_configuration(reading, rehearsed=False)
    return checked.usable(), checked.notes


def _serve(loaded: LoadedConfig, notes: Sequence[str], stop: _Stop) -> int:
    from sqe_core.bootstrap import serve
    from sqe_core.observe.logging import configure_logging, log_stray_errors

    configure_logging(loaded.log_level)
    log_stray_errors()
    server = serve(loaded)
    for note in notes:
        _log.warning("%s", note)
    server.start()
    code = _wait(server, stop)
    server.stop()
    return code


def _wait(server: Server, stop: _Stop) -> int:
    """Wait for a signal, or for the engine to fail for good: a server that cannot run statements is no server."""
    while not stop.wanted.wait(_LOOK_SECS):
        server.watch_engine()
        failure = server.engine_failure
        if failure is not None:
            message = str(failure) if isinstance(failure, SqeError) else type(failure).__name__
            hint = getattr(failure, "hint", None)
            _log.critical(
                "the engine cannot start: %s%s",
                message,
                f" ({hint})" if hint else "",
                extra={"fields": {"event": "engine_failed"}},
            )
            return ExitCode.STATEMENT_FAILED
    _log.info("%s received", stop.signal_name)
    return ExitCode.OK


class _Stop:
    """The wish to end, from a signal. A second one does not ask."""

    def __init__(self) -> None:
        self.wanted = threading.Event()
        self.signal_name = ""

    def install(self) -> None:
        """Listen to signals from now on; those that the parent ignores, as nohup does, stay ignored."""
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._on_signal)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self.wanted.is_set():
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)
        self.signal_name = signal.Signals(number).name
        self.wanted.set()


def _parser(mode: str | None) -> argparse.ArgumentParser:
    """Describe `sqe-server`, or the short form of it for one mode."""
    name = f"sqe-{mode or 'server'}"
    parser = argparse.ArgumentParser(
        prog=name,
        description=f"Short for sqe-server --mode {mode}." if mode else "The SQE server.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"{name} {__version__}")
    config_help = "the same" if mode else "the configuration (default: $SQE_CONFIG, else ./sqe.toml)"
    parser.add_argument("-c", "--config", metavar="FILE", help=config_help)
    if mode is None:
        parser.add_argument("--mode", choices=("coordinator", "worker"), help="what this process does")
    else:
        parser.set_defaults(mode=mode)
        parser.add_argument("file", metavar="FILE", nargs="?", help="the configuration (default: as of sqe-server)")
    return parser


def _short_options(mode: str, arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = _parser(mode)
    options = parser.parse_args(arguments)
    if options.file and options.config:
        parser.error("the configuration is given twice")
    options.config = options.config or options.file
    return options


def _complain(text: str) -> None:
    print(escape_unprintable(text), file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
