"""The ground of the grammar: sqlglot's parser, made strict.

sqlglot reads thirty dialects and forgives a lot: `SELECT a,,b`, `BETWEEN 1 2`, a FILTER without WHERE. Here every
clause is either read in full or a syntax error (STMT-8). What is left of sqlglot's parser are its tokens, its steps and
the levels of precedence; function calls stay what the client wrote, and types are read by our own reader, because
sqlglot reads nested ROW(ROW(...)) twice on each level.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NoReturn, TypeVar

from sqlglot import exp, parser
from sqlglot.tokenizer_core import Token as ParserToken
from sqlglot.tokenizer_core import TokenType

from sqe_core.sql.grammar.nodes import AnsiTree
from sqe_core.sql.grammar.types import SqlType
from sqe_core.sql.text.similar import keywords, meant

T = TypeVar("T")

NAME_TOKENS = (TokenType.VAR, TokenType.IDENTIFIER)
EXPRESSION_END = frozenset((TokenType.SENTINEL, TokenType.COMMA, TokenType.R_PAREN, TokenType.R_BRACKET))
QUERY_TAIL = frozenset(
    TokenType[name] for name in ("UNION", "EXCEPT", "INTERSECT", "ORDER_BY", "LIMIT", "OFFSET", "FETCH")
)


_CLAUSES = (
    *("FROM", "WHERE", "GROUP", "ORDER", "HAVING", "LIMIT", "OFFSET", "JOIN", "UNION", "EXCEPT", "INTERSECT"),
    *("VALUES", "SELECT", "WINDOW", "QUALIFY", "BETWEEN"),
)


class ParseFailure(Exception):
    """A syntax error at a token, before it becomes one of ours."""

    def __init__(
        self,
        token: ParserToken,
        *,
        expected: str | None = None,
        refused: str | None = None,
        misused: str | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(refused or misused or expected)
        self.token = token
        self.expected = expected  # what should have stood there
        self.refused = refused  # or: what is understood and not supported
        self.misused = misused  # or: what is wrong, in a sentence
        self.hint = hint


class StrictParser(parser.Parser):
    """Steps that fail instead of guessing."""

    FUNCTIONS: ClassVar[dict[str, Callable[..., Any]]] = {}
    FUNCTION_PARSERS: ClassVar[dict[str, Callable[..., Any]]] = {}
    NO_PAREN_FUNCTIONS: ClassVar[dict[Any, Any]] = {}
    NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, Callable[..., Any]]] = {}
    STATEMENT_PARSERS: ClassVar[dict[Any, Any]] = {}
    EQUALITY: ClassVar[dict[Any, Any]] = {TokenType.EQ: exp.EQ, TokenType.NEQ: exp.NEQ}
    TERM: ClassVar[dict[Any, Any]] = {TokenType.DASH: exp.Sub, TokenType.PLUS: exp.Add}
    FACTOR: ClassVar[dict[Any, Any]] = {TokenType.MOD: exp.Mod, TokenType.SLASH: exp.Div, TokenType.STAR: exp.Mul}

    def __init__(self, read_type: Callable[[int], tuple[SqlType, int]]) -> None:
        super().__init__(dialect=AnsiTree)
        self._read_type = read_type  # from a token index to the type and the index after it
        self._closing: dict[int, int] = {}  # from an opening bracket to its closing one

    def parse_tokens(self, tokens: Sequence[ParserToken], read: Callable[[], exp.Expression]) -> exp.Expression:
        """Read all the tokens with one of this parser's methods."""
        self.reset()
        self._tokens = list(tokens)
        self._tokens_size = len(self._tokens)
        self._closing = _closing_brackets(self._tokens)
        self._index = -1
        self._advance()
        result = read()
        if self._index < self._tokens_size:
            self._fail()
        return result

    @abstractmethod
    def read_query(self) -> exp.Expression:
        """Read a query."""

    def raise_error(self, message: str, token: Any = None) -> NoReturn:
        """Fail at a token; sqlglot's own sentences are not for users."""
        del message
        raise ParseFailure(token or self._curr)

    def _fail(
        self, expected: str | None = None, *, hint: str | None = None, token: ParserToken | None = None
    ) -> NoReturn:
        raise ParseFailure(token or self._curr, expected=expected, hint=hint or self._meant(expected))

    def _meant(self, expected: str | None) -> str | None:
        """Look for a keyword that is misspelt: here, or just before, where it was read as a name."""
        for token in (self._curr, self._prev):
            if token is not None and token.token_type == TokenType.VAR:
                hint = meant(token.text, (*keywords(expected), *_CLAUSES))
                if hint is not None:
                    return hint
        return None

    def _refuse(self, message: str, *, hint: str | None = None, token: ParserToken | None = None) -> NoReturn:
        raise ParseFailure(token or self._curr, refused=message, hint=hint)

    def _misuse(self, message: str, *, hint: str | None = None, token: ParserToken | None = None) -> NoReturn:
        raise ParseFailure(token or self._curr, misused=message, hint=hint)

    def _is_word(self, *words: str) -> bool:
        """Whether one of these unreserved words comes next."""
        return self._curr.token_type == TokenType.VAR and self._curr.text in words

    def _ahead(self, distance: int) -> ParserToken | None:
        index = self._index + distance
        return self._tokens[index] if index < self._tokens_size else None

    def _require(self, token_type: TokenType, what: str) -> None:
        if not self._match(token_type):
            self._fail(what)

    def _require_words(self, *words: str) -> None:
        for word in words:
            if not self._match_text_seq(word):
                self._fail(word)

    def _open(self) -> None:
        self._require(TokenType.L_PAREN, '"("')

    def _close(self) -> None:
        self._require(TokenType.R_PAREN, '")"')

    def _items(self, read: Callable[[], T | None], what: str | None = None) -> list[T]:
        items = [self._need(read, what)]
        while self._match(TokenType.COMMA):
            items.append(self._need(read, what))
        return items

    def _need(self, read: Callable[[], T | None], what: str | None = None) -> T:
        result = read()
        if result is None:
            self._fail(what or "an expression")
        return result

    def _expression(self, what: str | None = None) -> exp.Expression:
        result = self._need(self._parse_disjunction, what)
        assert isinstance(result, exp.Expression)
        return result

    def _operand(self) -> exp.Expression:
        """An expression without comparisons, AND and OR."""
        result = self._need(self._parse_bitwise)
        assert isinstance(result, exp.Expression)
        return result

    def _identifier(self, what: str = "a name") -> exp.Identifier:
        result = self._parse_id_var(any_token=False)
        if not isinstance(result, exp.Identifier):
            self._fail(what)
        return result

    def _parse_id_var(self, any_token: bool = True, tokens: Any = None) -> Any:
        token = self._curr
        if token.token_type in NAME_TOKENS or (any_token and token.text.isidentifier() and self._may_be_name(token)):
            self._advance()
            identifier = exp.Identifier(this=token.text, quoted=token.token_type == TokenType.IDENTIFIER)
            identifier.update_positions(token)
            return identifier
        return None

    @staticmethod
    def _may_be_name(token: ParserToken) -> bool:
        literals = (TokenType.STRING, TokenType.HEX_STRING, TokenType.PLACEHOLDER, TokenType.SENTINEL)
        return token.token_type not in literals

    def _columns(self) -> list[exp.Identifier]:
        self._open()
        columns = self._items(lambda: self._identifier("the name of a column"))
        self._close()
        return columns

    def _order(self) -> exp.Order:
        return exp.Order(expressions=self._items(self._ordered))

    def _ordered(self) -> exp.Ordered:
        this = self._expression()
        descending = self._match_text_seq("DESC")
        if not descending:
            self._match_text_seq("ASC")
        nulls_first: bool | None = None
        if self._match_text_seq("NULLS"):
            nulls_first = bool(self._match_text_seq("FIRST"))
            if not nulls_first:
                self._require_words("LAST")
        return exp.Ordered(this=this, desc=bool(descending), nulls_first=nulls_first)

    def _type(self) -> SqlType:
        result, index = self._read_type(self._index)
        self._advance(index - self._index)
        return result

    def _at_query(self, start: int | None = None) -> bool:
        """Whether a query begins here, perhaps inside brackets."""
        index = self._index if start is None else start
        while index < self._tokens_size and self._tokens[index].token_type == TokenType.L_PAREN:
            index += 1
        if index >= self._tokens_size:
            return False
        first = self._tokens[index].token_type
        if first == TokenType.TABLE:
            return index + 1 < self._tokens_size and self._tokens[index + 1].token_type in NAME_TOKENS
        return first in (TokenType.SELECT, TokenType.WITH, TokenType.VALUES)

    def _holds_query(self) -> bool:
        """Whether the bracket that comes next holds a query and nothing else; decided without reading it twice."""
        if self._curr.token_type != TokenType.L_PAREN or not self._at_query():
            return False
        index = self._index
        while self._tokens[index + 1].token_type == TokenType.L_PAREN:
            end = self._closing.get(index + 1)
            if end is None or end + 1 >= self._tokens_size:
                return True
            after = self._tokens[end + 1].token_type
            if after in QUERY_TAIL:
                return True
            if end + 1 != self._closing.get(index):
                return False
            index += 1
        return True

    def _subquery(self) -> exp.Subquery:
        """A query in brackets."""
        self._open()
        query = self.read_query()
        self._close()
        return exp.Subquery(this=query)

    def _at_function(self) -> bool:
        index, tokens = self._index, self._tokens
        while index + 1 < self._tokens_size and tokens[index].token_type in NAME_TOKENS:
            after = tokens[index + 1].token_type
            if after != TokenType.DOT:
                return after == TokenType.L_PAREN
            index += 2
        return False


def _closing_brackets(tokens: Sequence[ParserToken]) -> dict[int, int]:
    closing: dict[int, int] = {}
    opened: list[int] = []
    for index, token in enumerate(tokens):
        if token.token_type == TokenType.L_PAREN:
            opened.append(index)
        elif token.token_type == TokenType.R_PAREN and opened:
            closing[opened.pop()] = index
    return closing
