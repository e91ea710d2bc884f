"""The calls of the SQL standard's JSON functions, which have a grammar of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from sqe_core.sql.grammar.expressions import ExpressionGrammar
from sqe_core.sql.grammar.nodes import Call


class JsonGrammar(ExpressionGrammar):
    """Reads what stands between the brackets of JSON_VALUE, JSON_QUERY, JSON_EXISTS, JSON_OBJECT and JSON_ARRAY."""

    def _json_path_call(self, name: str) -> exp.Expression:
        value = self._expression()
        self._format_json()
        self._require(TokenType.COMMA, '","')
        path = self._expression("a JSON path")
        if self._is_word("passing"):
            self._refuse("PASSING in a JSON function is not supported")
        options: dict[str, Any] = {}
        if self._match_text_seq("RETURNING"):
            options["returning"] = self._type()
            self._format_json()
        self._json_wrapper(options)
        while self._curr.token_type != TokenType.R_PAREN:
            self._json_condition(options)
        return Call(this=name, expressions=[value, path], options=options or None)

    def _format_json(self) -> bool:
        found = self._match_text_seq("FORMAT")
        if found:
            self._require_words("JSON")
        return bool(found)

    def _json_wrapper(self, options: dict[str, Any]) -> None:
        if self._match_text_seq("WITHOUT"):
            self._match_text_seq("ARRAY")
            self._require_words("WRAPPER")
        elif self._match(TokenType.WITH):
            conditional = self._match_text_seq("CONDITIONAL")
            if not conditional:
                self._match_text_seq("UNCONDITIONAL")
            self._match_text_seq("ARRAY")
            self._require_words("WRAPPER")
            options["wrapper"] = "conditional" if conditional else "unconditional"
        if self._is_word("keep", "omit"):
            options["quotes"] = self._curr.text
            self._advance()
            self._require_words("QUOTES")
            if self._match(TokenType.ON):
                self._require_words("SCALAR", "STRING")

    def _json_condition(self, options: dict[str, Any]) -> None:
        if self._match_text_seq("DEFAULT"):
            handling: Any = self._operand()
        elif self._match(TokenType.NULL):
            handling = "null"
        elif self._match_text_seq("ERROR"):
            handling = "error"
        elif self._match_text_seq("EMPTY"):
            handling = "empty object" if self._match_text_seq("OBJECT") else "empty array"
            if handling == "empty array":
                self._match_text_seq("ARRAY")
        elif self._match(TokenType.TRUE):
            handling = "true"
        elif self._match(TokenType.FALSE):
            handling = "false"
        elif self._match_text_seq("UNKNOWN"):
            handling = "unknown"
        else:
            self._fail()
        self._require(TokenType.ON, "ON")
        for word in ("EMPTY", "ERROR"):
            if self._match_text_seq(word):
                options[f"on_{word.lower()}"] = handling
                return
        self._fail("EMPTY or ERROR")

    def _json_object_call(self) -> exp.Expression:
        members: list[Any] = []
        options: dict[str, Any] = {}
        while self._curr.token_type not in (TokenType.R_PAREN, TokenType.NULL) and self._curr.text not in (
            "absent",
            "returning",
        ):
            if self._match_text_seq("KEY"):
                key = self._operand()
                self._require_words("VALUE")
            else:
                key = self._operand()
                if not self._match(TokenType.COLON):
                    self._require_words("VALUE")
            members += [key, self._expression()]
            if self._format_json():
                options.setdefault("json", []).append(len(members) - 1)
            if not self._match(TokenType.COMMA):
                break
        self._json_members(options)
        return Call(this="json_object", expressions=members, options=options or None)

    def _json_array_call(self) -> exp.Expression:
        members: list[Any] = []
        options: dict[str, Any] = {}
        while self._curr.token_type != TokenType.R_PAREN and self._curr.text not in ("absent", "returning"):
            if self._curr.token_type == TokenType.NULL and self._next.token_type == TokenType.ON:
                break
            members.append(self._expression())
            if self._format_json():
                options.setdefault("json", []).append(len(members) - 1)
            if not self._match(TokenType.COMMA):
                break
        self._json_members(options)
        return Call(this="json_array", expressions=members, options=options or None)

    def _json_members(self, options: dict[str, Any]) -> None:
        absent = self._match_text_seq("ABSENT")
        if absent or self._match(TokenType.NULL):
            self._require(TokenType.ON, "ON")
            self._require(TokenType.NULL, "NULL")
            options["nulls"] = "absent" if absent else "null"
        for word in ("WITH", "WITHOUT"):
            if self._match_text_seq(word, "UNIQUE"):
                self._match_text_seq("KEYS")
                if word == "WITH":
                    self._refuse("WITH UNIQUE KEYS is not supported", token=self._prev)
        if self._match_text_seq("RETURNING"):
            if self._type().name != "varchar":
                self._refuse("Only RETURNING VARCHAR is supported", token=self._prev)
            self._format_json()


JSON_CALLS: dict[str, Callable[[Any], exp.Expression]] = {
    "json_value": lambda grammar: grammar._json_path_call("json_value"),
    "json_query": lambda grammar: grammar._json_path_call("json_query"),
    "json_exists": lambda grammar: grammar._json_path_call("json_exists"),
    "json_object": lambda grammar: grammar._json_object_call(),
    "json_array": lambda grammar: grammar._json_array_call(),
}
