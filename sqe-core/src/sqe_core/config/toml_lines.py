"""The line of each key of a TOML document. tomllib parses; this only counts, on text that tomllib accepted."""

from __future__ import annotations

import re
import tomllib

from sqe_core.config.origin import KeyPath

_KEY_PART = re.compile(r"""\s*(?:"(?:[^"\\]|\\.)*"|'[^']*'|[A-Za-z0-9_-]+)\s*""")
_STRING = re.compile(r'"""(?:[^\\]|\\.)*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'', re.DOTALL)


def key_lines(text: str) -> dict[KeyPath, int]:
    """Map every table and every key outside inline values to its line, counted from 1."""
    return _Scanner(text).scan()


class _Scanner:
    def __init__(self, text: str) -> None:
        self._text = text.replace("\r\n", "\n")
        self._at = 0
        self._lines: dict[KeyPath, int] = {}
        self._counts: dict[KeyPath, int] = {}

    def scan(self) -> dict[KeyPath, int]:
        table: KeyPath = ()
        while self._at < len(self._text):
            character = self._text[self._at]
            if character.isspace():
                self._at += 1
            elif character == "#":
                self._skip_comment()
            elif character == "[":
                table = self._header()
            else:
                start = self._at
                path = (*table, *self._key())
                self._record(path, start)
                self._at += 1  # the equals sign
                self._skip_value()
        return self._lines

    def _record(self, path: KeyPath, position: int) -> None:
        line = self._text.count("\n", 0, position) + 1
        for length in range(1, len(path)):
            self._lines.setdefault(path[:length], line)
        self._lines[path] = line

    def _header(self) -> KeyPath:
        start = self._at
        brackets = 2 if self._text.startswith("[[", self._at) else 1
        self._at += brackets
        parts = self._key()
        path: KeyPath = ()
        for position, part in enumerate(parts, start=1):
            path = (*path, part)
            if brackets == 2 and position == len(parts):
                self._counts[path] = self._counts.get(path, 0) + 1
            if path in self._counts:
                # A header below an array of tables speaks of its last entry.
                path = (*path, self._counts[path] - 1)
        self._at += brackets
        self._record(path, start)
        return path

    def _key(self) -> tuple[str, ...]:
        parts: list[str] = []
        while True:
            match = _KEY_PART.match(self._text, self._at)
            if match is None:
                return tuple(parts)
            self._at = match.end()
            word = match[0].strip()
            # Quoted keys have the escapes of strings; tomllib knows them.
            parts.append(tomllib.loads(f"value = {word}")["value"] if word[0] in "\"'" else word)
            if not self._text.startswith(".", self._at):
                return tuple(parts)
            self._at += 1

    def _skip_comment(self) -> None:
        end = self._text.find("\n", self._at)
        self._at = len(self._text) if end < 0 else end

    def _skip_value(self) -> None:
        """Go to the end of the value: a newline or a comment outside of all brackets and strings."""
        depth = 0
        while self._at < len(self._text):
            character = self._text[self._at]
            if character in "\"'":
                match = _STRING.match(self._text, self._at)
                self._at = match.end() if match else len(self._text)
                continue
            if character == "#":
                self._skip_comment()
                continue
            if character == "\n" and depth == 0:
                return
            depth += (character in "[{") - (character in "]}")
            self._at += 1
