"""INSERT, UPDATE, DELETE and MERGE."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from sqe_core.sql.grammar.nodes import DefaultMark, MergeBranch
from sqe_core.sql.grammar.queries import QueryGrammar
from sqe_core.sql.grammar.strict_parser import EXPRESSION_END, NAME_TOKENS


class SqeGrammar(QueryGrammar):
    """The whole grammar of what is translated."""

    def read_insert(self) -> exp.Expression:
        """Read [WITH ...] INSERT INTO t ... or INSERT OVERWRITE t ..."""
        with_ = self._with()
        self._require(TokenType.INSERT, "INSERT")
        overwrite = bool(self._match_text_seq("OVERWRITE"))
        if overwrite and self._is_word("directory", "local"):
            self._refuse("INSERT OVERWRITE DIRECTORY is not supported")
        if self._match(TokenType.OR):
            self._refuse("INSERT OR … is not supported", hint="use MERGE", token=self._prev)
        into = self._match(TokenType.INTO)
        if not into and not overwrite:
            self._fail("INTO")
        self._match(TokenType.TABLE)
        insert = exp.Insert(this=self._target(), overwrite=overwrite or None)
        if self._match_text_seq("PARTITION"):
            insert.set("partition", self._partition())
        if self._match_text_seq("BY", "NAME"):
            insert.set("by_name", True)
        elif self._curr.token_type == TokenType.L_PAREN and not self._holds_query():
            insert.set("columns", self._columns())
        if self._match_text_seq("DEFAULT", "VALUES"):
            self._refuse("INSERT … DEFAULT VALUES is not supported", hint="write VALUES (DEFAULT, …)")
        if not self._at_query():
            self._fail("VALUES or SELECT")
        insert.set("expression", self._under(with_, self.read_query()))
        self._no_conflict_clauses()
        return insert

    def read_update(self) -> exp.Expression:
        """Read [WITH ...] UPDATE t SET ... [FROM ...] [WHERE ...]."""
        with_ = self._with()
        self._require_words("UPDATE")
        update = exp.Update(this=self._aliased_target("set"), with_=with_)
        self._require_words("SET")
        update.set("expressions", self._items(self._assignment))
        if self._match(TokenType.FROM):
            self._from(update)
        self._where(update)
        self._no_conflict_clauses()
        return update

    def read_delete(self) -> exp.Expression:
        """Read [WITH ...] DELETE FROM t [USING ...] [WHERE ...]."""
        with_ = self._with()
        self._require(TokenType.DELETE, "DELETE")
        self._require(TokenType.FROM, "FROM")
        delete = exp.Delete(this=self._aliased_target(), with_=with_)
        if self._match(TokenType.USING):
            delete.set("using", self._items(self._joined_table))
        self._where(delete)
        self._no_conflict_clauses()
        return delete

    def read_merge(self) -> exp.Expression:
        """Read [WITH ...] MERGE INTO t USING s ON ... WHEN ..."""
        with_ = self._with()
        self._require_words("MERGE")
        self._require(TokenType.INTO, "INTO")
        target = self._aliased_target()
        self._require(TokenType.USING, "USING")
        source = self._table_factor()
        self._require(TokenType.ON, "ON")
        condition = self._expression()
        self._require(TokenType.WHEN, "WHEN")
        branches = [self._branch()]
        while self._match(TokenType.WHEN):
            branches.append(self._branch())
        return exp.Merge(with_=with_, this=target, using=source, on=condition, whens=branches)

    def _branch(self) -> MergeBranch:
        matched = not self._match(TokenType.NOT)
        self._require_words("MATCHED")
        by_source = False
        if not matched and self._match_text_seq("BY"):
            by_source = bool(self._match_text_seq("SOURCE"))
            if not by_source:
                self._require_words("TARGET")
        condition = self._expression() if self._match(TokenType.AND) else None
        self._require(TokenType.THEN, "THEN")
        branch = MergeBranch(matched=matched, by_source=by_source, condition=condition)
        if not matched and not by_source:
            self._insert_branch(branch)
        elif self._match(TokenType.DELETE):
            branch.set("action", "delete")
        elif self._match_text_seq("UPDATE"):
            self._update_branch(branch)
        else:
            self._fail("UPDATE or DELETE")
        if self._curr.token_type in (TokenType.WHERE, TokenType.DELETE):
            self._refuse(
                "WHERE and DELETE WHERE in a branch of MERGE are not supported", hint="write WHEN … AND condition"
            )
        return branch

    def _update_branch(self, branch: MergeBranch) -> None:
        branch.set("action", "update")
        self._require_words("SET")
        if self._match(TokenType.STAR):
            branch.set("all", True)
        else:
            branch.set("assignments", self._items(self._assignment))

    def _insert_branch(self, branch: MergeBranch) -> None:
        self._require(TokenType.INSERT, "INSERT")
        branch.set("action", "insert")
        if self._match(TokenType.STAR):
            branch.set("all", True)
            return
        if self._curr.token_type == TokenType.L_PAREN:
            branch.set("columns", self._columns())
        self._require(TokenType.VALUES, "VALUES")
        self._open()
        branch.set("values", self._items(self._value))
        self._close()

    def _target(self) -> exp.Expression:
        table = self._table_name()
        if table.args.get("version"):
            self._refuse("An older version of a table cannot be changed", token=self._prev)
        return table

    def _aliased_target(self, *stop: str) -> exp.Expression:
        table = self._target()
        explicit = self._match(TokenType.ALIAS)
        if explicit or (self._curr.token_type in NAME_TOKENS and not self._is_word(*stop)):
            table.set("alias", exp.TableAlias(this=self._identifier("an alias")))
        return table

    def _assignment(self) -> exp.Expression:
        if self._curr.token_type == TokenType.L_PAREN:
            self._refuse("SET (a, b) = (…) is not supported", hint="write SET a = …, b = …")
        column = self._column_name()
        self._require(TokenType.EQ, '"="')
        ends = (*EXPRESSION_END, TokenType.WHERE, TokenType.FROM, TokenType.WHEN)
        if self._is_word("default") and self._next.token_type in ends:
            self._advance()
            return exp.EQ(this=column, expression=DefaultMark())
        return exp.EQ(this=column, expression=self._expression())

    def _partition(self) -> list[exp.Expression]:
        self._open()
        parts = self._items(self._partition_value)
        self._close()
        return parts

    def _partition_value(self) -> exp.Expression:
        column = exp.Column(this=self._identifier("the name of a column"))
        if self._match(TokenType.EQ):
            return exp.EQ(this=column, expression=self._expression())
        return column

    def _no_conflict_clauses(self) -> None:
        if self._curr.token_type == TokenType.ON or self._is_word("returning"):
            what = "ON CONFLICT" if self._curr.token_type == TokenType.ON else "RETURNING"
            self._refuse(f"{what} is not supported", hint="use MERGE" if what == "ON CONFLICT" else None)
        if self._curr.token_type in (TokenType.ORDER_BY, TokenType.LIMIT):
            self._refuse("ORDER BY and LIMIT are not supported here", hint="choose the rows with WHERE")
