"""`sqe-server`: reads its configuration and says what keeps it from serving."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from sqe_core import __version__
from sqe_core.cli.exit_codes import ExitCode
from sqe_core.cli.terminal_text import escape_unprintable
from sqe_core.spi.errors import ConfigError

NO_PROTOCOL = (
    "sqe-server: this version of SQE has no wire protocol yet, so there is nothing to serve;"
    " sqe-cli runs the engine in its own process"
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `sqe-server` and return its exit code."""
    options = _parser().parse_args(arguments)
    try:
        for line in faults(options, os.environ, Path.cwd()):
            _complain(line)
    except ConfigError as error:
        for fault in error.faults:
            _complain(fault)
        return ExitCode.USAGE
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    return ExitCode.STATEMENT_FAILED


def faults(options: argparse.Namespace, environ: Mapping[str, str], folder: Path) -> list[str]:
    """Name all that a server would need and this version does not have. Raises ConfigError for a wrong configuration.

    There is always one: nothing can be served before a wire protocol exists.
    """
    from sqe_core.cli.plugin_settings import check_plugin_settings
    from sqe_core.config.loading import load, locate
    from sqe_core.config.unbuilt import check_built

    loaded = load(locate(options.config, environ, folder), environ=environ, flags={"coordinator.mode": options.mode})
    settings = check_plugin_settings(loaded)
    if settings.faults:
        raise ConfigError(settings.faults)
    # Without a file only the defaults could be named, which nobody asked for.
    asked = check_built(loaded.config, loaded.sources) if loaded.path is not None else ()
    return [*asked, NO_PROTOCOL]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="sqe-server",
        description="The SQE server.",
        epilog="Exit codes: 1 the server cannot serve, 2 the command line or the configuration cannot be used.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"sqe-server {__version__}")
    parser.add_argument(
        "-c", "--config", metavar="FILE", help="the configuration (default: $SQE_CONFIG, else ./sqe.toml)"
    )
    parser.add_argument("--mode", choices=("coordinator", "worker"), help="what this process does")
    return parser


def _complain(text: str) -> None:
    print(escape_unprintable(text), file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
