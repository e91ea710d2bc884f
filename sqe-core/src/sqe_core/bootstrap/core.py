"""An SQE around an engine: catalogs, policies and the service, wired together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from sqe_core.bootstrap.installed import installed_catalog
from sqe_core.catalog.attaching import Attachments, AttachRules
from sqe_core.catalog.discovery import FoundCatalogs
from sqe_core.catalog.registry import CatalogRegistry, Mount
from sqe_core.catalog.secret_store import Secrets
from sqe_core.engine.port import Engine
from sqe_core.observe.audit import AuditLog
from sqe_core.observe.history import QueryHistory
from sqe_core.observe.lineage import DatasetOf, Lineage
from sqe_core.policy.authorizer import Authorizer
from sqe_core.policy.cache import DecisionCache
from sqe_core.policy.masks import MaskWriter
from sqe_core.policy.outside import OutsideGrants
from sqe_core.policy.read_restrictions import CatalogRestrictions
from sqe_core.query.judge.inspect import PlanLimits
from sqe_core.query.parts import QueryParts
from sqe_core.query.run.admission import QueryLimits
from sqe_core.query.run.audited import StatementAudit
from sqe_core.query.run.record import Notify, Recorder
from sqe_core.query.service import QueryService
from sqe_core.session.directory import SessionDirectory
from sqe_core.session.engine_pool import EnginePool
from sqe_core.session.known_names import KnownNames
from sqe_core.session.session import Session
from sqe_core.spi.catalog import CatalogBackend
from sqe_core.spi.events import QueryEvent
from sqe_core.spi.factory import Metrics, NoMetrics
from sqe_core.spi.grants import GrantStore
from sqe_core.spi.identity import Identity
from sqe_core.spi.names import ObjectName
from sqe_core.spi.policy import PolicyEnforcer
from sqe_core.sql.reader import Reader
from sqe_core.sql.spark import functions

DEFAULT_SCHEMA = ("default",)

CatalogsOf = Callable[[], Mapping[str, CatalogBackend]]
"""Returns what serves each catalog at this moment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sqe:
    """A running SQE: what protocols and the command line stand on."""

    engine: Engine
    catalogs: CatalogRegistry
    service: QueryService
    history: QueryHistory
    enforcers: tuple[PolicyEnforcer, ...] = ()
    audit: AuditLog | None = None
    sessions: SessionDirectory = field(default_factory=SessionDirectory)
    pool: EnginePool = field(default_factory=EnginePool)
    engine_idle_secs: float = 60
    found: FoundCatalogs | None = None
    outside: GrantStore | None = None
    lineage: Lineage | None = None

    def open_session(
        self, identity: Identity, *, catalog: str, protocol: str, client_address: str | None = None
    ) -> Session:
        return Session(
            identity=identity,
            engine=self.engine,
            catalogs=self.catalogs,
            catalog=catalog,
            schema=DEFAULT_SCHEMA,
            protocol=protocol,
            client_address=client_address,
            is_busy=self.service.is_running,
            pool=self.pool,
            engine_idle_secs=self.engine_idle_secs,
            found=self.found,
        )

    def close(self) -> None:
        self.engine.stop()
        self.release()

    def release(self) -> None:
        """Free what catalogs, policy engines, sinks and the audit hold, when no statement runs any more."""
        if self.lineage is not None:
            self.lineage.stop()
        self.catalogs.close()
        if self.found is not None:
            self.found.close()
        for enforcer in self.enforcers:
            enforcer.close()
        if self.outside is not None:
            self.outside.close()
        if self.audit is not None:
            self.audit.close()


def build(
    *,
    engine: Engine,
    mounts: Sequence[Mount],
    enforcers: Sequence[PolicyEnforcer],
    limits: QueryLimits,
    notify: Notify | None = None,
    history: QueryHistory | None = None,
    metrics: Metrics | None = None,
    slow_secs: float = 0,
    full_text: bool = False,
    masks: MaskWriter | None = None,
    decisions: DecisionCache | None = None,
    admins: Callable[[Identity], bool] = lambda identity: False,
    audit: AuditLog | None = None,
    engine_idle_secs: float = 60,
    attach: AttachRules | None = None,
    kept_secrets: Secrets | None = None,
    discovers: bool = False,
    grant_store: Callable[[CatalogsOf], GrantStore] | None = None,
    lineage: Callable[[DatasetOf], Lineage] | None = None,
    closes_uncovered: bool = False,
    roles: Iterable[str] = (),
) -> Sqe:
    """Wire an SQE around an engine, which need not have started yet.

    Without `attach`, what is installed can be attached from everywhere: people at their own machine may. `grant_store`
    makes the store that keeps grants and roles in the place of the policy engines; it is told which catalogs there are.
    `lineage` makes what is fed with the events of statements, and is told how tables are called there.
    With `closes_uncovered`, what no grant covers in a catalog that cannot know who asks is for its maker and for
    administrators. `roles` are those that the configuration names.
    """
    catalogs = CatalogRegistry(mounts)
    history = history or QueryHistory()
    sessions = SessionDirectory()
    found = FoundCatalogs() if discovers else None

    def backends() -> Mapping[str, CatalogBackend]:
        mounted = {mount.name: mount.backend for mount in catalogs.mounts()}
        return {**(found.backends() if found else {}), **mounted}

    def closed(catalog: str) -> bool:
        if not closes_uncovered:
            return False
        # One that was detached meanwhile says nothing any more: a statement that still holds its mount is refused.
        backend = backends().get(catalog)
        return backend is None or backend.identity_mode == "shared"

    authorizer = Authorizer(
        enforcers,
        masks=masks,
        cache=decisions,
        catalogs=CatalogRestrictions(backends),
        admins=admins,
        closed=closed,
    )

    def rights_changed() -> None:
        authorizer.flush()
        for backend in backends().values():
            backend.flush()

    def dataset_of(name: ObjectName) -> tuple[str, str]:
        backend = backends().get(name.catalog)
        called = backend.dataset(name.namespace, name.name) if backend else None
        address = (backend.uri if backend else None) or f"sqe://{name.catalog}"
        return called or (address, ".".join((*name.namespace, name.name)))

    sinks = lineage(dataset_of) if lineage is not None else None
    if sinks is not None:
        notify = _both(notify, sinks.observe)
        sinks.start()
    outside = OutsideGrants(grant_store(backends), rights_changed) if grant_store is not None else None
    service = QueryService(
        QueryParts(
            engine=engine,
            reader=Reader(),
            catalogs=catalogs,
            attachments=Attachments(
                catalogs, attach or AttachRules(factory_of=installed_catalog), kept_secrets, changed=authorizer.flush
            ),
            authorizer=authorizer,
            recorder=Recorder(
                history,
                notify=notify,
                metrics=metrics or NoMetrics(),
                slow_secs=slow_secs,
                full_text=full_text,
                audit=StatementAudit(audit) if audit is not None else None,
            ),
            limits=limits,
            plan_limits=PlanLimits(),
            template_functions=functions.template_names(),
            functions=functions.documented,
            admins=admins,
            sessions=sessions,
            known=KnownNames(roles),
            outside=outside,
        )
    )
    return Sqe(
        engine=engine,
        catalogs=catalogs,
        service=service,
        history=history,
        enforcers=tuple(enforcers),
        audit=audit,
        sessions=sessions,
        engine_idle_secs=engine_idle_secs,
        found=found,
        outside=outside,
        lineage=sinks,
    )


def _both(first: Notify | None, second: Notify) -> Notify:
    def tell(event: QueryEvent) -> None:
        if first is not None:
            first(event)
        second(event)

    return tell
