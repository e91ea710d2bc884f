"""Queries: SELECT and its clauses, WITH, set operations, ORDER BY and LIMIT."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from sqe_core.sql.grammar.nodes import DefaultMark
from sqe_core.sql.grammar.strict_parser import EXPRESSION_END, NAME_TOKENS, QUERY_TAIL
from sqe_core.sql.grammar.tables import TableGrammar

_ROW_ENDS = frozenset((*EXPRESSION_END, *QUERY_TAIL, *NAME_TOKENS, TokenType.ALIAS, TokenType.ON))


class QueryGrammar(TableGrammar):
    def read_query(self) -> exp.Expression:
        """Read [WITH ...] SELECT ..., VALUES, TABLE t, with set operations, ORDER BY and LIMIT."""
        with_ = self._with()
        query = self._set_operations()
        self._tail(query)
        return self._under(with_, query)

    @staticmethod
    def _under(with_: exp.With | None, query: exp.Expression) -> exp.Expression:
        """A query below a WITH clause, if there is one; it may have one of its own."""
        if with_ is not None:
            if query.args.get("with_"):
                query = exp.Subquery(this=query)
            query.set("with_", with_)
        return query

    def _with(self) -> exp.With | None:
        if not self._match(TokenType.WITH):
            return None
        recursive = self._match_text_seq("RECURSIVE")
        if self._match_text_seq("FUNCTION", advance=False) and self._next.token_type == TokenType.VAR:
            self._refuse("Functions cannot be defined in SQL", hint="write the expression in the query")
        return exp.With(expressions=self._items(self._cte), recursive=recursive or None)

    def _cte(self) -> exp.CTE:
        alias = exp.TableAlias(this=self._identifier("the name of a common table expression"))
        if self._curr.token_type == TokenType.L_PAREN:
            alias.set("columns", self._columns())
        self._require(TokenType.ALIAS, "AS")
        if self._match_text_seq("NOT"):
            self._require_words("MATERIALIZED")
        else:
            self._match_text_seq("MATERIALIZED")
        return exp.CTE(this=self._subquery().this, alias=alias)

    def _set_operations(self) -> exp.Expression:
        left = self._intersections()
        while self._curr.token_type in (TokenType.UNION, TokenType.EXCEPT):
            operation = exp.Union if self._curr.token_type == TokenType.UNION else exp.Except
            left = self._set_operation(operation, left, self._intersections)
        return left

    def _intersections(self) -> exp.Expression:
        left = self._query_term()
        while self._curr.token_type == TokenType.INTERSECT:
            left = self._set_operation(exp.Intersect, left, self._query_term)
        return left

    def _set_operation(
        self, operation: type[exp.SetOperation], left: exp.Expression, right: Callable[[], exp.Expression]
    ) -> exp.Expression:
        self._advance()
        distinct = not self._match_text_seq("ALL")
        if distinct:
            self._match(TokenType.DISTINCT)
        corresponding = self._match_text_seq("CORRESPONDING") or None
        by_name = self._match_text_seq("BY", "NAME") or None
        return operation(this=left, distinct=distinct, expression=right(), by_name=corresponding or by_name)

    def _query_term(self) -> exp.Expression:
        if self._curr.token_type == TokenType.L_PAREN:
            return self._subquery()
        if self._match(TokenType.VALUES):
            return exp.Values(expressions=self._items(self._row))
        if self._match(TokenType.TABLE):
            table = self._table_name()
            return exp.Select(expressions=[exp.Star()], from_=exp.From(this=table))
        if self._match(TokenType.SELECT):
            return self._select()
        if self._curr.token_type == TokenType.FROM:
            self._fail("SELECT", hint="write SELECT * FROM …")
        self._fail("SELECT")

    def _row(self) -> exp.Expression:
        if self._curr.token_type == TokenType.L_PAREN and not self._holds_query():
            self._advance()
            values = self._items(self._value)
            self._close()
            # (1) + 2 is an expression whose first part stands in brackets.
            if self._curr.token_type in _ROW_ENDS:
                return exp.Tuple(expressions=values)
            self._fail('"," or the end of the rows', hint="put each row in brackets")
        return exp.Tuple(expressions=[self._value()])

    def _value(self) -> exp.Expression:
        if self._is_word("default") and self._next.token_type in EXPRESSION_END:
            self._advance()
            return DefaultMark()
        return self._expression()

    def _select(self) -> exp.Select:
        distinct = None
        if self._match(TokenType.DISTINCT):
            distinct = exp.Distinct()
            if self._curr.token_type == TokenType.ON:
                self._refuse(
                    "SELECT DISTINCT ON is not supported",
                    hint="use QUALIFY row_number() OVER (PARTITION BY … ORDER BY …) = 1",
                )
        elif self._is_word("all") and self._next.token_type not in (*EXPRESSION_END, TokenType.FROM, TokenType.DOT):
            self._advance()
        self._no_top()
        select = exp.Select(distinct=distinct, expressions=self._items(self._projection, "a column or an expression"))
        if self._match(TokenType.FROM):
            self._from(select)
        self._where(select)
        if self._match(TokenType.GROUP_BY):
            select.set("group", self._group())
        if self._match(TokenType.HAVING):
            select.set("having", exp.Having(this=self._expression()))
        if self._at_windows():
            self._advance()
            select.set("windows", self._items(self._named_window))
        if self._match(TokenType.QUALIFY):
            select.set("qualify", exp.Qualify(this=self._expression()))
            if self._at_windows():
                self._advance()
                select.append("windows", self._named_window())
        return select

    def _where(self, holder: exp.Expression) -> None:
        if self._match(TokenType.WHERE):
            holder.set("where", exp.Where(this=self._expression()))

    def _no_top(self) -> None:
        if self._is_word("top"):
            after = self._next.token_type
            if after == TokenType.NUMBER or (after == TokenType.L_PAREN and self._number_in_brackets()):
                self._refuse("SELECT TOP is not supported", hint="write LIMIT n at the end of the query")

    def _number_in_brackets(self) -> bool:
        number, bracket, after = (self._ahead(distance) for distance in (2, 3, 4))
        return (
            (number is not None and number.token_type == TokenType.NUMBER)
            and (bracket is not None and bracket.token_type == TokenType.R_PAREN)
            and (after is not None and after.token_type in (TokenType.STAR, *NAME_TOKENS))
        )

    def _projection(self) -> exp.Expression:
        if self._curr.token_type == TokenType.STAR:
            return self._star()
        if self._curr.token_type in EXPRESSION_END or self._curr.token_type == TokenType.FROM:
            self._fail("a column or an expression")
        first = self._curr
        value = self._expression("a column or an expression")
        alias = self._output_alias()
        if alias is None:
            value.meta.setdefault("first", first.start)
            value.meta["last"] = self._prev.end
            return value
        return exp.Alias(this=value, alias=alias)

    def _star(self) -> exp.Expression:
        token = self._curr
        self._advance()
        star = exp.Star()
        star.update_positions(token)
        if (
            self._curr.token_type == TokenType.EXCEPT or self._is_word("exclude")
        ) and self._next.token_type == TokenType.L_PAREN:
            self._advance()
            star.set("except_", self._columns())
        elif self._is_word("exclude") and self._next.token_type in NAME_TOKENS:
            self._fail(token=self._next, expected='"("', hint=f"write * EXCLUDE ({self._next.text})")
        elif self._is_word("replace", "rename") and self._next.token_type == TokenType.L_PAREN:
            self._refuse(f"* {self._curr.text.upper()} is not supported", hint="name the columns")
        return star

    def _output_alias(self) -> exp.Identifier | None:
        if self._match(TokenType.ALIAS):
            if self._curr.token_type == TokenType.STRING:
                self._fail("a name", hint='column names stand in double quotes, as in AS "my column"')
            result = self._parse_id_var(any_token=True)
            if not isinstance(result, exp.Identifier):
                self._fail("a name")
            return result
        if self._curr.token_type in NAME_TOKENS and not self._at_windows():
            return self._identifier()
        return None

    def _at_windows(self) -> bool:
        after = self._ahead(2)
        return (
            self._is_word("window")
            and self._next.token_type in NAME_TOKENS
            and after is not None
            and after.token_type == TokenType.ALIAS
        )

    def _group(self) -> exp.Group:
        if self._match(TokenType.DISTINCT):
            self._refuse("GROUP BY DISTINCT is not supported", token=self._prev)
        if self._is_word("all") and self._ends_group(self._next.token_type):
            self._advance()
            return exp.Group(all=True)
        return exp.Group(expressions=self._items(self._grouping))

    @staticmethod
    def _ends_group(token_type: TokenType) -> bool:
        return token_type in (*EXPRESSION_END, *QUERY_TAIL, TokenType.HAVING, TokenType.QUALIFY)

    def _grouping(self) -> exp.Expression:
        if self._match_text_seq("GROUPING", "SETS"):
            self._open()
            sets = self._items(self._grouping_element)
            self._close()
            return exp.GroupingSets(expressions=sets)
        for word, kind in (("rollup", exp.Rollup), ("cube", exp.Cube)):
            if self._is_word(word) and self._next.token_type == TokenType.L_PAREN:
                self._advance(2)
                elements = self._items(self._grouping_element)
                self._close()
                return kind(expressions=elements)
        return self._grouping_element(nested=False)

    def _grouping_element(self, nested: bool = True) -> exp.Expression:
        begins = self._next.token_type == TokenType.L_PAREN or self._next.text == "sets"
        if nested and begins and self._is_word("rollup", "cube", "grouping"):
            return self._grouping()
        if self._curr.token_type == TokenType.L_PAREN and self._next.token_type == TokenType.R_PAREN:
            self._advance(2)
            return exp.Tuple(expressions=[])
        return self._expression()

    def _tail(self, query: exp.Expression) -> None:
        """ORDER BY, LIMIT, OFFSET and FETCH, the last three in any order."""
        if self._match(TokenType.ORDER_BY):
            query.set("order", self._order())
        while True:
            token = self._curr
            key, value = self._bound_of_rows()
            if key is None:
                break
            if query.args.get(key):
                self._fail(token=token)
            if value is not None:
                query.set(key, value)
        if self._match_text_seq("FOR", "UPDATE", advance=False) or self._match_text_seq("FOR", "SHARE", advance=False):
            self._refuse("SQE has no row locks", hint="leave FOR UPDATE out")

    def _bound_of_rows(self) -> tuple[str | None, exp.Expression | None]:
        if self._match(TokenType.LIMIT):
            return "limit", self._limit()
        if self._match(TokenType.FETCH):
            return "limit", self._fetch()
        if not self._match(TokenType.OFFSET):
            return None, None
        offset = exp.Offset(expression=self._need(self._parse_term, "a number"))
        if not self._match_text_seq("ROW"):
            self._match_text_seq("ROWS")
        return "offset", offset

    def _limit(self) -> exp.Limit | None:
        if self._match_text_seq("ALL") or self._match(TokenType.NULL):
            return None
        limit = exp.Limit(expression=self._need(self._parse_term, "a number"))
        if self._curr.token_type == TokenType.COMMA:
            self._fail(hint="write LIMIT n OFFSET m")
        if self._match_text_seq("WITH", "TIES"):
            limit.set("limit_options", exp.LimitOptions(with_ties=True))
        return limit

    def _fetch(self) -> exp.Limit:
        if not (self._match_text_seq("FIRST") or self._match_text_seq("NEXT")):
            self._fail("FIRST or NEXT")
        rows = self._curr.text in ("row", "rows")
        count = exp.Literal.number(1) if rows else self._need(self._parse_unary, "a number")
        if not (self._match_text_seq("ROW") or self._match_text_seq("ROWS")):
            self._fail("ROWS")
        limit = exp.Limit(expression=count)
        if self._match_text_seq("WITH", "TIES"):
            limit.set("limit_options", exp.LimitOptions(with_ties=True))
        else:
            self._require_words("ONLY")
        return limit
