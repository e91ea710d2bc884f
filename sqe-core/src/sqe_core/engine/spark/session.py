"""Isolated sessions of the Spark engine. Each method is one call into the bridge."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from sqe_core.engine.port import (
    AnalysedPlan,
    EngineCatalog,
    EngineExecutionError,
    EnginePlan,
    EngineSession,
    InlinedPlan,
    InlinedRows,
    InlinedSpool,
    JudgedExpression,
    JudgedRelation,
    PolicyExpression,
    PolicyFacts,
    RenamedTarget,
    Replacement,
    Restriction,
    ResultStream,
    SecuredTable,
)
from sqe_core.engine.spark.catalog import SparkEngineCatalog
from sqe_core.engine.spark.conf import CATALOG_DEFAULTS
from sqe_core.engine.spark.context import EngineContext
from sqe_core.engine.spark.execution import cancel, execute
from sqe_core.engine.spark.failures import PLANNING_TIMEOUT, engine_errors
from sqe_core.engine.spark.literals import encode_parameters, encode_rows
from sqe_core.engine.spark.plan import SparkAnalysedPlan, SparkPlan
from sqe_core.engine.spark.templates import install_templates
from sqe_core.spi.errors import EngineLostError, InternalError, QueryCancelledError
from sqe_core.spi.identity import Secret

if TYPE_CHECKING:
    from sqe_core.engine.spark.engine import SparkEngine

_EMPTY: Mapping[str, Any] = MappingProxyType({})
_AND = re.compile(r"\band\b", re.IGNORECASE)
_TOKENS = {"rest.auth.type": "sqe.bridge.catalog.rest.TokenAuth"}
# Iceberg hands what stands below the name of the provider to the provider.
_AWS_KEYS = {"client.credentials-provider": "sqe.bridge.catalog.rest.MountKeys"}
_KEY_HANDLE = "client.credentials-provider.sqe.token-handle"
_S3_FILES = "org.apache.iceberg.aws.s3.S3FileIO"


class SparkEngineSession(EngineSession):
    """A `SparkSession` of its own (`spark`), and what the bridge knows of it: `sqe.bridge.BridgeSession`."""

    def __init__(self, context: EngineContext, engine: SparkEngine) -> None:
        self.context = context
        self._engine = engine
        self._forgotten: list[int] = []
        self._usable = True
        self._catalogs: dict[str, SparkEngineCatalog] = {}
        self._token_handles: dict[str, str] = {}
        with engine_errors(context):
            self.spark = context.root.newSession()
            self.bridge: Any = context.bridge.BridgeSession.open(self.spark._jsparkSession)
            install_templates(self)

    @property
    def alive(self) -> bool:
        return self._usable and self._engine_lives

    @property
    def _engine_lives(self) -> bool:
        return self._engine.process_alive and self._engine.context is self.context

    def mount(self, alias: str, properties: Mapping[str, str], *, token: Secret | None = None) -> None:
        wanted = {**CATALOG_DEFAULTS, **properties}
        kind = wanted.pop("sqe.mount", None)
        if kind != "rest" and (wanted.get("type") == "rest" or wanted.get("catalog-impl", "").endswith("RESTCatalog")):
            raise InternalError('A REST catalog without `sqe.mount = "rest"` would share logins between users')
        if kind == "rest":
            wanted.pop("type", None)
            wanted["catalog-impl"] = "sqe.bridge.catalog.rest.RestMount"
            if wanted.get("io-impl") == _S3_FILES:
                wanted["s3.client-factory-impl"] = "sqe.bridge.catalog.rest.StoreClients"
        with engine_errors(self.context):
            if token is not None:
                handle = self._token_handles[alias] = secrets.token_hex(16)
                wanted |= _AWS_KEYS if kind == "aws" else _TOKENS
                wanted[_KEY_HANDLE if kind == "aws" else "sqe.token-handle"] = handle
                self._tokens.put(handle, token.reveal())
            self.bridge.mount(alias, json.dumps(wanted))

    def renew_token(self, alias: str, token: Secret) -> None:
        handle = self._token_handles.get(alias)
        if handle is None:
            raise InternalError("A catalog without a token was to get a new one")
        with engine_errors(self.context):
            self._tokens.renew(handle, token.reveal())

    def unmount(self, alias: str) -> None:
        self._catalogs.pop(alias, None)
        with engine_errors(self.context):
            self.bridge.unmount(alias)
            self._forget_token(alias)

    @property
    def _tokens(self) -> Any:
        return self.context.bridge.catalog.rest.MountTokens

    def _forget_token(self, alias: str) -> None:
        handle = self._token_handles.pop(alias, None)
        if handle is not None:
            self._tokens.forget(handle)

    def catalog(self, alias: str) -> EngineCatalog:
        catalog = self._catalogs.get(alias)
        if catalog is None:
            with engine_errors(self.context):
                catalog = SparkEngineCatalog(self.context, self.bridge.catalog(alias))
            self._catalogs[alias] = catalog
        return catalog

    def parse(self, sql: str, parameters: Mapping[str, Any] = _EMPTY) -> EnginePlan:
        forgotten, self._forgotten = self._forgotten, []
        values = encode_parameters(parameters)
        with engine_errors(self.context, sql):
            answer = self.bridge.parse(sql, values, json.dumps(forgotten))
        return SparkPlan(self, json.loads(answer), sql)

    def expression(self, sql: str, parameters: Mapping[str, Any], facts: PolicyFacts) -> EnginePlan:
        known = {"lists": facts.lists, "members": facts.members, "attributes": facts.attributes}
        with engine_errors(self.context):
            answer = self.bridge.expression(sql, encode_parameters(parameters), json.dumps(known, default=list))
        return SparkPlan(self, json.loads(answer), sql)

    def conjuncts(self, plan: EnginePlan) -> Sequence[EnginePlan]:
        own = self._own(plan)
        if not _AND.search(own.text):
            return [own]
        with engine_errors(self.context):
            answers = json.loads(self.bridge.conjuncts(own.handle))
        return [SparkPlan(self, answer, own.text) for answer in answers]

    def judge(
        self,
        relation: SecuredTable | InlinedPlan,
        marker: str,
        expressions: Sequence[tuple[EnginePlan, str | None]],
        *,
        tag: str,
    ) -> JudgedRelation:
        asked = [{"plan": self._own(plan).handle, "column": column} for plan, column in expressions]
        request = {**self._encode(relation), "marker": marker, "expressions": asked}
        with engine_errors(self.context):
            answer = json.loads(self.bridge.judge(json.dumps(request), tag))
        return JudgedRelation(
            columns=tuple((column["name"], column["type"]) for column in answer["columns"]),
            expressions=tuple(
                JudgedExpression(
                    **{**each, **{name: frozenset(each[name]) for name in ("classes", "risky", "columns")}}
                )
                for each in answer["expressions"]
            ),
        )

    def rewrite(self, plan: EnginePlan, replacements: Sequence[Replacement]) -> EnginePlan:
        own = self._own(plan)
        requests = json.dumps([self._encode(replacement) for replacement in replacements])
        with engine_errors(self.context, own.text):
            answer = self.bridge.rewrite(own.handle, requests)
        return SparkPlan(self, json.loads(answer), own.text)

    def analyse(
        self,
        plan: EnginePlan,
        *,
        tag: str,
        settings: Mapping[str, str] = _EMPTY,
        check: Restriction | None = None,
        rows: Restriction | None = None,
    ) -> AnalysedPlan:
        own = self._own(plan)
        limits = {"check": check, "rows": rows}
        target = {name: self._encode_restriction(limit) for name, limit in limits.items() if limit is not None}
        try:
            with engine_errors(self.context, own.text):
                answer = self.bridge.analyse(own.handle, tag, json.dumps(dict(settings)), json.dumps(target))
        except (QueryCancelledError, EngineExecutionError) as error:
            self._check_usable(error)
            raise
        return SparkAnalysedPlan(self, json.loads(answer), own.text, tag, settings)

    def _check_usable(self, error: QueryCancelledError | EngineExecutionError) -> None:
        """Stop using the session when a thread got lost in it: its state may change under the next statement."""
        if isinstance(error, QueryCancelledError) or error.failure.condition == PLANNING_TIMEOUT:
            with engine_errors(self.context):
                self._usable = not self.bridge.isAbandoned()

    def execute(self, plan: AnalysedPlan, *, tag: str, settings: Mapping[str, str] = _EMPTY) -> ResultStream:
        return execute(self, self._own(plan), tag=tag, settings=settings)

    def maintain(self, table: tuple[str, ...], action: str, options: Mapping[str, str], *, tag: str) -> None:
        alias, *namespace, name = table
        try:
            with engine_errors(self.context):
                self.bridge.maintain(alias, json.dumps(namespace), name, action, json.dumps(dict(options)), tag)
        except (QueryCancelledError, EngineExecutionError) as error:
            self._check_usable(error)
            raise

    def cancel(self, tag: str) -> None:
        with suppress(EngineLostError):  # who has gone needs no cancelling
            cancel(self, tag)

    @contextmanager
    def statement_scope(self) -> Iterator[None]:
        with engine_errors(self.context):
            self.bridge.enterScope()
        try:
            yield
        finally:
            if self.alive:
                with engine_errors(self.context):
                    self.bridge.exitScope()

    def check_settings(self) -> bool:
        with engine_errors(self.context):
            return bool(self.bridge.checkSettings())

    def close(self) -> None:
        if not self._engine_lives:
            return
        usable, self._usable = self._usable, False
        with engine_errors(self.context):
            # Whatever became of the session, nothing in it logs in any more.
            for alias in tuple(self._token_handles):
                self._forget_token(alias)
            if usable:
                self.bridge.close()

    def forget(self, handle: int) -> None:
        """Note that nobody holds the plan any more."""
        self._forgotten.append(handle)

    def _own(self, plan: EnginePlan) -> SparkPlan:
        if not isinstance(plan, SparkPlan) or plan.session is not self:
            raise InternalError("A plan belongs to another engine session")
        return plan

    def _encode(self, replacement: Replacement) -> Mapping[str, Any]:
        request: dict[str, Any] = {"index": replacement.index, "name": replacement.visible_name}
        if isinstance(replacement, SecuredTable | InlinedPlan) and replacement.restriction is not None:
            request["restriction"] = self._encode_restriction(replacement.restriction)
        match replacement:
            case SecuredTable():
                return request | {"kind": "sql", "sql": replacement.sql}
            case InlinedPlan():
                inlined = self._own(replacement.plan)
                return request | {"kind": "plan", "plan": inlined.handle, "columns": replacement.columns}
            case InlinedRows():
                return request | {"kind": "rows", "rows": encode_rows(replacement.rows)}
            case InlinedSpool():
                files = [str(file) for file in replacement.files]
                return request | {"kind": "spool", "token": replacement.token, "files": files}
            case RenamedTarget():
                return request | {"kind": "target", "parts": replacement.parts, "absent": replacement.absent}

    def _encode_restriction(self, restriction: Restriction) -> Mapping[str, Any]:
        def encode(expression: PolicyExpression) -> Mapping[str, Any]:
            encoded = {"plan": self._own(expression.plan).handle, "guarded": expression.guarded}
            return encoded | ({} if expression.cast is None else {"type": expression.cast})

        return {
            "marker": restriction.marker,
            "columns": restriction.columns,
            "output": [
                {"name": name} | ({} if mask is None else {"mask": encode(mask)}) for name, mask in restriction.output
            ],
            "filters": [encode(expression) for expression in restriction.filters],
        }
