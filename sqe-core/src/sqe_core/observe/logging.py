"""The server's log: one JSON object per line for machines, one readable line for a terminal.

Nothing that is secret may reach a log call in the first place (OBS-2). What does so by accident, in a text of somebody
else's library or in a stack trace, is taken out here, the second lock. Control characters are escaped, so that nobody
forges a line (OBS-3).
"""

from __future__ import annotations

import json
import logging
import re
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any, TextIO

LOGGER = "sqe_core"
_LONGEST = 16_384
_MOST_ITEMS = 1000
_HIDDEN = "***"

_statement: ContextVar[tuple[str, str, str]] = ContextVar("sqe_statement", default=("", "", ""))

_PATTERNS: tuple[tuple[re.Pattern[str], str], ...] = (
    # -----BEGIN … PRIVATE KEY-----, to its end or to the end of the text
    (re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)", re.DOTALL), _HIDDEN),
    # Authorization: Basic dXNlcjpwYXNz
    (re.compile(r"(?i)\b(bearer)(\s+)[a-z0-9+/=._~:-]{4,}"), rf"\1\2{_HIDDEN}"),
    (
        re.compile(r"(?i:\b(basic|negotiate|digest))(\s+)(?=[a-z._~:-]{0,64}[A-Z0-9+/=])[A-Za-z0-9+/=._~:-]{4,}"),
        rf"\1\2{_HIDDEN}",
    ),
    # A JSON web token, wherever it stands
    (re.compile(r"\beyJ[A-Za-z0-9_-]{5,}(?:\.[A-Za-z0-9_-]*){1,4}"), _HIDDEN),
    # https://user:password@host
    (re.compile(r"(://)[^/\s:@'\"]*:[^/\s@'\"]*@"), rf"\1{_HIDDEN}@"),
    # password=…, "client_secret": "…", X-Amz-Signature=…, 'token' => '…'
    (
        re.compile(
            r"""(?ix)
            ( (?<! [\w.-] ) [\w.-]{0,64}?
              (?: passw(?:or)?d | secret | token | api[_-]?key | access[_-]?key | account[_-]?key | credential
                | signature | \bsig\b | authorization | session[_-]?id | cookie )
              [\w.-]{0,64} ["']? \s{0,8} (?: => | [:=] ) \s{0,8} )
            (?! [\[{(] )
            (?: "(?:[^"\\]|\\.)*" | '(?:[^'\\]|\\.)*'
              | (?: (?:basic|bearer|digest|negotiate) \s{1,8} )? [^\s,;&"')}\]]+ )
            """
        ),
        rf"\1{_HIDDEN}",
    ),
    # AWS access key ids
    (re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"), _HIDDEN),
    # The random alias of a mounted catalog (ENF-8)
    (re.compile(r"_sqe_[a-z]_[0-9a-f]{8,}"), _HIDDEN),
)
# Controls, and what turns the direction of text or ends a line for some reader.
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def redact_secrets(text: str) -> str:
    for pattern, replacement in _PATTERNS:
        text = pattern.sub(replacement, text)
    return text


@contextmanager
def of_statement(query_id: str, session_hash: str, request_id: str = "") -> Iterator[None]:
    """Everything that this thread logs within the scope belongs to that statement, and to the client's request."""
    token = _statement.set((query_id, session_hash, request_id))
    try:
        yield
    finally:
        _statement.reset(token)


class JsonFormatter(logging.Formatter):
    """One object per line: time, level, logger, message, then query_id, session, request_id, error, and the fields.

    Those are what a call of the logger says as `extra={"fields": …}`.
    """

    def format(self, record: logging.LogRecord) -> str:
        query_id, session, request_id = _statement_of(record)
        entry: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": _shown(_message(record)),
        }
        if query_id:
            entry["query_id"] = query_id
        if session:
            entry["session"] = session
        if request_id:
            entry["request_id"] = request_id
        for name, value in getattr(record, "fields", {}).items():
            entry.setdefault(name, plain(value))
        if record.exc_info and record.exc_info[0]:
            entry["error"] = _shown(self.formatException(record.exc_info))
        return json.dumps(entry)


class TerminalFormatter(logging.Formatter):
    """What a person reads: time, level, message, and the statement it is about."""

    def format(self, record: logging.LogRecord) -> str:
        query_id, _, _ = _statement_of(record)
        time = datetime.fromtimestamp(record.created).astimezone().strftime("%H:%M:%S")
        about = f" [{query_id}]" if query_id else ""
        lines = [f"{time} {record.levelname:<7} {_UNPRINTABLE.sub(_escape, _shown(_message(record)))}{about}"]
        if record.exc_info and record.exc_info[0]:
            trace = _shown(self.formatException(record.exc_info))
            lines += [_UNPRINTABLE.sub(_escape, line) for line in trace.splitlines()]
        return "\n".join(lines)


class _Handler(logging.StreamHandler[TextIO]):
    """A line that cannot be written is lost, and nothing else: the default prints the raw record to standard error."""

    def handleError(self, record: logging.LogRecord) -> None:
        pass


def configure_logging(level: str, *, stream: TextIO | None = None, human: bool | None = None) -> None:
    """Send the log of this process to `stream`, standard error unless told otherwise.

    Args:
        level: a word of SQE_LOG. Libraries only warn, whatever it says: their details hold what ours must not.
        stream: where to.
        human: None asks whether the stream is a terminal.
    """
    stream = stream or sys.stderr
    handler = _Handler(stream)
    for_people = stream.isatty() if human is None else human
    handler.setFormatter(TerminalFormatter() if for_people else JsonFormatter())
    root = logging.getLogger()
    for old in [old for old in root.handlers if isinstance(old, _Handler)]:
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(logging.WARNING)
    logging.getLogger(LOGGER).setLevel("DEBUG" if level == "trace" else level.upper())
    logging.captureWarnings(True)


def log_stray_errors() -> None:
    """Errors that end a thread, or the process, go through the log, as every other text does."""

    def of_thread(args: threading.ExceptHookArgs) -> None:
        if args.exc_value is not None and not isinstance(args.exc_value, SystemExit):
            name = args.thread.name if args.thread else "?"
            logging.getLogger(LOGGER).error(
                "the thread %s ended", name, exc_info=(args.exc_type, args.exc_value, args.exc_traceback)
            )

    def of_process(kind: type[BaseException], error: BaseException, trace: Any) -> None:
        logging.getLogger(LOGGER).critical("the server ended", exc_info=(kind, error, trace))

    threading.excepthook = of_thread
    sys.excepthook = of_process


def _statement_of(record: logging.LogRecord) -> tuple[str, str, str]:
    query_id, session, request_id = _statement.get()
    return getattr(record, "query_id", query_id), getattr(record, "session", session), request_id


def _message(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except (TypeError, ValueError, KeyError):  # arguments that do not fit the text
        return str(record.msg)


def _shown(text: str) -> str:
    if len(text) > _LONGEST:
        text = f"{text[:_LONGEST]}… ({len(text)} characters)"
    return redact_secrets(text)


def plain(value: object, shown: Callable[[str], str] = _shown) -> Any:
    """A value for JSON: bounded, and whatever text is inside of it as `shown` has it."""
    if isinstance(value, str):
        return shown(value)
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, Mapping):
        return {str(key): plain(item, shown) for key, item in value.items()}
    if isinstance(value, frozenset | set):
        value = sorted(value, key=str)
    if isinstance(value, list | tuple):
        return [plain(item, shown) for item in value[:_MOST_ITEMS]]
    return shown(str(value))


def _escape(match: re.Match[str]) -> str:
    code = ord(match.group())
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"
