"""Text to tokens: one linear pass, whose result the limits, the recogniser, the splitter and the parser all share.

There is one reader of quotes and comments for all of them, so they cannot disagree about where a string ends (TEST-6).
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum

from sqe_core.spi.errors import ErrorCode, Position, UserError


class Kind(Enum):
    """What a token is. Comments and white space are none."""

    WORD = "word"  # keyword or unquoted name
    QUOTED = "quoted name"
    STRING = "string"
    BINARY = "binary string"
    NUMBER = "number"
    SYMBOL = "symbol"
    PARAMETER = "parameter"  # ?, $1 or :name
    END = "end of the statement"


NAMES = (Kind.WORD, Kind.QUOTED)


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of the text, `start` to `end` (exclusive).

    `value` is the name folded to lower case, the name or string without its quotes, the number in plain decimal
    notation, or the symbol itself.
    """

    kind: Kind
    value: str
    start: int
    end: int

    def is_word(self, word: str) -> bool:
        """Whether this is the unquoted word; `word` is lower case."""
        return self.kind is Kind.WORD and self.value == word

    def is_symbol(self, symbol: str) -> bool:
        return self.kind is Kind.SYMBOL and self.value == symbol


class Lexicon(Enum):
    """How quotes and comments are written."""

    ANSI = "ansi"
    SPARK = "spark"


# Spaces and comments are skipped; only ASCII white space counts, so that no parser after us sees another boundary.
_ANSI: re.Pattern[str] = re.compile(
    r"""
    (?P<skip>[ \t\r\n\f\v]+|--[^\r\n]*|/\*[\s\S]*?\*/)
    |(?P<string>'[^']*(?:''[^']*)*')
    |(?P<quoted>"[^"]*(?:""[^"]*)*")
    |(?P<binary>[xX]'[^']*')
    |(?P<unicode>[uU]&(?:'[^']*(?:''[^']*)*'|"[^"]*(?:""[^"]*)*"))
    |(?P<dollar>\$(?P<tag>[A-Za-z_]*)\$[\s\S]*?\$(?P=tag)\$)
    |(?P<number>0[xX][0-9A-Fa-f_]+|0[oO][0-7_]+|0[bB][01_]+
        |(?:[0-9][0-9_]*(?:\.(?!\.)[0-9_]*)?|\.[0-9][0-9_]*)(?:[eE][+-]?[0-9]+)?)
    |(?P<word>[^\W\d]\w*)
    |(?P<symbol>::|->>|->|=>|\|\||<=>|<>|!=|<=|>=|==|:=|!~\*|!~|~\*|/(?!\*)|[-+*%(),.;\[\]{}=<>~!&|^@#])
    |(?P<parameter>\?|\$[1-9][0-9]{0,4}(?!\w)|:[A-Za-z_]\w*)
    |(?P<colon>:)
    """,
    re.VERBOSE,
)

# Spark nests comments, continues "--" after a backslash, escapes with backslashes and has raw strings.
_SPARK: re.Pattern[str] = re.compile(
    r"""
    (?P<skip>[ \t\r\n\f\v]+|--(?:\\\n|[^\r\n])*)
    |(?P<raw>[rR](?:'[^']*'|"[^"]*"))
    |(?P<binary>[xX](?:'[^']*'|"[^"]*"))
    |(?P<string>'(?:\\[\s\S]|''|[^'\\])*'|"(?:\\[\s\S]|""|[^"\\])*")
    |(?P<quoted>`[^`]*(?:``[^`]*)*`)
    |(?P<number>(?:[0-9]+(?:\.(?!\.)[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?:BD|[LSYDFbd lsyf])?(?!\w))
    |(?P<word>\w+)
    |(?P<comment>/\*(?!\+))
    |(?P<symbol>/\*\+|\*/|::|->>|->|=>|\|\||<=>|<>|!=|<=|>=|==|:=|!>|!<|<<|>>>|>>|\|>|[-+*/%(),.;\[\]{}=<>~!&|^@])
    |(?P<parameter>\?|\$[1-9][0-9]{0,4}(?!\w)|:[A-Za-z_]\w*)
    |(?P<colon>:)
    """.replace("d lsyf", "dlsyf"),
    re.VERBOSE,
)

PATTERNS = {Lexicon.ANSI: _ANSI, Lexicon.SPARK: _SPARK}

_COMMENT_EDGE = re.compile(r"/\*(?!\+)|\*/")
_UNICODE_ESCAPE = re.compile(r"\\(?:\\|\+([0-9A-Fa-f]{6})|([0-9A-Fa-f]{4})|)")


class Text:
    """A statement's text with the way from offsets to lines and columns."""

    def __init__(self, sql: str) -> None:
        self.sql = sql
        self._lines: list[int] | None = None

    def position(self, offset: int) -> Position:
        """Return line and column of an offset; both start at 1, columns count code points."""
        lines = self._line_starts()
        line = bisect_right(lines, offset)
        return Position(line=line, column=offset - lines[line - 1] + 1)

    def _line_starts(self) -> list[int]:
        if self._lines is None:
            self._lines = [0, *(match.end() for match in re.finditer(r"\r\n|\n|\r", self.sql))]
        return self._lines

    def following(self, position: Position, count: int) -> str:
        """Return so many characters from a line and column of this text on; fewer at its end."""
        offset = self._line_starts()[position.line - 1] + position.column - 1
        return self.sql[offset : offset + count]

    def error(self, message: str, offset: int, *, hint: str | None = None, condition: str | None = None) -> UserError:
        """Build a syntax error at an offset."""
        code, position = ErrorCode.SYNTAX_ERROR, self.position(offset)
        return UserError(message, code=code, hint=hint, position=position, condition=condition)


def tokenize(text: Text, lexicon: Lexicon) -> list[Token]:
    """Return the tokens of the text, an END token last. Raises a syntax error with its position."""
    sql = text.sql
    match_at = PATTERNS[lexicon].match
    tokens: list[Token] = []
    append = tokens.append
    offset, size = 0, len(sql)
    while offset < size:
        match = match_at(sql, offset)
        if match is None:
            raise _unreadable(text, offset, lexicon)
        group = match.lastgroup
        end = match.end()
        if group == "skip":
            pass
        elif group == "word":
            append(Token(Kind.WORD, fold(match.group()), offset, end))
        elif group == "symbol" or group == "colon":
            append(Token(Kind.SYMBOL, match.group(), offset, end))
        elif group == "comment":
            end = end_of_nested_comment(sql, offset)
            if end < 0:
                raise _unreadable(text, offset, lexicon)
        else:
            append(_token(text, match, lexicon))
        offset = end
    append(Token(Kind.END, "", size, size))
    return tokens


def outside_brackets(tokens: Iterable[Token]) -> Iterator[Token]:
    """Yield what stands outside of round brackets."""
    depth = 0
    for token in tokens:
        if token.is_symbol("(") or token.is_symbol(")"):
            depth += 1 if token.value == "(" else -1
        elif depth == 0:
            yield token


def fold(word: str) -> str:
    """Fold an unquoted name; the length never changes, so that offsets stay valid."""
    lowered = word.lower()
    if len(lowered) == len(word):
        return lowered
    return "".join(low if len(low := char.lower()) == 1 else char for char in word)


def _token(text: Text, match: re.Match[str], lexicon: Lexicon) -> Token:
    start, end = match.span()
    written = match.group()
    # The tag group of a dollar quote closes last, so it would hide the name of the outer group.
    group = "dollar" if match.lastgroup == "tag" else match.lastgroup
    if group == "number":
        return Token(Kind.NUMBER, _number(text, match, lexicon), start, end)
    if group == "string":
        return Token(Kind.STRING, _string(written, lexicon), start, end)
    if group == "quoted":
        quote = written[0]
        name = written[1:-1].replace(quote * 2, quote)
        if not name:
            raise text.error("A quoted name is empty", start)
        return Token(Kind.QUOTED, name, start, end)
    if group == "binary":
        digits = written[2:-1].replace(" ", "")
        if len(digits) % 2 or re.fullmatch(r"[0-9A-Fa-f]*", digits) is None:
            raise text.error("A binary string needs an even number of hexadecimal digits", start)
        return Token(Kind.BINARY, digits.upper(), start, end)
    if group == "unicode":
        quote = written[2]
        value = _unescape(text, start, written[3:-1].replace(quote * 2, quote))
        return Token(Kind.STRING if quote == "'" else Kind.QUOTED, value, start, end)
    if group == "raw":
        return Token(Kind.STRING, written[2:-1], start, end)
    if group == "dollar":
        tag_size = written.index("$", 1) + 1
        return Token(Kind.STRING, written[tag_size:-tag_size], start, end)
    return Token(Kind.PARAMETER, written, start, end)


def _number(text: Text, match: re.Match[str], lexicon: Lexicon) -> str:
    written = match.group().lower()
    following = text.sql[match.end() : match.end() + 1]
    if lexicon is Lexicon.SPARK:
        return written
    if following and (following.isalnum() or (following in '_."' and not (following == "." and "." not in written))):
        raise text.error(
            f"A name cannot begin with a digit: {_excerpt(text.sql, match.start())}",
            match.start(),
            hint='put the name in double quotes, as in "2024_sales"',
        )
    if written.endswith("_") or "__" in written or "_." in written or "._" in written:
        raise text.error(f"Misplaced underscore in the number {match.group()}", match.start())
    written = written.replace("_", "")
    if written[:2] in ("0x", "0o", "0b"):
        return str(int(written, 0))
    return written


def _string(written: str, lexicon: Lexicon) -> str:
    quote = written[0]
    body = written[1:-1]
    if lexicon is Lexicon.ANSI:
        return body.replace("''", "'")
    return re.sub(
        r"\\([\s\S])|" + quote * 2, lambda found: found.group(1) if found.group(1) is not None else quote, body
    )


def _unescape(text: Text, start: int, body: str) -> str:
    def decode(match: re.Match[str]) -> str:
        digits = match.group(1) or match.group(2)
        if digits is None:
            if match.group() == "\\\\":
                return "\\"
            raise text.error("Incomplete escape in a U& string; write \\0041, \\+000041 or \\\\", start)
        point = int(digits, 16)
        if point > 0x10FFFF or 0xD800 <= point <= 0xDFFF or point == 0:
            raise text.error(f"\\{digits} is no character", start)
        return chr(point)

    return _UNICODE_ESCAPE.sub(decode, body)


def end_of_nested_comment(sql: str, start: int) -> int:
    """Return where a comment that may hold others ends, or -1."""
    depth = 0
    for match in _COMMENT_EDGE.finditer(sql, start):
        depth += 1 if match.group() == "/*" else -1
        if depth == 0:
            return match.end()
    return -1


_UNREADABLE = {
    "'": ("This string has no end", "close it with a single quote; a quote inside is written twice"),
    '"': ("This quoted name has no end", "close it with a double quote"),
    "`": ("Backticks do not quote names here", 'use double quotes, as in "my table"'),
    "$": (
        'Unexpected "$"',
        'parameters are written ?, $1 or :name; names with $ need double quotes, as in "t$snapshots"',
    ),
    "\\": ("Unexpected backslash", "commands that begin with a backslash belong to the sqe-cli shell"),
}


def _unreadable(text: Text, offset: int, lexicon: Lexicon) -> UserError:
    char = text.sql[offset]
    if text.sql.startswith("/*", offset):
        return text.error("This comment has no end", offset, hint="close it with */")
    if char == "`" and lexicon is Lexicon.SPARK:
        return text.error("This quoted name has no end", offset, hint="close it with a backtick")
    if char in _UNREADABLE:
        message, hint = _UNREADABLE[char]
        return text.error(message, offset, hint=hint)
    if char.isspace() or char in "\u200b\u200c\u200d\u2060\ufeff":
        return text.error(f"Invisible character U+{ord(char):04X}", offset, hint="replace it with an ordinary space")
    if char in "\u2018\u2019\u201c\u201d":
        return text.error(f"Typographic quote {char}", offset, hint="use ' for strings and \" for names")
    return text.error(f"Unexpected character {char!r}", offset)


def _excerpt(sql: str, start: int) -> str:
    match = re.compile(r"\w+").match(sql, start)
    return (match.group() if match else sql[start : start + 10])[:40]
