"""Function calls: arguments, DISTINCT, ORDER BY, FILTER, WITHIN GROUP, OVER, lambdas, and calls with words inside."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from sqe_core.sql.grammar.json import JSON_CALLS, JsonGrammar
from sqe_core.sql.grammar.nodes import Call, Conversion, Frame
from sqe_core.sql.grammar.strict_parser import EXPRESSION_END, NAME_TOKENS


class CallGrammar(JsonGrammar):
    def _call(self) -> exp.Expression:
        token = self._curr
        parts = [token.text]
        self._advance()
        while self._match(TokenType.DOT):
            parts.append(self._identifier().name)
        name = ".".join(parts)
        special = SPECIAL_CALLS.get(name)
        self._open()
        call = special(self) if special else self._plain_call(name)
        self._close()
        call.update_positions(token)
        if isinstance(call, Call):
            return self._after_call(call)
        assert isinstance(call, exp.Expression)
        return call

    def _plain_call(self, name: str) -> Call:
        call = Call(this=name)
        if self._curr.token_type == TokenType.R_PAREN:
            return call
        if self._curr.token_type == TokenType.STAR and self._next.token_type == TokenType.R_PAREN:
            self._advance()
            call.set("expressions", [exp.Star()])
            return call
        if self._match(TokenType.DISTINCT):
            call.set("distinct", True)
        elif self._is_word("all") and self._next.token_type not in EXPRESSION_END:
            self._advance()
        call.set("expressions", self._items(self._argument))
        if self._match(TokenType.ORDER_BY):
            call.set("order", self._order())
        self._nulls(call)
        return call

    def _nulls(self, call: Call) -> None:
        for word in ("IGNORE", "RESPECT"):
            if self._match_text_seq(word, "NULLS"):
                call.set("nulls", word.lower())

    def _argument(self) -> Any:
        if self._curr.token_type == TokenType.VAR and self._next.token_type == TokenType.FARROW:
            name = self._identifier()
            self._advance()
            return exp.Kwarg(this=name, expression=self._expression())
        if self._next.token_type == TokenType.ARROW and self._curr.token_type in NAME_TOKENS:
            return self._lambda([self._identifier()])
        return self._expression()

    def _lambda_names(self) -> list[exp.Identifier] | None:
        """Read `(a, b)` when `->` follows it."""
        index = self._index + 1
        tokens = self._tokens
        while index + 1 < self._tokens_size and tokens[index].token_type in NAME_TOKENS:
            if tokens[index + 1].token_type != TokenType.COMMA:
                index += 1
                break
            index += 2
        after = tokens[index + 1].token_type if index + 1 < self._tokens_size else None
        if index < self._tokens_size and tokens[index].token_type == TokenType.R_PAREN and after == TokenType.ARROW:
            if index == self._index + 1:
                self._advance(2)
                return []
            return self._columns()
        return None

    def _lambda(self, names: list[exp.Identifier]) -> exp.Expression:
        self._require(TokenType.ARROW, "->")
        return exp.Lambda(this=self._expression(), expressions=names)

    def _after_call(self, call: Call) -> exp.Expression:
        if self._match_text_seq("WITHIN", "GROUP"):
            self._open()
            self._require(TokenType.ORDER_BY, "ORDER BY")
            call.set("within", self._order())
            self._close()
        if self._is_word("filter") and self._next.token_type == TokenType.L_PAREN:
            self._advance(2)
            self._require(TokenType.WHERE, "WHERE")
            call.set("filter", self._expression())
            self._close()
        self._nulls(call)
        if not self._is_word("over") or self._next.token_type not in (TokenType.L_PAREN, *NAME_TOKENS):
            return call
        self._advance()
        if self._curr.token_type == TokenType.L_PAREN:
            return self._window_body(exp.Window(this=call))
        return exp.Window(this=call, alias=self._identifier("the name of a window"))

    def _named_window(self) -> exp.Expression:
        name = self._identifier("the name of a window")
        self._require(TokenType.ALIAS, "AS")
        return self._window_body(exp.Window(this=name))

    def _window_body(self, window: exp.Window) -> exp.Window:
        self._open()
        if self._curr.token_type in NAME_TOKENS and not self._at_frame():
            window.set("alias", self._identifier())
        if self._match(TokenType.PARTITION_BY):
            window.set("partition_by", self._items(self._expression))
        if self._match(TokenType.ORDER_BY):
            window.set("order", self._order())
        if self._at_frame():
            window.set("spec", self._frame())
        self._close()
        return window

    def _at_frame(self) -> bool:
        return self._is_word("rows", "range", "groups") and (
            self._next.token_type in (TokenType.BETWEEN, TokenType.NUMBER, TokenType.INTERVAL, TokenType.PLACEHOLDER)
            or self._next.text in ("unbounded", "current")
        )

    def _frame(self) -> Frame:
        kind = self._curr.text.upper()
        self._advance()
        if self._match(TokenType.BETWEEN):
            start, start_side = self._bound()
            self._require(TokenType.AND, "AND")
            end, end_side = self._bound()
        else:
            (start, start_side), end, end_side = self._bound(), None, None
        frame = Frame(kind=kind, start=start, start_side=start_side, end=end, end_side=end_side)
        if self._is_word("exclude"):
            self._refuse("EXCLUDE in a window frame is not supported")
        return frame

    def _bound(self) -> tuple[Any, str | None]:
        if self._match_text_seq("CURRENT", "ROW"):
            return "CURRENT ROW", None
        value: Any = "UNBOUNDED" if self._match_text_seq("UNBOUNDED") else self._operand()
        for side in ("PRECEDING", "FOLLOWING"):
            if self._match_text_seq(side):
                return value, side
        self._fail("PRECEDING or FOLLOWING")

    def _cast_call(self, safe: bool) -> exp.Expression:
        value = self._expression()
        self._require(TokenType.ALIAS, "AS")
        return Conversion(this=value, to=self._type(), safe=safe or None)

    def _extract_call(self) -> exp.Expression:
        if self._curr.token_type not in (TokenType.VAR, TokenType.STRING):
            self._fail("a part of a date, such as YEAR")
        part = self._curr.text.lower()
        self._advance()
        self._require(TokenType.FROM, "FROM")
        return Call(this="extract", expressions=[exp.Literal.string(part), self._expression()])

    def _trim_call(self) -> exp.Expression:
        name = "trim"
        for word, function in (("LEADING", "ltrim"), ("TRAILING", "rtrim"), ("BOTH", "trim")):
            if self._curr.text.upper() == word and self._next.token_type != TokenType.R_PAREN:
                self._advance()
                name = function
                break
        if self._match(TokenType.FROM):
            return Call(this=name, expressions=[self._expression()])
        first = self._expression()
        if self._match(TokenType.FROM):
            return Call(this=name, expressions=[self._expression(), first])
        arguments = [first]
        if self._match(TokenType.COMMA):
            arguments.append(self._expression())
        return Call(this=name, expressions=arguments)

    def _substring_call(self) -> exp.Expression:
        arguments = [self._expression()]
        if self._match(TokenType.FROM):
            arguments.append(self._expression())
            if self._match(TokenType.FOR):
                arguments.append(self._expression())
        elif self._match(TokenType.FOR):
            arguments += [exp.Literal.number(1), self._expression()]
        else:
            arguments += self._more()
        return Call(this="substring", expressions=arguments)

    def _more(self) -> list[exp.Expression]:
        return self._items(self._expression) if self._match(TokenType.COMMA) else []

    def _position_call(self) -> exp.Expression:
        needle = self._operand()
        if self._match(TokenType.IN):
            return Call(this="position", expressions=[self._operand(), needle])
        # position(a, b) means strpos(b, a) nowhere but in Spark and Snowflake; Trino has only the IN form.
        return Call(this="position", expressions=[needle, *self._more()])

    def _overlay_call(self) -> exp.Expression:
        arguments = [self._expression()]
        if self._match_text_seq("PLACING"):
            arguments.append(self._expression())
            self._require(TokenType.FROM, "FROM")
            arguments.append(self._expression())
            if self._match(TokenType.FOR):
                arguments.append(self._expression())
        else:
            arguments += self._more()
        return Call(this="overlay", expressions=arguments)

    def _normalize_call(self) -> exp.Expression:
        arguments = [self._expression()]
        if self._match(TokenType.COMMA):
            form = self._curr.text.upper()
            if form not in ("NFC", "NFD", "NFKC", "NFKD"):
                self._fail("NFC, NFD, NFKC or NFKD")
            self._advance()
            arguments.append(exp.Literal.string(form))
        return Call(this="normalize", expressions=arguments)

    def _listagg_call(self) -> exp.Expression:
        call = Call(this="listagg")
        if self._match(TokenType.DISTINCT):
            call.set("distinct", True)
        arguments = [self._expression()]
        if self._match(TokenType.COMMA):
            arguments.append(self._expression())
        if self._match(TokenType.ON):
            self._require_words("OVERFLOW")
            if not self._match_text_seq("ERROR"):
                self._refuse("ON OVERFLOW TRUNCATE is not supported")
        call.set("expressions", arguments)
        if self._match(TokenType.ORDER_BY):
            call.set("order", self._order())
        return call


SPECIAL_CALLS: dict[str, Callable[[Any], exp.Expression]] = {
    "cast": lambda grammar: grammar._cast_call(safe=False),
    "try_cast": lambda grammar: grammar._cast_call(safe=True),
    "extract": lambda grammar: grammar._extract_call(),
    "trim": lambda grammar: grammar._trim_call(),
    "substring": lambda grammar: grammar._substring_call(),
    "position": lambda grammar: grammar._position_call(),
    "overlay": lambda grammar: grammar._overlay_call(),
    "normalize": lambda grammar: grammar._normalize_call(),
    "listagg": lambda grammar: grammar._listagg_call(),
    **JSON_CALLS,
}
