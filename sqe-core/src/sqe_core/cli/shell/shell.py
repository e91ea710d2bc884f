"""The interactive shell."""

from __future__ import annotations

import contextlib
import os
import shlex
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from prompt_toolkit.application import run_in_terminal
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.input import Input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import Lexer, PygmentsLexer, SimpleLexer
from prompt_toolkit.output import Output, create_output
from prompt_toolkit.shortcuts import PromptSession

from sqe_core.cli.embedded import LateBackend
from sqe_core.cli.exit_codes import UsageError
from sqe_core.cli.shell.commands import Context, Leave, command_error
from sqe_core.cli.shell.completion import SqlCompleter
from sqe_core.cli.shell.console import Console
from sqe_core.cli.shell.execution import Executor, Outcome
from sqe_core.cli.shell.history import open_history
from sqe_core.cli.shell.progress import EngineSteps
from sqe_core.cli.shell.script import Script, read_script_file

if TYPE_CHECKING:
    from collections.abc import Hashable

    from prompt_toolkit.document import Document
    from prompt_toolkit.formatted_text import StyleAndTextTuples

PROMPT = "sqe> "
CONTINUATION = "...> "
HISTORY = "~/.sqe_history"

_STATE_SECONDS = 0.2


class _SqlLexer(Lexer):
    """Highlights SQL; Pygments is imported with the first character that somebody types."""

    def __init__(self) -> None:
        self._plain = SimpleLexer()
        self._sql: PygmentsLexer | None = None

    def lex_document(self, document: Document) -> Callable[[int], StyleAndTextTuples]:
        if not document.text:
            return self._plain.lex_document(document)
        if self._sql is None:
            from pygments.lexers.sql import SqlLexer  # type: ignore[import-untyped]

            self._sql = PygmentsLexer(SqlLexer)
        return self._sql.lex_document(document)

    def invalidation_hash(self) -> Hashable:
        return id(self)


class Shell:
    def __init__(
        self,
        backend: LateBackend,
        executor: Executor,
        console: Console,
        *,
        stop_on_error: bool = False,
        connection: str = "",
        history: Path | None = None,
        terminal_input: Input | None = None,
        terminal_output: Output | None = None,
    ) -> None:
        self._backend = backend
        self._executor = executor
        self._console = console
        self._steps = EngineSteps()
        backend.on_engine_progress(self._step)
        self._script = Script(
            Context(executor=executor, connection=lambda: connection, read=self._read_file, edit=self._edit),
            stop_on_error=stop_on_error,
        )
        self._started = False
        self._next_text = ""
        self._last_text = ""
        self._session: PromptSession[str] = PromptSession(
            message=PROMPT,
            multiline=True,
            prompt_continuation=lambda width, line, wrapped: " " * width if wrapped else CONTINUATION,
            lexer=_SqlLexer(),
            history=open_history(history or Path(HISTORY).expanduser()),
            auto_suggest=AutoSuggestFromHistory(),
            completer=SqlCompleter(backend.completions, backend.columns, lambda: backend.current),
            complete_in_thread=True,
            complete_while_typing=False,
            enable_open_in_editor=True,
            key_bindings=self._bindings(),
            rprompt=self._engine_note,
            input=terminal_input,
            # With standard output in a file, the prompt still belongs to the terminal.
            output=terminal_output or create_output(always_prefer_tty=True),
        )

    def run(self) -> None:
        """Stay until the person leaves. Raises what kept the warehouse from opening."""
        # The warehouse opens behind the prompt: its imports would keep the prompt from being drawn.
        self._session.app.after_render += self._start
        try:
            while True:
                try:
                    default, self._next_text = self._next_text, ""
                    text = self._session.prompt(default=default)
                except KeyboardInterrupt:
                    continue
                except EOFError:
                    return
                if not self._run_text(text):
                    return
                if self._backend.error is not None:
                    raise self._backend.error
        finally:
            self._session.output.clear_title()
            self._session.output.flush()

    def _start(self, _: object) -> None:
        if not self._started:
            self._started = True
            self._backend.start()
            threading.Thread(target=self._watch_engine, name="sqe-engine-note", daemon=True).start()

    def _run_text(self, text: str) -> bool:
        """Run what was typed; False when it says to leave."""
        try:
            self._script.run(text)
        except Leave:
            return False
        if text.strip() and not text.lstrip().startswith("\\e"):
            self._last_text = text
        self._session.output.set_title("sqe " + ".".join(part for part in self._backend.current if part))
        return True

    def _bindings(self) -> KeyBindings:
        bindings = KeyBindings()

        @bindings.add("enter")
        def _(event: KeyPressEvent) -> None:
            buffer = event.current_buffer
            if buffer.complete_state is not None and buffer.complete_state.current_completion is not None:
                buffer.complete_state = None
                return
            try:
                complete = self._script.is_complete(buffer.text)
            except Exception as error:  # noqa: BLE001 whatever kept the warehouse from opening ends the prompt
                self._leave_with(error)
                return
            if complete:
                buffer.validate_and_handle()
            else:
                self._tell_of_stray_command(buffer.text)
                buffer.newline(copy_margin=False)

        return bindings

    def _tell_of_stray_command(self, text: str) -> None:
        command = self._script.stray_command(text)
        if command is not None:
            note = f"{command} is part of the statement above: end that with ; first, or clear it with Ctrl-C"
            run_in_terminal(lambda: self._console.tell(note))

    def _engine_note(self) -> FormattedText:
        state = self._backend.state_name
        note = {"preparing": "preparing the engine", "starting": "the engine is starting", "failed": "no engine"}
        text = self._steps.describe() if state == "preparing" else ""
        return FormattedText([("ansibrightblack", text or note.get(state, ""))])

    def _step(self, what: str, share: float | None) -> None:
        self._steps.listen(what, share)
        self._redraw()

    def _redraw(self) -> None:
        app = self._session.app
        if app.is_running:
            app.invalidate()

    def _watch_engine(self) -> None:
        """Keep the note at the prompt true until the engine is up; leave the prompt when it cannot be opened."""
        while self._backend.state_name in ("stopped", "preparing", "starting"):
            time.sleep(_STATE_SECONDS)
        error, loop = self._backend.error, self._session.app.loop
        if error is not None and loop is not None:
            # Between two prompts the loop is closed; then `run` finds the error.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(self._leave_with, error)
        self._redraw()

    def _leave_with(self, error: BaseException) -> None:
        app = self._session.app
        if app.is_running and not app.is_done:
            app.exit(exception=error)

    def _read_file(self, name: str) -> Outcome:
        return self._script.run(_text_of(name), name=name)

    def _edit(self) -> Outcome:
        """Write the last statement anew in the person's editor; it comes back to the prompt, not to the engine."""
        editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
        handle, name = tempfile.mkstemp(suffix=".sql", prefix="sqe-")
        path = Path(name)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as stream:
                stream.write(self._last_text)
            try:
                done = subprocess.run([*shlex.split(editor), name], check=False)
            except (OSError, ValueError) as error:
                raise command_error(f"cannot start the editor {editor!r}: {error}", hint="set EDITOR") from error
            if done.returncode != 0:
                return Outcome.FAILED
            self._next_text = _text_of(name).rstrip("\n")
        finally:
            path.unlink(missing_ok=True)
        return Outcome.OK


def _text_of(name: str) -> str:
    try:
        return read_script_file(name)
    except UsageError as error:
        raise command_error(str(error)) from error
