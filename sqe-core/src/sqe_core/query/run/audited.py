"""What statements, logins and sessions write into the audit log (docs/audit.md)."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sqe_core.observe.audit import AuditLog
from sqe_core.policy.trail import StoredChange, Trail
from sqe_core.query.statements.traits import StatementTraits
from sqe_core.session.fingerprint import session_hash
from sqe_core.session.session import Session
from sqe_core.session.store import SessionObserver
from sqe_core.spi.auth import (
    AwsCredential,
    BasicCredential,
    BearerCredential,
    CertificateCredential,
    ClientInfo,
    Credential,
)
from sqe_core.spi.errors import ErrorCode, ResourcesError, SqeError, UserError
from sqe_core.spi.events import ObjectDecision, QueryEvent, QueryPhase
from sqe_core.spi.identity import Identity
from sqe_core.spi.names import NamespaceName, ObjectName

# What a user is told of something that is denied.
_HIDES_DENIALS = frozenset(
    {
        ErrorCode.TABLE_NOT_FOUND,
        ErrorCode.VIEW_NOT_FOUND,
        ErrorCode.SCHEMA_NOT_FOUND,
        ErrorCode.CATALOG_NOT_FOUND,
        ErrorCode.SEMANTIC_ERROR,
    }
)
_MOST_FAILURES_A_SECOND = 50
_LONGEST_REASON = 2000
_BODIES = frozenset({"filter", "mask", "masks"})


def is_denied(traits: StatementTraits, trail: Trail, error: SqeError | None) -> bool:
    """Whether a statement came to nothing because of a policy, whatever its user was told."""
    if error is None:
        return bool(trail.refused) and traits.may_do_nothing
    if error.code is ErrorCode.ACCESS_DENIED:
        return True
    return bool(trail.refused) and isinstance(error, UserError) and error.code in _HIDES_DENIALS


@dataclass(frozen=True, slots=True)
class StatementAudit:
    """Writes the events of statements."""

    log: AuditLog

    def check(self) -> None:
        """Raise when no statement may begin because it could not be recorded."""
        self.log.ensure_writable()

    def begins_change(self, event: QueryEvent) -> None:
        """Rights are about to be changed. Where nothing may be done unrecorded, this is recorded first."""
        if self.log.refuses:
            self.log.write({**_who(event), "kind": "grant", "status": "begun", "query": _query(event)}, must=True)

    def decided(self, event: QueryEvent, trail: Trail, *, must: bool) -> None:
        resources = [_decision(each) for each in trail.about_self]
        seen = {each.name for each in trail.about_self if not each.allowed}
        resources += [
            {**_resource(name), "effect": "deny", "reason": "hidden from this user"}
            for name in sorted(trail.refused - seen, key=str)
        ]
        for username, decisions in sorted(trail.about_others.items()):
            resources += [{**_decision(each), "for_user": username} for each in decisions]
        written = {
            **_who(event),
            "kind": "policy_decision",
            "status": "failure" if event.denied else "success",
            "decision_id": trail.decision_id,
            "engine_decision_ids": trail.engine_ids,
            "resources": resources,
            "policy": _policy(event, trail),
        }
        if trail.truncated:
            written["more_decisions"] = trail.truncated
        self.log.write(written, must=must)

    def ended(self, event: QueryEvent, trail: Trail, traits: StatementTraits, *, described: bool) -> None:
        failed = event.denied or event.phase is not QueryPhase.FINISHED
        written = {
            **_who(event),
            "kind": traits.audited.value,
            "status": "failure" if failed else "success",
            "decision_id": trail.decision_id,
            "resources": [_object(each) for each in {each.name: each for each in event.objects}.values()],
            "policy": _policy(event, trail),
            "query": {**_query(event), **({"described_only": True} if described else {})},
            "timing": {
                "duration_ms": _rounded(event.timings.total_ms),
                "queued_ms": _rounded(event.timings.queued_ms),
                "planning_ms": _rounded(event.timings.planning_ms),
                "execution_ms": _rounded(event.timings.execution_ms),
            },
            "stats": asdict(event.counts),
        }
        if failed:
            written["error"] = _error(event)
        if trail.changes:
            written["changes"] = [_change(each) for each in trail.changes]
        self.log.write(written)


class SessionAudit(SessionObserver):
    """Writes the events of logins and sessions."""

    def __init__(self, log: AuditLog) -> None:
        self.log = log
        self._lock = threading.Lock()
        self._second = 0
        self._failures = 0
        self._left_out = 0

    def logged_in(self, identity: Identity, client: ClientInfo) -> None:
        self.log.write(
            {
                "kind": "auth",
                "actor": _actor(identity),
                "status": "success",
                **_client(client),
                "provider": identity.provider,
            },
            must=True,
        )

    def refused(self, credential: Credential, client: ClientInfo, error: SqeError) -> None:
        """A login failed. Who was refused for trying too often is in the metrics: nobody fills the log that way."""
        if isinstance(error, ResourcesError) or error.code is ErrorCode.SESSION_EXPIRED:
            return
        left_out = self._admit_failure()
        if left_out is None:
            return
        self.log.write(
            {
                "kind": "auth",
                "actor": {"username": _claimed(credential)},
                "status": "failure",
                **_client(client),
                "credential": _kind_of(credential),
                "error": _told(error),
                **({"left_out": left_out} if left_out else {}),
            }
        )

    def opened(self, session: Session, client: ClientInfo) -> None:
        self._session(session, "opened", must=True, **_client(client))

    def renewed(self, session: Session) -> None:
        self._session(session, "renewed", must=False, protocol=session.protocol, client_ip=session.client_address)

    def not_renewed(self, session: Session, error: SqeError) -> None:
        self._session(
            session, "not_renewed", must=False, status="failure", protocol=session.protocol, error=_told(error)
        )

    def ended(self, session: Session) -> None:
        self._session(session, "ended", must=False, protocol=session.protocol, client_ip=session.client_address)

    def _admit_failure(self) -> int | None:
        """Return how many failures were left out before this one, None when it is to be left out too."""
        with self._lock:
            second = int(time.monotonic())
            if second != self._second:
                self._second, self._failures = second, 0
            if self._failures >= _MOST_FAILURES_A_SECOND:
                self._left_out += 1
                return None
            self._failures += 1
            left_out, self._left_out = self._left_out, 0
            return left_out

    def _session(self, session: Session, activity: str, *, must: bool, **more: Any) -> None:
        self.log.write(
            {
                "kind": "session",
                "activity": activity,
                "actor": _actor(session.identity),
                "status": "success",
                "session_id": session_hash(session),
                **more,
            },
            must=must,
        )


def _who(event: QueryEvent) -> dict[str, Any]:
    return {
        "actor": _actor(event.principal),
        "session_id": event.session_hash,
        "protocol": event.protocol,
        "client_ip": event.client_address,
        "trace_id": event.trace_id,
        "query_id": event.query_id,
    }


def _actor(identity: Identity) -> dict[str, Any]:
    return {
        "username": identity.username,
        "subject": identity.subject,
        "issuer": identity.issuer,
        "email": identity.email,
        "roles": sorted(identity.roles),
        "groups": sorted(identity.groups),
        **({"acted_by": identity.actor} if identity.actor else {}),
    }


def _client(client: ClientInfo) -> dict[str, Any]:
    return {"protocol": client.protocol, "client_ip": client.address, "user_agent": client.user_agent}


def _claimed(credential: Credential) -> str | None:
    """Who somebody said to be; a token or certificate that proved nothing says nothing either."""
    return credential.username if isinstance(credential, BasicCredential) else None


def _kind_of(credential: Credential) -> str:
    match credential:
        case BasicCredential():
            return "basic"
        case BearerCredential():
            return "bearer"
        case CertificateCredential():
            return "certificate"
        case AwsCredential():
            return "aws"
    return "none"


def _told(error: SqeError) -> dict[str, Any]:
    return {"error_type": error.kind.value, "error_code": error.code.name, "message": error.message}


def _query(event: QueryEvent) -> dict[str, Any]:
    return {"text": event.sql, "query_hash": event.sql_hash, "statement_type": event.statement_kind or "unknown"}


def _policy(event: QueryEvent, trail: Trail) -> dict[str, Any]:
    return {
        "row_filters_applied": event.row_filters_applied,
        "columns_masked": event.columns_masked,
        "columns_restricted": event.columns_restricted,
        "denied": event.denied,
        "policy_cache_hit": trail.cache_hit,
        "policy_eval_duration_ms": round(trail.milliseconds, 3),
    }


def _rounded(milliseconds: float | None) -> float | None:
    return None if milliseconds is None else round(milliseconds, 3)


def _error(event: QueryEvent) -> dict[str, Any]:
    """What happened; a denial is told as one, beside what its user read (ERR-5)."""
    read = event.error_code.name if event.error_code else None
    told: dict[str, Any] = {"error_code": read, "message": event.error_message}
    if not event.denied:
        return told
    return {"error_type": "USER_ERROR", **told, "error_code": ErrorCode.ACCESS_DENIED.name, "client_error_code": read}


def _resource(name: ObjectName | NamespaceName) -> dict[str, Any]:
    if isinstance(name, NamespaceName):
        kind = "schema" if name.namespace else "catalog"
        return {"catalog": name.catalog, "namespace": name.namespace, "name": None, "object_type": kind}
    return {"catalog": name.catalog, "namespace": name.namespace, "name": name.name, "object_type": "table"}


def _object(decision: ObjectDecision) -> dict[str, Any]:
    resource = _resource(decision.name)
    if resource["name"] is None:
        return resource
    known = {"uuid": decision.uuid, "snapshot_id": decision.snapshot_id, "columns": list(decision.columns)}
    return {**resource, "object_type": decision.type.value, **{key: value for key, value in known.items() if value}}


def _decision(decision: ObjectDecision) -> dict[str, Any]:
    return {
        **_object(decision),
        "action": decision.action.value,
        "effect": "allow" if decision.allowed else "deny",
        "row_filters": decision.row_filters,
        "masked_columns": decision.masked_columns,
        "hidden_columns": decision.hidden_columns,
        "reason": decision.reason[:_LONGEST_REASON],
        "policy_version": decision.policy_version,
    }


def _change(change: StoredChange) -> dict[str, Any]:
    return {
        "operation": change.operation,
        "before": {name: _without_bodies(record) for name, record in change.before.items()},
        "after": {name: _without_bodies(record) for name, record in change.after.items()},
    }


def _without_bodies(record: Any) -> Any:
    """Keep who, what and on what; of filters only that they are there, of masks their kind (OBS-2)."""
    if isinstance(record, Mapping):
        return {
            key: _body(key, value) if key in _BODIES and value else _without_bodies(value)
            for key, value in record.items()
        }
    if isinstance(record, Sequence) and not isinstance(record, str):
        return [_without_bodies(each) for each in record]
    return record


def _body(key: str, body: Any) -> Any:
    if key == "masks" and isinstance(body, Mapping):
        return {column: _body("mask", mask) for column, mask in body.items()}
    kind = body.get("type") if key == "mask" and isinstance(body, Mapping) else None
    return kind or "set"
