"""What becomes of a condition of the engine: data in templates.toml, read when the first failure is translated."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from sqe_core.spi.errors import (
    CommitConflictError,
    ErrorCode,
    ExternalError,
    NotSupportedError,
    ObjectNotFoundError,
    QueryTimeoutError,
    ResourcesError,
    SqeError,
    UserError,
)

_ERRORS: Mapping[ErrorCode, type[SqeError]] = {
    **dict.fromkeys((ErrorCode.CATALOG_NOT_FOUND, ErrorCode.SCHEMA_NOT_FOUND), ObjectNotFoundError),
    **dict.fromkeys((ErrorCode.TABLE_NOT_FOUND, ErrorCode.VIEW_NOT_FOUND), ObjectNotFoundError),
    **dict.fromkeys((ErrorCode.CATALOG_ERROR, ErrorCode.CATALOG_UNAVAILABLE, ErrorCode.STORAGE_ERROR), ExternalError),
    ErrorCode.COMMIT_CONFLICT: CommitConflictError,
    ErrorCode.NOT_SUPPORTED: NotSupportedError,
    ErrorCode.QUERY_TIMEOUT: QueryTimeoutError,
    ErrorCode.RESOURCE_EXHAUSTED: ResourcesError,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """An entry of the file, which says what its keys mean."""

    text: str
    code: ErrorCode
    hint: str | None = None
    suggest: str | None = None
    locate: str | None = None
    condition: str | None = None

    @property
    def error(self) -> type[SqeError]:
        return _ERRORS.get(self.code, UserError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Templates:
    """The whole file."""

    spark: Mapping[str, Template]
    java: Mapping[str, Template]
    texts: Sequence[tuple[re.Pattern[str], Template]]


@cache
def templates() -> Templates:
    read = tomllib.loads(files(__package__).joinpath("templates.toml").read_text("utf-8"))
    java = _conditions(read["java"])
    return Templates(
        spark=_conditions(read["spark"]),
        java=java,
        texts=[
            (re.compile(entry.pop("pattern")), java[entry["like"]] if "like" in entry else _template(entry))
            for entry in read["texts"]
        ],
    )


def _conditions(sections: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Template]:
    found: dict[str, Template] = {}
    for section, entries in sections.items():
        code, _, finer = section.partition("-")
        for conditions, entry in entries.items():
            match entry:
                case str():
                    fields = {"text": entry}
                case [text, hint]:
                    fields = {"text": text, "hint": hint}
                case _:
                    fields = entry
            template = _template({"code": code, "condition": finer or None, **fields})
            found.update(dict.fromkeys(conditions.split(), template))
    return found


def _template(entry: Mapping[str, Any]) -> Template:
    return Template(**{**entry, "code": ErrorCode[entry["code"]]})  # a key that is none of its fields is a TypeError
