"""`sqe-cli`: SQL at a prompt, from the command line, or from scripts."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Sequence
from types import FrameType
from typing import TYPE_CHECKING

from sqe_core.cli.arguments import Options, ServerOptions, parse
from sqe_core.cli.exit_codes import ExitCode, UsageError
from sqe_core.cli.shell.console import Console, OutputError

if TYPE_CHECKING:
    from sqe_core.cli.backend import Backend

OpenBackend = Callable[[Options], "Backend"]


class _Terminated(BaseException):
    """SIGTERM or SIGHUP: end the engine, then this process. Like KeyboardInterrupt it is no Exception."""


def main(arguments: Sequence[str] | None = None, open_backend: OpenBackend | None = None) -> int:
    try:
        options = parse(sys.argv[1:] if arguments is None else arguments)
        return _main(options, open_backend or _open)
    except UsageError as error:
        print(f"sqe-cli: {error}", file=sys.stderr)
        return ExitCode.USAGE


def _main(options: Options, open_backend: OpenBackend) -> int:
    console = Console.of_process()
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _on_termination)
    try:
        if options.server is not None and options.server.logout:
            return _log_out(options.server, console)
        if not options.sources and sys.stdin.isatty():
            return _interactive(options, console, open_backend)
        return _batch(options, console, open_backend)
    except OutputError as error:
        _forget_output()
        if error.reader_gone:
            return ExitCode.READER_GONE
        print(f"sqe-cli: {error}", file=sys.stderr)
        return ExitCode.STATEMENT_FAILED
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    except _Terminated:
        return ExitCode.TERMINATED


def _batch(options: Options, console: Console, open_backend: OpenBackend) -> int:
    """Run the texts of the command line, or of standard input, and leave."""
    from sqe_core.cli.shell.commands import Context
    from sqe_core.cli.shell.execution import Display, Executor, Outcome
    from sqe_core.cli.shell.script import Script, skip_blank

    texts = [(text, name) for text, name in _texts(options) if skip_blank(text, 0) < len(text)]
    if not texts and (options.server is None or options.server.login is None):
        return ExitCode.OK
    backend = _opened(options, open_backend)
    try:
        executor = Executor(backend, console, Display(format=options.format), raw_errors=options.raw_errors)
        context = Context(executor=executor, connection=lambda: _where(options, backend))
        script = Script(context, stop_on_error=options.stop_on_error)
        code = ExitCode.OK
        for text, name in texts:
            outcome = script.run(text, name=name)
            if outcome is Outcome.INTERRUPTED:
                code = ExitCode.INTERRUPTED
                break
            if outcome is Outcome.FAILED:
                code = ExitCode.STATEMENT_FAILED
                if options.stop_on_error:
                    break
        unwritten = executor.finish() is Outcome.FAILED
        return ExitCode.STATEMENT_FAILED if unwritten and code is ExitCode.OK else code
    finally:
        backend.close()


def _texts(options: Options) -> list[tuple[str, str]]:
    """Read everything before anything runs: a missing file must not leave half of the work done."""
    from sqe_core.cli.shell.script import read_script, read_script_file

    if not options.sources:
        return [(read_script("standard input", sys.stdin.buffer), "stdin")]
    texts = []
    for source in options.sources:
        if source.kind == "execute":
            texts.append((source.value, ""))
        elif source.value == "-":
            texts.append((read_script("standard input", sys.stdin.buffer), "stdin"))
        else:
            texts.append((read_script_file(source.value), source.value))
    return texts


def _interactive(options: Options, console: Console, open_backend: OpenBackend) -> int:
    """Open the shell. The prompt comes first, the warehouse behind it; a server is signed in to before."""
    from sqe_core import __version__
    from sqe_core.cli.embedded import LateBackend
    from sqe_core.cli.shell.execution import Display, Executor
    from sqe_core.cli.shell.shell import Shell

    if options.server is not None:
        remote = _opened(options, open_backend)
        where = _where(options, remote)
        backend = LateBackend(lambda: remote)
        backend.start()
    else:
        backend = LateBackend(lambda: _opened(options, open_backend))
        where = _where(options, backend)
    console.tell(f"SQE {__version__}, {where}. Type .help for help.")
    executor = Executor(
        backend,
        console,
        Display(format=options.format, timer=True),
        interactive=True,
        raw_errors=options.raw_errors,
    )
    try:
        Shell(backend, executor, console, stop_on_error=options.stop_on_error, connection=where).run()
        executor.finish()
    finally:
        executor.close()
        backend.close()
    return ExitCode.OK


def _open(options: Options) -> Backend:
    if options.server is None:
        from sqe_core.cli.embedded import open_embedded

        return open_embedded(options)
    from sqe_core.cli.remote.grpc_log import silence_grpc

    silence_grpc()
    from sqe_core.cli.remote.backend import open_remote

    return open_remote(options.server, os.environ, interactive=not options.sources and sys.stdin.isatty())


def _log_out(server: ServerOptions, console: Console) -> int:
    from sqe_core.cli.login.flow import log_out
    from sqe_core.cli.login.http import LoginError

    try:
        return ExitCode.OK if log_out(server, os.environ, console.tell) else ExitCode.STATEMENT_FAILED
    except LoginError as error:
        raise UsageError(error.message) from None


def _where(options: Options, backend: Backend) -> str:
    """How people are told where their statements run."""
    server = options.server
    if server is None:
        return "embedded, in memory, kept until you leave" if options.in_memory else f"embedded, {options.warehouse}"
    from sqe_core.cli.remote.backend import RemoteBackend

    if not isinstance(backend, RemoteBackend):
        return server.address
    return f"{backend.server_name()} at {server.address}, signed in {backend.signed_in}"


def _opened(options: Options, open_backend: OpenBackend) -> Backend:
    from sqe_core.spi.errors import StartupError

    try:
        return open_backend(options)
    except StartupError as error:
        raise UsageError("; ".join(error.message.splitlines())) from error


def _on_termination(number: int, frame: FrameType | None) -> None:
    raise _Terminated


def _forget_output() -> None:
    """Nobody reads standard output any more: what Python would still flush at its end goes nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


if __name__ == "__main__":
    sys.exit(main())
