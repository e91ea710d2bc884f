"""A place in the tokens, with the small questions that every hand-written grammar asks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NoReturn, TypeVar

from sqe_core.spi.errors import NotSupportedError
from sqe_core.sql.statement import Name
from sqe_core.sql.text.similar import keywords, meant
from sqe_core.sql.text.tokens import NAMES, Kind, Text, Token

T = TypeVar("T")

MAX_NAME_PARTS = 3


class Cursor:
    """Reads tokens from left to right."""

    def __init__(self, text: Text, tokens: Sequence[Token], index: int = 0) -> None:
        self.text = text
        self.tokens = tokens
        self.index = index

    @property
    def token(self) -> Token:
        """The token to read next; at the end the END token, again and again."""
        return self.tokens[self.index]

    def peek(self, distance: int = 1) -> Token:
        """The token `distance` after the next one."""
        return self.tokens[min(self.index + distance, len(self.tokens) - 1)]

    def advance(self) -> Token:
        token = self.tokens[self.index]
        if token.kind is not Kind.END:
            self.index += 1
        return token

    @property
    def at_end(self) -> bool:
        return self.token.kind is Kind.END

    def at(self, *words: str) -> bool:
        """Whether these unquoted words come next."""
        return all(self.peek(distance).is_word(word) for distance, word in enumerate(words))

    def at_any(self, *words: str) -> bool:
        """Whether one of these unquoted words comes next."""
        return self.token.kind is Kind.WORD and self.token.value in words

    def accept(self, *words: str) -> bool:
        """Read these words if they come next."""
        if not self.at(*words):
            return False
        self.index += len(words)
        return True

    def accept_any(self, *words: str) -> str | None:
        """Read one of these words and return it."""
        if not self.at_any(*words):
            return None
        return self.advance().value

    def expect(self, *words: str) -> None:
        """Read these words or fail."""
        for word in words:
            if not self.accept(word):
                self.fail(word.upper())

    def at_symbol(self, symbol: str) -> bool:
        return self.token.is_symbol(symbol)

    def accept_symbol(self, symbol: str) -> bool:
        if not self.at_symbol(symbol):
            return False
        self.index += 1
        return True

    def expect_symbol(self, symbol: str) -> None:
        if not self.accept_symbol(symbol):
            self.fail(f'"{symbol}"')

    def items(self, read: Callable[[Cursor], T]) -> list[T]:
        """Read one or more of the same, with commas between them."""
        found = [read(self)]
        while self.accept_symbol(","):
            found.append(read(self))
        return found

    def bracketed(self, read: Callable[[Cursor], T]) -> list[T]:
        """Read them in brackets."""
        self.expect_symbol("(")
        found = self.items(read)
        self.expect_symbol(")")
        return found

    def before_name(self, *words: str) -> bool:
        """Whether one of these words comes next, and a name behind it: alone it would be the name."""
        return self.at_any(*words) and self.peek().kind in NAMES

    def part(self, what: str = "a name") -> str:
        """Read one part of a name, folded."""
        if self.token.kind not in NAMES:
            self.fail(what)
        return self.advance().value

    def name(self, what: str = "a name", *, most: int = MAX_NAME_PARTS) -> Name:
        """Read a name of one to `most` parts."""
        start = self.token
        parts = [self.part(what)]
        while self.accept_symbol("."):
            parts.append(self.part(what))
        if len(parts) > most:
            raise self.text.error(
                f"A name has at most {most} parts here, this one has {len(parts)}",
                start.start,
                hint='a nested schema is one quoted part, as in catalog."a.b".t',
            )
        return tuple(parts)

    def string(self, what: str = "a string in single quotes") -> str:
        if self.token.kind is not Kind.STRING:
            self.fail(what)
        return self.advance().value

    def integer(self, what: str = "a whole number") -> int:
        """Read a whole number, with its sign."""
        sign = -1 if self.accept_symbol("-") else 1
        if self.token.kind is not Kind.NUMBER or not self.token.value.isdigit():
            self.fail(what)
        return sign * int(self.advance().value)

    def if_exists(self) -> bool:
        return self.accept("if", "exists")

    def if_not_exists(self, *, replace: bool = False) -> bool:
        """Read IF NOT EXISTS if it comes next; `replace` is whether OR REPLACE stood before, which excludes it."""
        found = self.accept("if", "not", "exists")
        if found and replace:
            self.fail("no IF NOT EXISTS after OR REPLACE")
        return found

    def skip_brackets(self) -> tuple[int, int]:
        """Read over a bracketed part; return the token indexes of what is inside."""
        self.expect_symbol("(")
        first, depth = self.index, 1
        while depth:
            if self.at_end:
                self.fail('")"')
            token = self.advance()
            if token.is_symbol("("):
                depth += 1
            elif token.is_symbol(")"):
                depth -= 1
        return first, self.index - 1

    def source(self, first: int, last: int) -> str:
        """The text from token `first` up to token `last`, exclusive."""
        if first >= last:
            return ""
        return self.text.sql[self.tokens[first].start : self.tokens[last - 1].end]

    def done(self) -> None:
        """Fail if something is left."""
        if not self.at_end:
            self.fail()

    def fail(self, expected: str | None = None, *, hint: str | None = None) -> NoReturn:
        """Raise a syntax error at the next token."""
        if hint is None and self.token.kind is Kind.WORD:
            hint = meant(self.token.value, keywords(expected))
        raise self.text.error(unexpected(self.text, self.token, expected), self.token.start, hint=hint)

    def refuse(
        self, message: str, *, hint: str | None = None, at: Token | None = None, condition: str | None = None
    ) -> NoReturn:
        """Raise NOT_SUPPORTED at a token, by default the next one."""
        position = self.text.position((at or self.token).start)
        raise NotSupportedError(message, hint=hint, position=position, condition=condition)


def unexpected(text: Text, token: Token, expected: str | None = None) -> str:
    """Say what stands where something else was expected."""
    if token.kind is Kind.END:
        found = "The statement ends too early"
    else:
        written = " ".join(text.sql[token.start : token.end].split())
        found = f"Unexpected {written if len(written) <= 40 else written[:37] + '...'}"
    return f"{found}, expected {expected}" if expected else found
