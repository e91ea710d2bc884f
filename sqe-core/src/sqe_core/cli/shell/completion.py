"""Completion at the prompt: names that the user may see, functions, keywords, commands."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from sqe_core.cli.arguments import FORMATS
from sqe_core.cli.backend import Completions, TableKey
from sqe_core.cli.shell.commands import COMMAND_NAMES
from sqe_core.cli.shell.keywords import KEYWORDS

_PART = r'(?:"(?:[^"]|"")+"|[\w$]+)'
_PATH = re.compile(rf'(?:{_PART}\.)*(?:"(?:[^"]|"")*|[\w$]*)$')
_NO_ALIASES = (
    "as|cross|except|for|full|group|having|inner|intersect|join|left|limit|natural|offset|on|order|qualify|right|select"
    "|set|union|using|values|when|where|window"
)
_NAME_AND_ALIAS = rf"({_PART}(?:\.{_PART}){{0,2}})(?:\s+(?:as\s+)?(?!(?:{_NO_ALIASES})\b)({_PART}))?"
_RELATION = re.compile(rf"\b(?:from|join|into|update|table|using)\s+{_NAME_AND_ALIAS}", re.IGNORECASE)
_NEXT_RELATION = re.compile(rf"\s*,\s*{_NAME_AND_ALIAS}", re.IGNORECASE)
_WANTS_TABLE = re.compile(
    r"\b(?:from|join|into|update|table|view|describe|desc|using|stats\s+for)\s+(?:if\s+(?:not\s+)?exists\s+)?$"
    r"|^\s*(?:grant|revoke|deny|check\s+access|show\s+(?:grants|tags|effective\s+policy))\b.*\bon\s+$",
    re.IGNORECASE | re.DOTALL,
)
_WANTS_SCHEMA = re.compile(
    r"\b(?:use|schema|(?:tables|views|schemas)\s+(?:from|in))\s+(?:if\s+exists\s+)?$", re.IGNORECASE
)
INFORMATION_SCHEMA_TABLES = ("columns", "df_settings", "schemata", "tables", "views")
_MOST_TABLES = 10
"""Of so many tables in one statement columns are read when somebody presses Tab."""
_STRING_OR_COMMENT = re.compile(r"'(?:[^']|'')*(?:'|$)|--[^\n]*|/\*.*?(?:\*/|$)", re.DOTALL)
_NAME_COMMANDS = frozenset((".schema", ".describe", ".d", ".summarize", ".summary", "\\d", ".tables", "\\dt", "\\dv"))


@cache
def _functions() -> tuple[str, ...]:
    from sqe_core.sql.spark import functions

    return tuple(sorted({row[0] for row in functions.documented()}))


@dataclass(frozen=True, slots=True, kw_only=True)
class TypedName:
    """A name as far as it is typed: the parts before the last dot, folded, and the beginning of the last, as typed."""

    holders: tuple[str, ...]
    last: str

    @classmethod
    def read(cls, path: str) -> TypedName:
        """Split at the dots; unquoted parts fold to lower case."""
        parts = re.findall(rf"{_PART}(?=\.)", path)
        last = path[sum(len(part) + 1 for part in parts) :]
        return cls(holders=tuple(map(_fold, parts)), last=last)

    def begins(self, name: str) -> bool:
        """Whether a name may be meant; what is quoted is meant exactly."""
        return name.startswith(_fold(self.last)) or (
            self.last[:1] != '"' and name.lower().startswith(self.last.lower())
        )


class SqlCompleter(Completer):
    """Completes SQL and commands from a snapshot of names; asks for a new snapshot every time.

    Args:
        names: what is known.
        columns: reads the columns of a table.
        current: the session's catalog and schema.
    """

    def __init__(
        self,
        names: Callable[[], Completions],
        columns: Callable[[TableKey], tuple[str, ...]],
        current: Callable[[], tuple[str, str]],
    ) -> None:
        self._names = names
        self._columns = columns
        self._current = current

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        before = document.text_before_cursor
        if before.lstrip().startswith((".", "\\")):
            yield from self._commands(before.lstrip())
        elif not _in_string_or_comment(before):
            match = _PATH.search(before)
            path = match.group() if match else ""
            yield from self._sql(before[: len(before) - len(path)], TypedName.read(path), document.text)

    def _commands(self, line: str) -> Iterator[Completion]:
        word, blank, argument = line.partition(" ")
        if not blank:
            yield from _words(COMMAND_NAMES, word, "command")
        elif word in (".format", "\\format"):
            yield from _words(FORMATS, argument, "format")
        elif word in (".timer", "\\timing"):
            yield from _words(("on", "off"), argument, "")
        elif word in _NAME_COMMANDS:
            yield from self._relations(self._names(), TypedName.read(argument))

    def _sql(self, before: str, typed: TypedName, text: str) -> Iterator[Completion]:
        names = self._names()
        if _WANTS_SCHEMA.search(before):
            yield from self._schemas(names, typed)
            return
        if _WANTS_TABLE.search(before):
            yield from self._relations(names, typed)
            return
        used = dict(self._used(names, text))
        if typed.holders:
            key = used.get(typed.holders)
            if key is None:
                yield from self._relations(names, typed)
            else:
                yield from _identifiers(self._columns(key), typed, "column")
            return
        tables = dict.fromkeys(used.values())
        columns = dict.fromkeys(column for key in list(tables)[:_MOST_TABLES] for column in self._columns(key))
        yield from _identifiers(columns, typed, "column")
        yield from _identifiers([alias[0] for alias in used if len(alias) == 1], typed, "table")
        if typed.last:
            yield from _words(_functions(), typed.last, "function")
            lower = typed.last.islower()
            yield from _words([word.lower() if lower else word for word in KEYWORDS], typed.last, "keyword")

    def _relations(self, names: Completions, typed: TypedName) -> Iterator[Completion]:
        """Complete the name of a table, from wherever the path has got to."""
        catalog, schema = self._current()
        match typed.holders:
            case ():
                yield from _identifiers(names.tables.get((catalog, schema), ()), typed, "table")
                yield from self._schemas(names, typed)
            case (holder,):
                if holder == "information_schema":
                    yield from _identifiers(INFORMATION_SCHEMA_TABLES, typed, "table")
                yield from _identifiers(names.tables.get((catalog, holder), ()), typed, "table")
                yield from _identifiers(names.schemas.get(holder, ()), typed, "schema")
            case (first, "information_schema") if first in names.catalogs:
                yield from _identifiers(INFORMATION_SCHEMA_TABLES, typed, "table")
            case (first, second):
                yield from _identifiers(names.tables.get((first, second), ()), typed, "table")

    def _schemas(self, names: Completions, typed: TypedName) -> Iterator[Completion]:
        match typed.holders:
            case ():
                yield from _identifiers(names.schemas.get(self._current()[0], ()), typed, "schema")
                yield from _identifiers(names.catalogs, typed, "catalog")
            case (catalog,):
                yield from _identifiers(names.schemas.get(catalog, ()), typed, "schema")

    def _used(self, names: Completions, text: str) -> Iterator[tuple[tuple[str, ...], TableKey]]:
        """The tables that a statement names, under each name that may stand before a column."""
        plain = _STRING_OR_COMMENT.sub(" ", text)
        for relation in _RELATION.finditer(plain):
            match: re.Match[str] | None = relation
            while match is not None:
                parts = tuple(_fold(part) for part in re.findall(_PART, match.group(1)))
                key = self._key(parts)
                alias = match.group(2)
                if key[2] in names.tables.get(key[:2], ()):
                    if alias is not None:
                        yield (_fold(alias),), key
                    else:
                        yield parts[-1:], key
                        yield parts, key
                match = _NEXT_RELATION.match(plain, match.end())

    def _key(self, parts: tuple[str, ...]) -> TableKey:
        catalog, schema = self._current()
        match parts:
            case (table,):
                return catalog, schema, table
            case (schema, table):
                return catalog, schema, table
        return parts[0], parts[1], parts[2]


def _in_string_or_comment(text: str) -> bool:
    found = [match for match in _STRING_OR_COMMENT.finditer(text) if match.end() == len(text)]
    if not found:
        return False
    last = found[-1].group()
    if last.startswith("'"):
        return len(last) == 1 or not last.endswith("'")
    return last.startswith("--") or not last.endswith("*/")


def _fold(part: str) -> str:
    return part[1:].removesuffix('"').replace('""', '"') if part.startswith('"') else part.lower()


def _quoted(name: str) -> str:
    plain = re.fullmatch(r"[a-z_][a-z0-9_]*", name) is not None
    return name if plain else '"' + name.replace('"', '""') + '"'


def _identifiers(names: Iterable[str], typed: TypedName, meta: str) -> Iterator[Completion]:
    for name in names:
        if typed.begins(name):
            yield Completion(_quoted(name), start_position=-len(typed.last), display_meta=meta)


def _words(words: Iterable[str], beginning: str, meta: str) -> Iterator[Completion]:
    for word in words:
        if word.lower().startswith(beginning.lower()):
            yield Completion(word, start_position=-len(beginning), display_meta=meta)
