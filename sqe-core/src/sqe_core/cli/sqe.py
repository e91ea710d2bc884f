"""The command `sqe`: plugins, configuration, API keys, audit, doctor, benchmarks."""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from sqe_core import __version__
from sqe_core.cli.exit_codes import ExitCode
from sqe_core.cli.shell.terminal_text import escape_unprintable
from sqe_core.config.loading import LoadedConfig, load, locate, read
from sqe_core.spi.errors import ConfigError, SqeError

if TYPE_CHECKING:
    from sqe_core.cli.keys import KeyPlace

    _Commands = argparse._SubParsersAction[argparse.ArgumentParser]

_EPILOG = """\
Exit codes: 0 all right, 1 something failed, 2 the command line or the configuration cannot be used."""
_CONFIG_HELP = "the file (default: $SQE_CONFIG, else ./sqe.toml)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What a command sees of the process that it runs in."""

    environ: Mapping[str, str]
    folder: Path
    output: TextIO
    errors: TextIO

    def print(self, text: str) -> None:
        """Write a line of the answer."""
        print(escape_unprintable(text), file=self.output)

    def complain(self, text: str) -> None:
        """Write a line beside the answer."""
        print(escape_unprintable(text), file=self.errors)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command in this process' surroundings."""
    here = Surroundings(environ=os.environ, folder=Path.cwd(), output=sys.stdout, errors=sys.stderr)
    return run(sys.argv[1:] if argv is None else argv, here)


def run(argv: Sequence[str], here: Surroundings) -> int:
    """Run one command and return its exit code; a wrong command line ends in argparse's SystemExit."""
    if argv and argv[0] == "bench":
        # Everything behind it is sqe-bench's own command line, --help included.
        return _guarded(lambda: _bench(argv[1:], here), here)
    arguments = _parser().parse_args(argv)
    command: Callable[[argparse.Namespace, Surroundings], int] = arguments.run
    return _guarded(lambda: command(arguments, here), here)


def _guarded(command: Callable[[], int], here: Surroundings) -> int:
    try:
        code = command()
        here.output.flush()
        return code
    except ConfigError as error:
        for fault in error.faults:
            here.complain(fault)
        return ExitCode.USAGE
    except SqeError as error:
        here.complain(f"sqe: {error}")
        if error.hint:
            here.complain(f"Hint: {error.hint}")
        return ExitCode.STATEMENT_FAILED
    except BrokenPipeError:
        # The reader (`| head`) has what it wanted; Python must not write the rest at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.READER_GONE
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="sqe", description="SQE, the Sovereign Query Engine.", epilog=_EPILOG, allow_abbrev=False
    )
    parser.add_argument("--version", action="version", version=f"sqe {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    plugins = _group(commands, "plugins", "what is installed")
    _command(plugins, "list", "list the installed plugins, without importing them", _list_plugins)

    config = _group(commands, "config", "the configuration")
    _with_config(_command(config, "check", "name every fault of the configuration, or say ok", _check))
    show = _command(config, "show", "print every key with its value, secrets redacted", _show)
    _with_config(show).add_argument("--sources", action="store_true", help="also print where each value came from")

    auth = _group(commands, "auth", "API keys")
    for name, help_text, function, add_options in _KEY_COMMANDS:
        add_options(_with_keys_file(_with_config(_command(auth, name, help_text, function))))

    audit = _group(commands, "audit", "the audit log")
    verify = _command(audit, "verify", "check that nothing of an audit log was changed, removed or added", _verify)
    verify.add_argument("files", nargs="+", type=Path, metavar="FILE", help="the file, or its parts, the oldest first")
    verify.add_argument(
        "--has", action="append", default=[], type=_hash, metavar="HASH", help="a hash that was kept elsewhere"
    )

    _with_config(_command(commands, "doctor", "look for what would keep SQE from working here", _doctor))
    commands.add_parser("bench", help="run benchmarks (sqe-bench)", add_help=False)
    return parser


def _group(commands: _Commands, name: str, help_text: str) -> _Commands:
    parser = commands.add_parser(name, help=help_text, description=help_text)
    return parser.add_subparsers(title="commands", metavar="COMMAND", required=True)


def _command(
    commands: _Commands,
    name: str,
    help_text: str,
    function: Callable[[argparse.Namespace, Surroundings], int],
) -> argparse.ArgumentParser:
    parser = commands.add_parser(name, help=help_text, description=help_text, epilog=_EPILOG, allow_abbrev=False)
    parser.set_defaults(run=function)
    return parser


def _with_config(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    parser.add_argument("-c", "--config", metavar="FILE", help=_CONFIG_HELP)
    return parser


def _with_keys_file(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    parser.add_argument(
        "--keys-file", metavar="FILE", type=Path, help="the keys file (default: that of the configured `api_key`)"
    )
    return parser


def _make_key_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--user", required=True, metavar="U", help="who logs in with the key")
    parser.add_argument("--group", action="append", default=[], metavar="G", help="a group of that user (repeatable)")
    parser.add_argument("--role", action="append", default=[], metavar="R", help="a role of that user (repeatable)")
    parser.add_argument("--description", default="", metavar="D", help="what the key is for")


def _revoke_key_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID", help="the first column of list-keys")


def load_config(arguments: argparse.Namespace, here: Surroundings) -> LoadedConfig:
    """Load what the command line, the environment and the folder name."""
    return load(locate(arguments.config, here.environ, here.folder), environ=here.environ)


def _list_plugins(arguments: argparse.Namespace, here: Surroundings) -> int:
    from sqe_core.plugins.listing import main_list

    return main_list(here.output)


def _check(arguments: argparse.Namespace, here: Surroundings) -> int:
    from sqe_core.bootstrap.checking import check_configuration

    path = locate(arguments.config, here.environ, here.folder)
    checked = check_configuration(read(path, environ=here.environ))
    checked.usable()
    here.print("ok" if path else "ok: there is no file, so these are the defaults and the environment")
    for note in checked.notes:
        here.complain(f"note: {note}")
    return ExitCode.OK


def _show(arguments: argparse.Namespace, here: Surroundings) -> int:
    from sqe_core.config.show import render

    loaded = load_config(arguments, here)
    for line in render(loaded, with_sources=arguments.sources):
        here.print(line)
    return ExitCode.OK


def _make_key(arguments: argparse.Namespace, here: Surroundings) -> int:
    from sqe_core.cli import keys

    key, note = keys.make(
        _key_place(arguments, here),
        user=arguments.user,
        groups=arguments.group,
        roles=arguments.role,
        description=arguments.description,
    )
    here.print(key.reveal())
    here.complain(note)
    return ExitCode.OK


def _list_keys(arguments: argparse.Namespace, here: Surroundings) -> int:
    from sqe_core.cli import keys

    for line in keys.lines(_key_place(arguments, here)):
        here.print(line)
    return ExitCode.OK


def _revoke_key(arguments: argparse.Namespace, here: Surroundings) -> int:
    from sqe_core.cli import keys

    here.print(keys.revoke(_key_place(arguments, here), arguments.id))
    return ExitCode.OK


def _key_place(arguments: argparse.Namespace, here: Surroundings) -> KeyPlace:
    from sqe_core.cli import keys

    if arguments.keys_file is not None:
        return keys.KeyPlace(path=here.folder / arguments.keys_file.expanduser())
    return keys.place_of(load_config(arguments, here))


_KEY_COMMANDS: tuple[
    tuple[str, str, Callable[[argparse.Namespace, Surroundings], int], Callable[[argparse.ArgumentParser], object]],
    ...,
] = (
    ("make-key", "print a new API key once, and keep its hash", _make_key, _make_key_options),
    ("list-keys", "list the API keys of the keys file", _list_keys, lambda parser: None),
    ("revoke-key", "take an API key out of the keys file", _revoke_key, _revoke_key_options),
)


def _hash(text: str) -> str:
    if re.fullmatch(r"[0-9a-fA-F]{64}", text) is None:
        raise argparse.ArgumentTypeError("a hash has 64 hexadecimal digits")
    return text.lower()


def _verify(arguments: argparse.Namespace, here: Surroundings) -> int:
    from sqe_core.cli import audit

    paths = [here.folder / file.expanduser() for file in arguments.files]
    verdict = audit.verify_files(paths, frozenset(arguments.has))
    for line in audit.report(verdict):
        here.print(line)
    return ExitCode.OK if verdict.sound else ExitCode.STATEMENT_FAILED


def _doctor(arguments: argparse.Namespace, here: Surroundings) -> int:
    from sqe_core.cli.doctor import doctor
    from sqe_core.cli.doctor.examinations import Level

    levels = set()
    for finding in doctor.examine(locate(arguments.config, here.environ, here.folder), here.environ):
        here.print(f"{finding.level.value:<8} {finding.subject:<14} {finding.text}")
        here.output.flush()  # some take a moment
        levels.add(finding.level)
    if Level.FAULT in levels:
        return ExitCode.USAGE
    return ExitCode.STATEMENT_FAILED if Level.PROBLEM in levels else ExitCode.OK


def _bench(arguments: Sequence[str], here: Surroundings) -> int:
    if importlib.util.find_spec("sqe_bench") is None:
        here.complain("sqe: the benchmarks are a distribution of their own, which is not installed")
        here.complain("Hint: pip install sqe-bench")
        return ExitCode.STATEMENT_FAILED
    from importlib import import_module

    code: int = import_module("sqe_bench.main").main(list(arguments))
    return code


if __name__ == "__main__":
    sys.exit(main())
