"""What stands in FROM: names, subqueries, joins, UNNEST, table functions, time travel, samples, PIVOT."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from sqe_core.sql.grammar.calls import CallGrammar
from sqe_core.sql.grammar.nodes import Call, FileName, TimeTravel
from sqe_core.sql.grammar.strict_parser import NAME_TOKENS


class TableGrammar(CallGrammar):
    @abstractmethod
    def _row(self) -> exp.Expression:
        """Read one row of VALUES."""

    @abstractmethod
    def _projection(self) -> exp.Expression:
        """Read a column or an expression with its name."""

    @abstractmethod
    def _at_windows(self) -> bool:
        """Whether a WINDOW clause begins here."""

    def _from(self, holder: exp.Expression) -> None:
        tables = self._items(self._joined_table)
        holder.set("from_", exp.From(this=tables[0]))
        for table in tables[1:]:
            joins = table.args.get("joins") or []
            # t, u LEFT JOIN v is t CROSS JOIN u LEFT JOIN v, and so v may use t when it is LATERAL.
            flat = all(join.args.get("side") in (None, "LEFT") and not _merges_columns(join) for join in joins)
            if flat:
                table.set("joins", None)
            holder.append("joins", exp.Join(this=table, kind="CROSS"))
            for join in joins if flat else ():
                holder.append("joins", join)

    def _joined_table(self) -> exp.Expression:
        left = self._table_factor()
        while True:
            join = self._join()
            if join is None:
                return left
            left.append("joins", join)

    def _join(self) -> exp.Join | None:
        if self._is_word("asof", "positional") and self._next.token_type in (TokenType.JOIN, TokenType.LEFT):
            self._refuse(
                f"{self._curr.text.upper()} JOIN is not supported",
                hint="join with <= and keep one row of each: QUALIFY row_number() OVER (PARTITION BY …) = 1",
            )
        natural = self._match(TokenType.NATURAL)
        if self._match(TokenType.CROSS):
            self._require(TokenType.JOIN, "JOIN")
            return exp.Join(this=self._table_factor(), kind="CROSS")
        side, kind = self._join_kind()
        if not self._match(TokenType.JOIN):
            if natural or side or kind:
                self._fail("JOIN")
            return None
        join = exp.Join(this=self._table_factor(), side=side, kind=kind)
        if natural:
            join.set("method", "NATURAL")
            return join
        self._join_condition(join)
        return join

    def _join_kind(self) -> tuple[str | None, str | None]:
        side = None
        for token_type in (TokenType.LEFT, TokenType.RIGHT, TokenType.FULL):
            if self._match(token_type):
                side = token_type.name
        kind = None
        if side and self._match(TokenType.OUTER):
            return side, None
        if self._is_word("semi", "anti") and self._next.token_type == TokenType.JOIN and side in (None, "LEFT"):
            kind = self._curr.text.upper()
            self._advance()
            return "LEFT", kind
        if not side and self._match(TokenType.INNER):
            kind = "INNER"
        return side, kind

    def _join_condition(self, join: exp.Join) -> None:
        # a JOIN b JOIN c ON … ON …: the inner join comes first.
        while self._curr.token_type in self._JOIN_STARTS:
            inner = self._join()
            if inner is None:
                break
            join.this.append("joins", inner)
        if self._match(TokenType.ON):
            join.set("on", self._expression())
        elif self._match(TokenType.USING):
            join.set("using", self._columns())
        else:
            self._fail("ON or USING", hint="a join without a condition is written CROSS JOIN")

    _JOIN_STARTS: ClassVar[frozenset[TokenType]] = frozenset(
        TokenType[name] for name in ("JOIN", "INNER", "LEFT", "RIGHT", "FULL", "CROSS", "NATURAL")
    )

    def _table_factor(self) -> exp.Expression:
        table = self._relation()
        while self._is_word("pivot", "unpivot") and self._next.token_type == TokenType.L_PAREN:
            table.append("pivots", self._pivot())
        if self._match_text_seq("TABLESAMPLE"):
            table.set("sample", self._sample())
        if self._match_text_seq("MATCH_RECOGNIZE"):
            self._refuse("MATCH_RECOGNIZE is not supported", token=self._prev)
        return table

    def _relation(self) -> exp.Expression:
        if self._match(TokenType.LATERAL):
            return self._lateral()
        if self._curr.token_type == TokenType.UNNEST and self._next.token_type == TokenType.L_PAREN:
            return self._unnest()
        if self._curr.token_type == TokenType.TABLE and self._next.token_type == TokenType.L_PAREN:
            self._advance(2)
            table = self._table_function()
            self._close()
            return self._aliased(table)
        if self._curr.token_type == TokenType.L_PAREN:
            return self._bracketed_table()
        if self._curr.token_type == TokenType.VALUES:
            self._advance()
            return self._aliased(exp.Subquery(this=exp.Values(expressions=self._items(self._row))))
        if self._curr.token_type == TokenType.STRING:
            token = self._curr
            self._advance()
            file = FileName(this=token.text)
            file.update_positions(token)
            return self._aliased(exp.Table(this=file))
        if self._at_function():
            return self._aliased(self._table_function())
        return self._aliased(self._table_name())

    def _table_function(self) -> exp.Expression:
        if self._is_word("json_table"):
            self._refuse("JSON_TABLE is not supported", hint="use UNNEST over CAST(json_parse(…) AS array(row(…)))")
        name = self._identifier("the name of a table function")
        parts = [name]
        while self._match(TokenType.DOT):
            parts.append(self._identifier())
        self._open()
        arguments: list[Any] = []
        if self._curr.token_type != TokenType.R_PAREN:
            arguments = self._items(self._table_argument)
        self._close()
        call = Call(this=".".join(part.this for part in parts), expressions=arguments)
        call.meta.update(name.meta)
        return exp.Table(this=call)

    def _table_argument(self) -> Any:
        if self._match(TokenType.TABLE):
            self._open()
            table = self._table_name()
            self._close()
            return table
        return self._argument()

    def _bracketed_table(self) -> exp.Expression:
        if self._holds_query():
            return self._aliased(self._subquery())
        self._open()
        tables = self._joined_table()
        self._close()
        if tables.args.get("joins") or tables.args.get("alias"):
            tables = exp.Paren(this=tables)
        return tables

    def _lateral(self) -> exp.Expression:
        if self._curr.token_type == TokenType.UNNEST:
            return self._unnest()
        if self._curr.token_type == TokenType.L_PAREN:
            return self._aliased(exp.Lateral(this=self._subquery()))
        if self._is_word("view"):
            self._refuse("LATERAL VIEW is not supported", hint="write CROSS JOIN UNNEST(…) AS t(x)")
        self._fail("a subquery or UNNEST")

    def _unnest(self) -> exp.Expression:
        token = self._curr
        self._advance(2)
        values = self._items(self._expression)
        self._close()
        ordinality = bool(self._match_text_seq("WITH", "ORDINALITY"))
        unnest = exp.Unnest(expressions=values, offset=ordinality or None)
        unnest.update_positions(token)
        return self._aliased(unnest)

    def _table_name(self) -> exp.Expression:
        first = self._curr
        parts = [self._identifier("the name of a table")]
        while self._match(TokenType.DOT):
            parts.append(self._identifier("the name of a table"))
        if len(parts) > 3:
            self._misuse(
                "A name has at most 3 parts",
                hint='a nested schema is one quoted part, as in catalog."a.b".t',
                token=first,
            )
        padded = [None] * (3 - len(parts)) + list(parts)
        table = exp.Table(this=padded[2], db=padded[1], catalog=padded[0])
        travel = self._time_travel()
        if travel is not None:
            table.set("version", travel)
        return table

    def _time_travel(self) -> exp.Expression | None:
        token = self._curr
        if self._match_text_seq("FOR", "INCREMENTAL"):
            self._refuse("Change ranges are not supported yet", token=token)
        kinds = {
            "VERSION": "version",
            "SYSTEM_VERSION": "version",
            "TIMESTAMP": "timestamp",
            "SYSTEM_TIME": "timestamp",
        }
        for word, kind in kinds.items():
            if self._match_text_seq("FOR", word) or self._match_text_seq(word, "AS", "OF", advance=False):
                self._match_text_seq(word)
                self._require_words("AS", "OF")
                travel = TimeTravel(this=self._need(self._parse_term, "a literal"), kind=kind)
                travel.update_positions(token)
                return travel
        return None

    def _aliased(self, table: exp.Expression) -> exp.Expression:
        explicit = self._match(TokenType.ALIAS)
        follows = self._curr.token_type in NAME_TOKENS
        if explicit or (follows and not self._at_clause()):
            alias = exp.TableAlias(this=self._identifier("an alias"))
            if self._curr.token_type == TokenType.L_PAREN:
                alias.set("columns", self._columns())
            table.set("alias", alias)
        return table

    def _at_clause(self) -> bool:
        """Whether the unreserved word that comes next begins a clause, and is no alias."""
        if self._curr.token_type != TokenType.VAR:
            return False
        text, following = self._curr.text, self._next
        if text == "window":
            return self._at_windows()
        if text in ("pivot", "unpivot", "tablesample", "match_recognize"):
            return following.token_type in (TokenType.L_PAREN, TokenType.VAR)
        if text in ("asof", "positional") and following.token_type == TokenType.LEFT:
            after = self._ahead(2)
            return after is not None and after.token_type == TokenType.JOIN
        return text in ("semi", "anti", "asof", "positional") and following.token_type == TokenType.JOIN

    def _sample(self) -> exp.TableSample:
        method = self._curr.text.upper()
        if method not in ("BERNOULLI", "SYSTEM"):
            self._fail("BERNOULLI or SYSTEM")
        self._advance()
        self._open()
        percent = self._sample_number("a percentage")
        seed = None
        if self._is_word("repeatable") and self._next.token_type == TokenType.L_PAREN:
            self._advance(2)
            seed = self._sample_number("a number")
        return exp.TableSample(method=method, percent=percent, seed=seed)

    def _sample_number(self, what: str) -> exp.Expression:
        """The engine takes no parameter and no expression there."""
        at = self._curr
        number = self._need(self._parse_term, what)
        if not (isinstance(number, exp.Literal) and number.is_number):
            self._refuse("TABLESAMPLE takes numbers only", hint="write the number itself", token=at)
        self._close()
        return number

    def _pivot(self) -> exp.Pivot:
        unpivot = self._curr.text == "unpivot"
        self._advance(2)
        if unpivot:
            pivot = self._unpivot_body()
        else:
            aggregates = self._items(self._projection)
            self._require(TokenType.FOR, "FOR")
            columns = self._pivot_columns()
            self._require(TokenType.IN, "IN")
            pivot = exp.Pivot(expressions=aggregates, fields=[exp.In(this=columns, expressions=self._pivot_list())])
        self._close()
        follows = self._curr.token_type in NAME_TOKENS and not self._at_clause()
        if self._match(TokenType.ALIAS) or follows:
            pivot.set("alias", exp.TableAlias(this=self._identifier("an alias")))
        return pivot

    def _unpivot_body(self) -> exp.Pivot:
        value = self._identifier("the name of the value column")
        self._require(TokenType.FOR, "FOR")
        name = self._identifier("the name of the name column")
        self._require(TokenType.IN, "IN")
        field = exp.In(this=name, expressions=self._pivot_list())
        return exp.Pivot(unpivot=True, expressions=[value], fields=[field])

    def _pivot_columns(self) -> exp.Expression:
        if self._curr.token_type == TokenType.L_PAREN:
            columns: list[exp.Expression] = [exp.Column(this=column) for column in self._columns()]
            return exp.Tuple(expressions=columns)
        return exp.Column(this=self._identifier("the name of a column"))

    def _pivot_list(self) -> list[exp.Expression]:
        self._open()
        values = self._items(self._projection)
        self._close()
        return values


def _merges_columns(join: exp.Expression) -> bool:
    return bool(join.args.get("method") or join.args.get("using"))
