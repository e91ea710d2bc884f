"""Types as users write them, and how Spark writes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NoReturn

from sqe_core.spi.errors import ErrorCode, UserError
from sqe_core.sql.text.cursor import Cursor
from sqe_core.sql.text.similar import meant
from sqe_core.sql.text.tokens import NAMES, Kind, Token

MAX_DECIMAL_PRECISION = 38
MAX_TIME_PRECISION = 6

# The canonical name is Trino's; INT8 and INT4 mean what they mean in PostgreSQL and DuckDB: bytes.
_SIMPLE: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(("boolean", "bool"), "boolean"),
        "tinyint": "tinyint",
        **dict.fromkeys(("smallint", "int2"), "smallint"),
        **dict.fromkeys(("integer", "int", "int4"), "integer"),
        **dict.fromkeys(("bigint", "int8", "long"), "bigint"),
        **dict.fromkeys(("real", "float", "float4"), "real"),
        **dict.fromkeys(("double", "float8"), "double"),
        **dict.fromkeys(("decimal", "numeric", "dec"), "decimal"),
        **dict.fromkeys(("varchar", "string", "text"), "varchar"),
        **dict.fromkeys(("char", "character"), "char"),
        **dict.fromkeys(("varbinary", "binary", "bytea", "blob"), "varbinary"),
        "date": "date",
        "time": "time",
        **dict.fromkeys(("timestamp", "timestamp_ntz", "datetime"), "timestamp"),
        **dict.fromkeys(("timestamptz", "timestamp_ltz"), "timestamp with time zone"),
        "timestamp_ns": "timestamp_ns",
        "timestamptz_ns": "timestamptz_ns",
        "json": "json",
        "variant": "variant",
        "uuid": "uuid",
        "ipaddress": "ipaddress",
        "array": "array",
        "map": "map",
        **dict.fromkeys(("row", "struct"), "row"),
        "interval": "interval",
        "geometry": "geometry",
        "geography": "geography",
        "unknown": "unknown",
    }
)

# Names that begin a type and nothing else; the others may be names of columns too.
TYPE_WORDS = frozenset(_SIMPLE)

_UNSUPPORTED: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(("hyperloglog", "p4hyperloglog", "tdigest", "qdigest", "setdigest"), "use approx_distinct"),
        "timetz": "use TIME",
        "number": "use DECIMAL(p, s)",
        "money": "use DECIMAL(19, 4)",
        "serial": "SQE has no sequences; use BIGINT",
        "hugeint": "use DECIMAL(38, 0)",
        **dict.fromkeys(("utinyint", "usmallint", "uinteger", "ubigint"), "use the next wider signed type"),
        "nvarchar": "use VARCHAR",
        "clob": "use VARCHAR",
        "enum": "use VARCHAR",
    }
)

_SPARK: Mapping[str, str] = MappingProxyType(
    {
        "boolean": "BOOLEAN",
        "tinyint": "TINYINT",
        "smallint": "SMALLINT",
        "integer": "INT",
        "bigint": "BIGINT",
        "real": "FLOAT",
        "double": "DOUBLE",
        "varchar": "STRING",
        "char": "STRING",
        "varbinary": "BINARY",
        "date": "DATE",
        "time": "TIME(6)",
        "timestamp": "TIMESTAMP_NTZ",
        "timestamp with time zone": "TIMESTAMP_LTZ",
        "json": "VARIANT",
        "variant": "VARIANT",
        "uuid": "STRING",
        "ipaddress": "STRING",
        "interval day to second": "INTERVAL DAY TO SECOND",
        "interval year to month": "INTERVAL YEAR TO MONTH",
        "geometry": "GEOMETRY(4326)",
        "geography": "GEOGRAPHY(4326)",
        "unknown": "VOID",
    }
)


@dataclass(frozen=True, slots=True)
class SqlType:
    """A type: Trino's name, the numbers in its brackets, the types inside."""

    name: str
    numbers: tuple[int, ...] = ()
    elements: tuple[SqlType, ...] = ()
    fields: tuple[str | None, ...] = ()  # names of a row's fields, None for an unnamed one

    def spark(self, *, stored: bool = False) -> str:
        """Write it for Spark. A stored JSON is text, a computed one a variant."""
        if self.name == "decimal":
            return f"DECIMAL({self.numbers[0]}, {self.numbers[1]})"
        if self.name == "json" and stored:
            return "STRING"
        if self.name in ("geometry", "geography") and self.numbers:
            return f"{self.name.upper()}({self.numbers[0]})"
        inner = [element.spark(stored=stored) for element in self.elements]
        if self.name == "array":
            return f"ARRAY<{inner[0]}>"
        if self.name == "map":
            return f"MAP<{inner[0]}, {inner[1]}>"
        if self.name == "row":
            fields = (f"{spark_identifier(self.field(at))}: {spark}" for at, spark in enumerate(inner))
            return f"STRUCT<{', '.join(fields)}>"
        return _SPARK[self.name]

    def field(self, at: int) -> str:
        """Return what a field of a row is called."""
        name = self.fields[at]
        return f"col{at + 1}" if name is None else name


def spark_identifier(part: str) -> str:
    return "`" + part.replace("`", "``") + "`"


class TypeReader:
    def __init__(self, cursor: Cursor, *, decimal_scale: int, unknown: str = "TYPE_NOT_FOUND") -> None:
        self._cursor = cursor
        self._decimal_scale = decimal_scale
        self._unknown_condition = unknown

    def read(self) -> SqlType:
        """Read a type with the array marks after it: INTEGER ARRAY, INTEGER[]."""
        result = self._read_plain()
        cursor = self._cursor
        while True:
            if cursor.at_symbol("[") and cursor.peek().is_symbol("]"):
                cursor.advance()
                cursor.advance()
            elif not cursor.accept("array"):
                return result
            result = SqlType("array", elements=(result,))

    def _read_plain(self) -> SqlType:
        cursor = self._cursor
        start = cursor.token
        if start.kind not in NAMES:
            cursor.fail("a type")
        word = start.value
        name = _SIMPLE.get(word)
        if name is None:
            self._unknown(start)
        cursor.advance()
        if name in ("array", "map", "row"):
            return self._nested(name)
        if name == "interval":
            return self._interval()
        if name == "double":
            cursor.accept("precision")
        elif name == "char" and cursor.accept("varying"):
            name = "varchar"
        numbers = self._numbers()
        if name in ("time", "timestamp"):
            return self._temporal(name, numbers, start)
        if name == "decimal":
            return self._decimal(numbers, start)
        return self._sized(name, numbers, start)

    def _sized(self, name: str, numbers: tuple[int, ...], start: Token) -> SqlType:
        sized = ("varchar", "char", "geometry", "geography", "timestamp with time zone", "varbinary")
        if numbers and (name not in sized or len(numbers) > 1):
            self._refuse_numbers(start)
        if name == "char" and not numbers:
            numbers = (1,)
        if name in ("varchar", "char") and numbers and not 1 <= numbers[0] <= 2_147_483_646:
            self._refuse_numbers(start)
        if name == "timestamp with time zone":
            self._check_precision(numbers, start)
        return SqlType(name, numbers)

    def _decimal(self, numbers: tuple[int, ...], start: Token) -> SqlType:
        if not numbers:
            return SqlType("decimal", (MAX_DECIMAL_PRECISION, self._decimal_scale))
        precision, scale = numbers if len(numbers) == 2 else (numbers[0], 0)
        if len(numbers) > 2 or not 1 <= precision <= MAX_DECIMAL_PRECISION or not 0 <= scale <= precision:
            message = f"DECIMAL takes a precision from 1 to {MAX_DECIMAL_PRECISION} and a smaller scale"
            raise self._error(message, start, condition="INVALID_FUNCTION_ARGUMENT")
        return SqlType("decimal", (precision, scale))

    def _temporal(self, name: str, numbers: tuple[int, ...], start: Token) -> SqlType:
        cursor = self._cursor
        self._check_precision(numbers, start)
        if cursor.accept("without", "time", "zone"):
            return SqlType(name, numbers)
        zoned = cursor.accept("with", "time", "zone") or cursor.accept("with", "local", "time", "zone")
        if zoned and name == "time":
            raise self._error("TIME WITH TIME ZONE is not supported", start, ErrorCode.NOT_SUPPORTED)
        return SqlType("timestamp with time zone" if zoned else name, numbers)

    def _check_precision(self, numbers: tuple[int, ...], start: Token) -> None:
        if numbers and (len(numbers) > 1 or numbers[0] > MAX_TIME_PRECISION):
            raise self._error(
                f"Times hold {MAX_TIME_PRECISION} digits of a second at most", start, ErrorCode.NOT_SUPPORTED
            )

    def _interval(self) -> SqlType:
        cursor = self._cursor
        units = ("year", "month", "day", "hour", "minute", "second")
        first = cursor.accept_any(*units) or cursor.fail("YEAR TO MONTH or DAY TO SECOND")
        last = cursor.accept_any(*units) or cursor.fail("MONTH or SECOND") if cursor.accept("to") else first
        if units.index(last) <= 1:
            return SqlType("interval year to month")
        if units.index(first) >= 2:
            return SqlType("interval day to second")
        cursor.fail("YEAR TO MONTH or DAY TO SECOND")

    def _nested(self, name: str) -> SqlType:
        cursor = self._cursor
        if not (cursor.at_symbol("(") or cursor.at_symbol("<")):
            cursor.fail("( or <")
        closing = ")" if cursor.advance().value == "(" else ">"
        result = self._row(closing) if name == "row" else self._container(name)
        cursor.expect_symbol(closing)
        return result

    def _container(self, name: str) -> SqlType:
        elements = [self.read()]
        if name == "map":
            self._cursor.expect_symbol(",")
            elements.append(self.read())
        return SqlType(name, elements=tuple(elements))

    def _row(self, closing: str) -> SqlType:
        cursor = self._cursor
        names: list[str | None] = []
        elements: list[SqlType] = []
        while True:
            names.append(self._field_name(closing))
            elements.append(self.read())
            if not cursor.accept_symbol(","):
                return SqlType("row", elements=tuple(elements), fields=tuple(names))

    def _field_name(self, closing: str) -> str | None:
        cursor = self._cursor
        following = cursor.peek()
        ends = (",", closing, "(", "<", "[")
        unnamed = following.kind is Kind.SYMBOL and following.value in ends
        seconds = ("precision", "with", "without", "year", "month", "day", "hour", "minute", "second", "varying")
        firsts = ("double", "timestamp", "time", "interval", "char", "character")
        two_words = cursor.at_any(*firsts) and following.value in seconds
        # In `x array` x is a type, in `x array(integer)` the name of a field.
        is_array = following.is_word("array") and not any(cursor.peek(2).is_symbol(sign) for sign in "(<")
        if cursor.token.kind is Kind.WORD and (unnamed or two_words or is_array):
            return None
        name = cursor.part("the name of a field")
        cursor.accept_symbol(":")
        return name

    def _numbers(self) -> tuple[int, ...]:
        cursor = self._cursor
        return tuple(cursor.bracketed(Cursor.integer)) if cursor.at_symbol("(") else ()

    def _unknown(self, start: Token) -> NoReturn:
        written = self._cursor.text.sql[start.start : start.end][:60]
        hint = _UNSUPPORTED.get(start.value)
        if hint is not None:
            raise self._error(f"The type {written.upper()} is not supported", start, ErrorCode.NOT_SUPPORTED, hint)
        hint = meant(start.value, _SIMPLE) or "the types are listed in docs/sql.md"
        raise self._error(f"Unknown type {written}", start, hint=hint, condition=self._unknown_condition)

    def _refuse_numbers(self, start: Token) -> NoReturn:
        raise self._error(f"{start.value.upper()} does not take these numbers", start)

    def _error(
        self,
        message: str,
        at: Token,
        code: ErrorCode = ErrorCode.SEMANTIC_ERROR,
        hint: str | None = None,
        condition: str | None = None,
    ) -> UserError:
        position = self._cursor.text.position(at.start)
        return UserError(message, code=code, hint=hint, position=position, condition=condition)
