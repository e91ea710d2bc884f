"""Expressions: what binds how tightly, literals, names, CASE, predicates."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.tokenizer_core import Token as ParserToken
from sqlglot.tokenizer_core import TokenType

from sqe_core.sql.grammar.nodes import Call, Conversion, Period, Quantified
from sqe_core.sql.grammar.strict_parser import NAME_TOKENS, StrictParser
from sqe_core.sql.grammar.types import TYPE_WORDS

# Functions that stand without brackets.
BARE_FUNCTIONS = frozenset(
    (
        *("current_date", "current_time", "current_timestamp", "localtime", "localtimestamp"),
        *("current_user", "current_catalog", "current_schema", "current_role", "session_user"),
    )
)

_CONCATENATION = {TokenType.DPIPE: exp.DPipe}
_UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second", "millisecond", "microsecond")


class ExpressionGrammar(StrictParser):
    """Reads expressions; queries and calls inside are read by the classes below."""

    def read_expression(self) -> exp.Expression:
        return self._expression()

    @abstractmethod
    def _star(self) -> exp.Expression:
        """Read * with EXCEPT."""

    @abstractmethod
    def _call(self) -> exp.Expression:
        """Read a function call."""

    @abstractmethod
    def _lambda_names(self) -> list[exp.Identifier] | None:
        """Read `(a, b)` when `->` follows it."""

    @abstractmethod
    def _lambda(self, names: list[exp.Identifier]) -> exp.Expression:
        """Read the rest of a lambda."""

    def _parse_equality(self, parse_is: bool = True) -> Any:
        this = self._parse_comparison()
        while this is not None and self._match_set(self.EQUALITY):
            this = self._compared(self.EQUALITY[self._prev.token_type], this, self._parse_comparison)
        return this

    def _parse_type(self, parse_interval: bool = True, fallback_to_identifier: bool = False) -> Any:
        """Read what stands between operators: a literal, a call, a name, brackets, with what follows it."""
        return self._postfix(self._atom())

    def _parse_range(self, this: Any = None, parse_is: bool = False) -> Any:
        this = this or self._parse_bitwise()
        if this is None:
            return None
        while True:
            index = self._index
            negate = bool(self._match(TokenType.NOT))
            found = self._predicate(this)
            if found is None:
                if negate:
                    self._retreat(index)
                return this
            this = exp.Not(this=found) if negate else found

    def _predicate(self, this: exp.Expression) -> exp.Expression | None:
        token_type = self._curr.token_type
        if token_type == TokenType.BETWEEN:
            return self._between(this)
        if token_type == TokenType.IN:
            return self._in(this)
        if token_type in (TokenType.LIKE, TokenType.ILIKE):
            return self._like(this)
        if token_type in (TokenType.RLIKE, TokenType.IRLIKE):
            self._advance()
            kind: type[exp.Expression] = exp.RegexpLike if token_type == TokenType.RLIKE else exp.RegexpILike
            return kind(this=this, expression=self._operand())
        if self._match_text_seq("SIMILAR", "TO"):
            pattern = exp.SimilarTo(this=this, expression=self._operand())
            return self._escaped(pattern)
        if token_type == TokenType.IS:
            return self._is(this)
        return None

    def _between(self, this: exp.Expression) -> exp.Expression:
        self._advance()
        symmetric = self._match_text_seq("SYMMETRIC") or None
        if not symmetric:
            self._match_text_seq("ASYMMETRIC")
        low = self._operand()
        self._require(TokenType.AND, "AND")
        return exp.Between(this=this, low=low, high=self._operand(), symmetric=symmetric)

    def _in(self, this: exp.Expression) -> exp.Expression:
        self._advance()
        if self._curr.token_type != TokenType.L_PAREN:
            self._fail('"("', hint="to look into an array, write contains(array, value)")
        if self._holds_query():
            return exp.In(this=this, query=self._subquery())
        self._advance()
        values = self._items(self._expression)
        self._close()
        return exp.In(this=this, expressions=values)

    def _like(self, this: exp.Expression) -> exp.Expression:
        kind: type[exp.Expression] = exp.Like if self._curr.token_type == TokenType.LIKE else exp.ILike
        self._advance()
        if self._is_word("any", "all", "some") and self._next.token_type == TokenType.L_PAREN:
            self._refuse("LIKE ANY and LIKE ALL are not supported", hint="join the patterns with OR")
        return self._escaped(kind(this=this, expression=self._operand()))

    def _escaped(self, pattern: exp.Expression) -> exp.Expression:
        if not self._match(TokenType.ESCAPE):
            return pattern
        return exp.Escape(this=pattern, expression=self._operand())

    def _is(self, this: exp.Expression) -> exp.Expression:
        self._advance()
        negate = bool(self._match(TokenType.NOT))
        if self._match(TokenType.DISTINCT):
            self._require(TokenType.FROM, "FROM")
            kind: type[exp.Expression] = exp.NullSafeEQ if negate else exp.NullSafeNEQ
            return kind(this=this, expression=self._operand())
        right: exp.Expression
        if self._match(TokenType.NULL) or self._match_text_seq("UNKNOWN"):
            right = exp.Null()
        elif self._match(TokenType.TRUE):
            right = exp.Boolean(this=True)
        elif self._match(TokenType.FALSE):
            right = exp.Boolean(this=False)
        elif self._match_text_seq("JSON"):
            right = exp.JSON(this=self._json_kind())
        else:
            self._fail("NULL, TRUE, FALSE or DISTINCT FROM")
        found = exp.Is(this=this, expression=right)
        return exp.Not(this=found) if negate else found

    def _json_kind(self) -> str:
        for word in ("VALUE", "SCALAR", "ARRAY", "OBJECT"):
            if self._match_text_seq(word):
                return word
        return "VALUE"

    def _parse_comparison(self, this: Any = None) -> Any:
        this = this or self._parse_range()
        while self._match_set(self.COMPARISON):
            kind = self.COMPARISON[self._prev.token_type]
            this = self._compared(kind, this, self._parse_range)
        return this

    def _compared(self, kind: Any, this: exp.Expression, right: Callable[[], Any]) -> exp.Expression:
        if self._is_word("any", "some", "all") and self._next.token_type == TokenType.L_PAREN:
            every = self._curr.text == "all"
            self._advance()
            if not self._at_query():
                self._fail("a subquery", hint="to look into an array, write contains(array, value)")
            return Quantified(this=this, op=kind, query=self._subquery(), all=every)
        found = kind(this=this, expression=self._need(right))
        assert isinstance(found, exp.Expression)
        return found

    def _parse_unary(self) -> Any:
        if self._match(TokenType.DASH):
            return exp.Neg(this=self._need(self._parse_unary))
        if self._match(TokenType.PLUS):
            return self._need(self._parse_unary)
        if self._match(TokenType.NOT):
            return exp.Not(this=self._need(self._parse_equality))
        return self._parse_type()

    def _parse_bitwise(self) -> Any:
        return self._chain(_CONCATENATION, self._parse_term)

    def _parse_factor(self, parse_mod: bool = True) -> Any:
        return self._chain(self.FACTOR, self._parse_unary)

    def _parse_term(self, parse_mod: bool = True) -> Any:
        return self._chain(self.TERM, self._parse_factor)

    def _chain(self, operators: Mapping[TokenType, Any], read: Callable[[], Any]) -> Any:
        """Operands of one level with operators between them, from the left."""
        this = read()
        while this is not None and self._match_set(operators):
            this = operators[self._prev.token_type](this=this, expression=self._need(read))
        return this

    def _postfix(self, this: exp.Expression | None) -> exp.Expression | None:
        while this is not None:
            if self._curr.token_type == TokenType.L_BRACKET:
                token = self._curr
                self._advance()
                index = self._expression()
                if not self._match(TokenType.R_BRACKET):
                    self._fail('"]"', hint="parts of arrays are written slice(array, start, length)")
                this = exp.Bracket(this=this, expressions=[index])
                this.update_positions(token)
            elif self._match(TokenType.DCOLON):
                this = Conversion(this=this, to=self._type())
            elif self._curr.token_type == TokenType.DOT:
                this = self._member(this)
            elif self._match_text_seq("AT", "TIME", "ZONE"):
                this = _at_zone(this, self._need(self._parse_unary))
            elif self._match_text_seq("AT", "LOCAL"):
                this = exp.AtTimeZone(this=this, zone=Call(this="current_timezone"))
            elif self._is_word("collate"):
                self._refuse("COLLATE is not supported")
            else:
                break
        return this

    def _member(self, this: exp.Expression) -> exp.Expression:
        self._advance()
        if self._curr.token_type == TokenType.STAR:
            if isinstance(this, exp.Column):
                star = self._star()
                return exp.Column(this=star, table=this.this, db=this.args.get("table"), catalog=this.args.get("db"))
            self._advance()
            return exp.Dot(this=this, expression=exp.Star())
        name = self._parse_id_var(any_token=True)
        if name is None:
            self._fail("the name of a field")
        return exp.Dot(this=this, expression=name)

    def _atom(self) -> exp.Expression | None:
        token = self._curr
        token_type = token.token_type
        if token_type == TokenType.VAR:
            return self._word()
        if token_type == TokenType.IDENTIFIER:
            return self._call() if self._at_function() else self._column_name()
        if token_type == TokenType.STRING:
            return self._strings()
        if token_type == TokenType.L_PAREN:
            return self._brackets()
        simple = self._SIMPLE_ATOMS.get(token_type)
        if simple is not None:
            self._advance()
            node = simple(token)
            node.update_positions(token)
            return node
        special = self._SPECIAL_ATOMS.get(token_type)
        if special is not None:
            result = special(self)
            assert isinstance(result, exp.Expression)
            return result
        # Keywords that are functions when a bracket follows.
        if self._next.token_type == TokenType.L_PAREN and token_type in (TokenType.LEFT, TokenType.RIGHT):
            return self._call()
        return None

    _SIMPLE_ATOMS: ClassVar[dict[TokenType, Callable[[ParserToken], exp.Expression]]] = {
        TokenType.NUMBER: lambda token: exp.Literal(this=token.text, is_string=False),
        TokenType.HEX_STRING: lambda token: exp.HexString(this=token.text),
        TokenType.NULL: lambda token: exp.Null(),
        TokenType.TRUE: lambda token: exp.Boolean(this=True),
        TokenType.FALSE: lambda token: exp.Boolean(this=False),
        TokenType.PLACEHOLDER: lambda token: exp.Placeholder(this=token.text),
    }

    _SPECIAL_ATOMS: ClassVar[dict[TokenType, Callable[[Any], Any]]] = {
        TokenType.CASE: lambda self: self._parse_case(),
        TokenType.INTERVAL: lambda self: self._period(),
        TokenType.EXISTS: lambda self: self._exists(),
        TokenType.UNNEST: lambda self: self._fail(
            "a column or an expression", hint="UNNEST stands in FROM: SELECT x FROM UNNEST(…) AS t(x)"
        ),
    }

    def _word(self) -> exp.Expression:
        token, following = self._curr, self._next
        word = token.text
        if following.token_type == TokenType.L_PAREN or (following.token_type == TokenType.DOT and self._at_function()):
            return self._call()
        if following.token_type == TokenType.STRING and word in TYPE_WORDS and word not in ("interval", "array", "map"):
            return self._typed_literal()
        if self._at_long_literal(word):
            return self._typed_literal()
        if word == "array" and following.token_type == TokenType.L_BRACKET:
            self._advance(2)
            values = [] if self._curr.token_type == TokenType.R_BRACKET else self._items(self._expression)
            self._require(TokenType.R_BRACKET, '"]"')
            return exp.Array(expressions=values)
        if word in BARE_FUNCTIONS and following.token_type != TokenType.DOT:
            self._advance()
            call = Call(this=word)
            call.update_positions(token)
            return call
        return self._column_name()

    def _at_long_literal(self, word: str) -> bool:
        """Whether a literal begins whose type has several words."""
        more = {"double": ("precision",), "timestamp": (self._next.text, "time", "zone")}.get(word)
        if more is None or (word == "timestamp" and self._next.text not in ("with", "without")):
            return False
        following = [self._ahead(at) for at in range(1, len(more) + 2)]
        last = following.pop()
        return (
            last is not None
            and last.token_type == TokenType.STRING
            and all(token is not None and token.text == text for token, text in zip(following, more, strict=True))
        )

    def _typed_literal(self) -> exp.Expression:
        token = self._curr
        target = self._type()
        value = self._strings()
        literal = Conversion(this=value, to=target, literal=True)
        literal.update_positions(token)
        return literal

    def _strings(self) -> exp.Expression:
        token = self._curr
        self._advance()
        if self._curr.token_type == TokenType.STRING:
            self._fail(hint="join strings with ||; a quote inside a string is written twice")
        literal = exp.Literal(this=token.text, is_string=True)
        literal.update_positions(token)
        return literal

    def _column_name(self) -> exp.Expression:
        parts = [self._identifier()]
        while self._curr.token_type == TokenType.DOT and len(parts) < 4 and self._next.token_type in NAME_TOKENS:
            self._advance()
            parts.append(self._identifier())
        keys = ("this", "table", "db", "catalog")
        column = exp.Column(**dict(zip(keys, reversed(parts), strict=False)))
        column.meta.update(parts[0].meta)
        return column

    def _brackets(self) -> exp.Expression:
        if self._holds_query():
            return self._subquery()
        names = self._lambda_names()
        if names is not None:
            return self._lambda(names)
        self._advance()
        values = self._items(self._expression)
        self._close()
        if len(values) == 1:
            return exp.Paren(this=values[0])
        return exp.Tuple(expressions=values)

    def _exists(self) -> exp.Expression:
        self._advance()
        if self._curr.token_type != TokenType.L_PAREN or not self._at_query():
            self._fail("a subquery in brackets")
        return exp.Exists(this=self._subquery().this)

    def _parse_case(self) -> Any:
        self._advance()
        operand = None if self._curr.token_type == TokenType.WHEN else self._expression()
        branches = []
        while self._match(TokenType.WHEN):
            condition = self._expression()
            self._require(TokenType.THEN, "THEN")
            branches.append(exp.If(this=condition, true=self._expression()))
        if not branches:
            self._fail("WHEN")
        default = self._expression() if self._match(TokenType.ELSE) else None
        self._require(TokenType.END, "END")
        return exp.Case(this=operand, ifs=branches, default=default)

    def _period(self) -> exp.Expression:
        token = self._curr
        self._advance()
        sign = -1 if self._match(TokenType.DASH) else 1
        if sign == 1:
            self._match(TokenType.PLUS)
        if self._curr.token_type not in (TokenType.STRING, TokenType.NUMBER):
            self._fail("a string with the length, as in INTERVAL '3' DAY")
        value = self._curr.text
        self._advance()
        unit = self._unit()
        to = self._unit() if unit and self._match_text_seq("TO") else None
        period = Period(this=value, sign=sign, unit=unit or "", to=to)
        period.update_positions(token)
        return period

    def _unit(self) -> str | None:
        word = self._curr.text
        if self._curr.token_type != TokenType.VAR:
            return None
        singular = word[:-1] if word.endswith("s") else word
        if singular not in _UNITS:
            return None
        self._advance()
        return singular


def _at_zone(this: exp.Expression, zone: exp.Expression) -> exp.AtTimeZone:
    """`a AT TIME ZONE b AT TIME ZONE c`: what is behind the first one was read as one operand."""
    if isinstance(zone, exp.AtTimeZone):
        return exp.AtTimeZone(this=_at_zone(this, zone.this), zone=zone.args["zone"])
    return exp.AtTimeZone(this=this, zone=zone)
