"""Policy: one question for all tables of a statement, one answer for each of them.

An enforcer decides; it never sees SQL and never rewrites a plan. The core combines the answers of several enforcers
restrictively (POL-8), compiles their expressions and secures the plan.

    enforcer.decide(PolicyRequest)  -> PolicyResponse     exactly one Decision per access, in the same order
    enforcer.visible(VisibilityRequest) -> effects        exactly one Effect per name, in the same order

Any exception means "unknown": the statement is refused with an EXTERNAL error, never answered with zero rows (POL-2).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from enum import Enum
from types import MappingProxyType
from typing import Literal

from sqe_core.spi.catalog import Column
from sqe_core.spi.factory import ConfigT, PluginContext, PluginFactory
from sqe_core.spi.identity import Identity
from sqe_core.spi.names import NamespaceName, ObjectName
from sqe_core.spi.sql import SqlExpression

_NO_TAGS: Mapping[str, frozenset[str]] = MappingProxyType({})


class Action(Enum):
    """What a statement does with an object; the value is the word that policy engines are sent."""

    SELECT = "select"
    INSERT = "insert"
    UPDATE = "update"
    DELETE = "delete"
    MERGE = "merge"
    TRUNCATE = "truncate"
    CREATE = "create"
    DROP = "drop"
    ALTER = "alter"
    DESCRIBE = "describe"
    MAINTAIN = "maintain"
    CREATE_VIEW = "create_view"
    ALTER_VIEW = "alter_view"
    DROP_VIEW = "drop_view"
    CREATE_SCHEMA = "create_schema"
    ALTER_SCHEMA = "alter_schema"
    DROP_SCHEMA = "drop_schema"


class ResourceType(Enum):
    """What an access is about."""

    TABLE = "table"
    VIEW = "view"
    SCHEMA = "schema"


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """An object that a statement touches, as its catalog describes it at this moment.

    Args:
        name: the resolved name; aliases of catalogs are gone (POL-10).
        type: table, view or schema; `name` is a `NamespaceName` exactly for schemas.
        columns: the columns in table order; empty for schemas, and for what is still to be created.
        ref: the branch or tag that the statement names, else None.
        uuid: the catalog's own id of the table, so that a policy can survive a rename.
        schema_id: the version of the columns, for cache keys.
        column_tags: tags per column name, or None when they could not be read: an enforcer that needs them raises.

    Example:
        >>> Resource(name=ObjectName(catalog="lake", namespace=("hr",), name="people")).type.value
        'table'
    """

    name: ObjectName | NamespaceName
    type: ResourceType = ResourceType.TABLE
    columns: tuple[Column, ...] = ()
    ref: str | None = None
    uuid: str | None = None
    schema_id: int | None = None
    column_tags: Mapping[str, frozenset[str]] | None = field(default_factory=lambda: _NO_TAGS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """One action on one resource."""

    action: Action
    resource: Resource


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestContext:
    """The circumstances of a statement.

    Args:
        protocol: the kind of the protocol, for example `flight`, or `embedded`.
        now: the server's clock at the start of the statement, in UTC (POL-13).
        query_id: the id of the statement in history and audit.
        client_address: the address of the real client, None in one process.
        administrator: whether who asks has a role of `[auth] admin_roles`, in use.
        closed_catalogs: those of the question that cannot know who asks, on a server with logins. An engine that leaves
            what none of its policies covers to the catalog must not do so there: it is for whoever made it and for
            administrators. The core closes nothing by itself, and combines what engines say.
    """

    protocol: str
    now: datetime
    query_id: str
    client_address: str | None = None
    administrator: bool = False
    closed_catalogs: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyRequest:
    """Everything a statement wants to do, in one question (POL-3).

    Args:
        principal: who asks. The core takes the tokens out first.
        accesses: one entry per action and object, without duplicates.
        context: the circumstances.
        version: the form of this request.

    Example:
        >>> from datetime import UTC, datetime
        >>> alice = Identity(issuer="https://idp", subject="1", username="alice", provider="idp")
        >>> table = Resource(name=ObjectName(catalog="lake", namespace=("hr",), name="people"))
        >>> request = PolicyRequest(
        ...     principal=alice,
        ...     accesses=(Access(action=Action.SELECT, resource=table),),
        ...     context=RequestContext(protocol="flight", now=datetime.now(UTC), query_id="q1"),
        ... )
        >>> request.version
        1
    """

    principal: Identity
    accesses: tuple[Access, ...]
    context: RequestContext
    version: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class VisibilityRequest:
    """Which of these names may appear in a listing. Asked in batches; names come without columns.

    A `NamespaceName` without parts stands for its catalog.
    """

    principal: Identity
    names: tuple[ObjectName | NamespaceName, ...]
    context: RequestContext
    version: int = 1


class Effect(Enum):
    """DENY wins over every ALLOW; when all enforcers abstain the answer is deny."""

    ALLOW = "allow"
    DENY = "deny"
    ABSTAIN = "abstain"


@dataclass(frozen=True, slots=True, kw_only=True)
class NullMask:
    """The column reads as typed NULL."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConstantMask:
    """The column reads as this text; as typed NULL when it is no string column."""

    value: str = "***"


@dataclass(frozen=True, slots=True, kw_only=True)
class HashMask:
    """The column reads as HMAC-SHA-256 of its value, keyed by the server's `mask_key`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartialMask:
    """All characters but the first and last ones are replaced by their class; punctuation stays.

    Args:
        show_first: how many leading characters stay.
        show_last: how many trailing characters stay.
        upper: what stands for an upper-case letter.
        lower: what stands for any other letter.
        digit: what stands for a digit.

    Example:
        >>> PartialMask(show_last=4).upper
        'X'
    """

    show_first: int = 0
    show_last: int = 0
    upper: str = "X"
    lower: str = "x"
    digit: str = "n"

    def __post_init__(self) -> None:
        if self.show_first < 0 or self.show_last < 0:
            raise ValueError("a partial mask shows zero or more characters")
        if not all(len(text) == 1 for text in (self.upper, self.lower, self.digit)):
            raise ValueError("a replacement of a partial mask is one character")


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeMask:
    """A number reads as the lower end of its range: floor(value / width) * width."""

    width: int | Decimal

    def __post_init__(self) -> None:
        if not self.width > 0:
            raise ValueError("the width of a range mask is greater than zero")


@dataclass(frozen=True, slots=True, kw_only=True)
class YearMask:
    """A date or timestamp reads as the first moment of its year."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlMask:
    """The column reads as a scalar expression; `{col}` in it is the column, other columns of the row are allowed."""

    expression: SqlExpression


MaskAction = Literal[
    "mask-alphanum",
    "mask-to-fixed-value",
    "sha-256-global",
    "sha-256-query-local",
    "show-first-4",
    "show-last-4",
    "truncate-to-month",
]
"""Actions of the Iceberg REST specification that are no other mask."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionMask:
    """The column reads as the Iceberg REST specification defines an action of `read-restrictions`, byte for byte.

    The core refuses the statement where the specification has no such action for the column's type.
    """

    action: MaskAction


Mask = NullMask | ConstantMask | HashMask | PartialMask | RangeMask | YearMask | SqlMask | ActionMask
"""Every mask that the core knows how to compile. It keeps the column's type (POL-12)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnMask:
    """A mask on one column, named exactly as the request named it."""

    column: str
    mask: Mask


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The answer to one access.

    Restrictions may come with ALLOW, and with ABSTAIN: then they hold if another enforcer allows. With DENY they
    are an error, since a mistaken DENY that was meant as "allow, but" must not pass unseen (POL-4).

    Args:
        effect: allow, deny or abstain.
        reason: for the audit log; never shown to the user.
        row_filters: predicates over stored values; a row must satisfy all of them.
        column_masks: at most one mask per column.
        hidden_columns: columns that do not exist for this user.
        check: predicates that written rows must satisfy; with None the row filters are used.
        ttl_secs: how long the answer may be reused; None leaves it to the configuration, 0 means not at all.
        policy_version: the state of the policies that was used.

    Example:
        >>> Decision(effect=Effect.ALLOW, row_filters=(SqlExpression(text="dept = 'eng'"),)).restricted
        True
    """

    effect: Effect
    reason: str = ""
    row_filters: tuple[SqlExpression, ...] = ()
    column_masks: tuple[ColumnMask, ...] = ()
    hidden_columns: frozenset[str] = frozenset()
    check: tuple[SqlExpression, ...] | None = None
    ttl_secs: int | None = None
    policy_version: str | None = None

    def __post_init__(self) -> None:
        if self.effect is Effect.DENY and (self.restricted or self.check):
            raise ValueError("a DENY carries no row filter, mask, hidden column or check")
        columns = [mask.column for mask in self.column_masks]
        if len(set(columns)) != len(columns):
            raise ValueError("a column has at most one mask in a decision")

    @property
    def restricted(self) -> bool:
        """Whether some row or value is kept from the user."""
        return bool(self.row_filters or self.column_masks or self.hidden_columns)

    @classmethod
    def allow(cls, reason: str = "") -> Decision:
        """Return an unrestricted ALLOW."""
        return cls(effect=Effect.ALLOW, reason=reason)

    @classmethod
    def deny(cls, reason: str) -> Decision:
        """Return a DENY."""
        return cls(effect=Effect.DENY, reason=reason)

    @classmethod
    def abstain(cls, reason: str = "") -> Decision:
        """Return an ABSTAIN without restrictions."""
        return cls(effect=Effect.ABSTAIN, reason=reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyResponse:
    """One decision per access of the request, in its order.

    Args:
        decisions: the answers; another number than there were accesses refuses the statement.
        decision_id: the engine's own id of this evaluation, for its log and ours.
    """

    decisions: tuple[Decision, ...]
    decision_id: str | None = None


class PolicyEnforcer(ABC):
    """A policy engine. Its methods are called from many threads at once.

    Example:
        >>> class Weekdays(PolicyEnforcer):
        ...     def decide(self, request):
        ...         open_ = request.context.now.weekday() < 5
        ...         decision = Decision.abstain() if open_ else Decision.deny("closed at weekends")
        ...         return PolicyResponse(decisions=tuple(decision for _ in request.accesses))
    """

    enforces: bool = True
    """False for an engine that lets everything pass; production mode refuses it."""

    @abstractmethod
    def decide(self, request: PolicyRequest) -> PolicyResponse:
        """Answer every access of a statement at once.

        Args:
            request: the principal, the accesses and the circumstances.

        Returns:
            One decision per access, in the same order.

        Raises:
            ExternalError: the engine did not answer, or its answer was not understood. Any other exception counts
                the same.
        """

    def visible(self, request: VisibilityRequest) -> Sequence[Effect]:
        """Say which names may appear in a listing; asks `decide` about DESCRIBE unless overridden.

        Args:
            request: the principal and the names.

        Returns:
            One effect per name, in the same order. The core combines them like decisions.
        """
        accesses = tuple(
            Access(
                action=Action.DESCRIBE,
                resource=Resource(
                    name=name,
                    type=ResourceType.SCHEMA if isinstance(name, NamespaceName) else ResourceType.TABLE,
                ),
            )
            for name in request.names
        )
        response = self.decide(PolicyRequest(principal=request.principal, accesses=accesses, context=request.context))
        return [decision.effect for decision in response.decisions]

    def flush(self) -> None:
        """Forget cached answers; called after GRANT, REVOKE, tag changes and policy DDL."""

    def check(self) -> None:
        """Raise when the engine cannot decide; called at start-up and by `sqe doctor`."""

    def close(self) -> None:
        """Free what the enforcer holds."""


class Privilege(Enum):
    """What can be granted (docs/governance.md). Aliases of the SQL are resolved by the core."""

    SELECT = "SELECT"
    MONITOR = "MONITOR"
    INSERT = "INSERT"
    MODIFY = "MODIFY"
    ALTER = "ALTER"
    CREATE = "CREATE"
    CREATE_NAMESPACE = "CREATE NAMESPACE"
    CREATE_VIEW = "CREATE VIEW"
    DROP = "DROP"
    DROP_VIEW = "DROP VIEW"
    SELECT_VIEW = "SELECT VIEW"
    APPLY_POLICY = "APPLY POLICY"
    MANAGE = "MANAGE"
    ALL = "ALL"
    USE = "USE"


@dataclass(frozen=True, slots=True, kw_only=True)
class Grantee:
    """Who receives a grant. `public` has no name of its own."""

    type: Literal["user", "role", "group", "public"]
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantTarget:
    """What a grant is about: a catalog, a schema, an object, or all or future objects of a schema."""

    scope: Literal["catalog", "schema", "table", "view", "all_tables", "all_views", "future_tables", "future_views"]
    catalog: str
    namespace: tuple[str, ...] = ()
    name: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """One stored grant or denial.

    Args:
        privileges: what is granted.
        target: on what.
        grantee: to whom.
        effect: `ALLOW`, or `DENY` for the DENY statement.
        columns: the granted columns, None for all of them.
        column_masks: masks on granted columns.
        row_filter: the `ROWS WHERE` predicate.
        with_grant_option: whether the grantee may pass it on.
        granted_by: the author, filled by the store.
        granted_at: the time, filled by the store.
        object_uuid: the catalog's own id of the table or view at the time of the grant, where it is known. An object
            of another id under the same name gains nothing from the grant (POL-10).
    """

    privileges: frozenset[Privilege]
    target: GrantTarget
    grantee: Grantee
    effect: Literal[Effect.ALLOW, Effect.DENY] = Effect.ALLOW
    columns: tuple[str, ...] | None = None
    column_masks: tuple[ColumnMask, ...] = ()
    row_filter: SqlExpression | None = None
    with_grant_option: bool = False
    granted_by: str | None = None
    granted_at: datetime | None = None
    object_uuid: str | None = None


class SupportsGrants(ABC):
    """Capability of a `PolicyEnforcer`, and what a `GrantStore` is: GRANT, REVOKE and DENY are written here.

    The core has checked that the author may grant, and that filter and masks compile (POL-15). What a store cannot
    express exactly it refuses with `NotSupportedError`; it never widens a grant.
    """

    @abstractmethod
    def put_grant(self, grant: Grant, *, author: Identity) -> None:
        """Store a grant in one transaction, beside those that exist.

        Args:
            grant: the grant.
            author: who grants, with the token where the store acts as that person.
        """

    @abstractmethod
    def delete_grant(self, grant: Grant, *, author: Identity) -> bool:
        """Remove what the REVOKE names.

        Args:
            grant: the privileges, target, grantee and effect; `columns` revokes those columns only, a `row_filter`
                whose text is empty revokes the filter only, `with_grant_option` the option only. With the effect
                DENY, denials are lifted.
            author: who revokes.

        Returns:
            False when there was nothing to remove.
        """

    @abstractmethod
    def list_grants(
        self, *, target: GrantTarget | None = None, grantee: Grantee | None = None, author: Identity
    ) -> Sequence[Grant]:
        """List grants on a target, of a grantee, or both.

        Args:
            target: limits the list to this target.
            grantee: limits the list to this grantee.
            author: who asks.
        """

    def effective_grants(self, principal: Identity, *, author: Identity) -> Sequence[Grant]:
        """List what reaches somebody: as user, through roles, groups, and PUBLIC.

        Args:
            principal: whose grants; with the roles of the token, where they are known.
            author: who asks.
        """
        roles = principal.roles | (self.roles_of(principal) if isinstance(self, SupportsRoles) else frozenset())
        grantees = [Grantee(type="user", name=principal.username), Grantee(type="public")]
        grantees += [Grantee(type="role", name=name) for name in sorted(roles)]
        grantees += [Grantee(type="group", name=name) for name in sorted(principal.groups)]
        return [grant for grantee in grantees for grant in self.list_grants(grantee=grantee, author=author)]

    def may_grant(self, grant: Grant, *, author: Identity) -> bool:
        """Say whether somebody who is no admin may make this grant, or revoke it; nobody may unless overridden.

        Args:
            grant: the grant.
            author: who wants to make it.
        """
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleInfo:
    """A role that a store keeps. Roles that only tokens name are not in it."""

    name: str
    created_by: str | None = None
    created_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleGrant:
    """A role that somebody has.

    Args:
        role: the role.
        grantee: a user, a group, or another role, which then holds this one.
        admin_option: whether the grantee may pass the role on.
        granted_by: the author, filled by the store.
        granted_at: the time, filled by the store.
    """

    role: str
    grantee: Grantee
    admin_option: bool = False
    granted_by: str | None = None
    granted_at: datetime | None = None


class SupportsRoles(ABC):
    """Capability of a `PolicyEnforcer`, and what a `GrantStore` is: roles are made and given with SQL.

    The core has checked who may.
    """

    @abstractmethod
    def create_role(self, name: str, *, author: Identity) -> None:
        """Make a role.

        Raises:
            UserError: it exists.
        """

    @abstractmethod
    def drop_role(self, name: str, *, author: Identity) -> bool:
        """Remove a role with all that it was given and all who had it; denials and policies stay with its name.

        Returns:
            False when there was none.
        """

    @abstractmethod
    def grant_role(self, role: str, grantee: Grantee, *, admin_option: bool, author: Identity) -> None:
        """Give a role to a user, a group or another role, with this admin option and no other.

        Raises:
            UserError: the role does not exist, or would hold itself.
        """

    @abstractmethod
    def revoke_role(self, role: str, grantee: Grantee, *, author: Identity) -> bool:
        """Take a role away.

        Returns:
            False when the grantee did not have it.
        """

    @abstractmethod
    def list_roles(self, *, author: Identity) -> Sequence[RoleInfo]:
        """List the roles, by name."""

    @abstractmethod
    def list_role_grants(self, *, author: Identity) -> Sequence[RoleGrant]:
        """List who has which role directly."""

    @abstractmethod
    def roles_of(self, principal: Identity) -> frozenset[str]:
        """Return the stored roles of somebody: directly, through groups, and through roles, those of the token too.

        They come on top of the token's roles, which are not repeated here unless the store gives them as well.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredPolicy:
    """A named mask or row filter, made with CREATE POLICY. It restricts; it never gives access.

    Args:
        name: unique among all policies, whatever their case.
        kind: what it does.
        target: the table or view, or the text of a tag: then every column with that tag is masked.
        grantees: whom it restricts.
        column: the masked column of a table; None for tags and filters.
        mask: the mask; None is MASK_NONE, which wins over masks of the other level where `mask_precedence` says so.
        row_filter: the predicate.
        enabled: whether it counts.
        object_uuid: the catalog's own id of the table, where it is known; the policy follows it too (POL-10).
        created_by: the author, filled by the store.
        created_at: the time, filled by the store.

    Example:
        >>> StoredPolicy(
        ...     name="hide_pii",
        ...     kind="column_mask",
        ...     target="PII",
        ...     mask=NullMask(),
        ...     grantees=(Grantee(type="role", name="analyst"),),
        ... ).tag
        'PII'
    """

    name: str
    kind: Literal["column_mask", "row_filter"]
    target: ObjectName | str
    grantees: tuple[Grantee, ...]
    column: str | None = None
    mask: Mask | None = None
    row_filter: SqlExpression | None = None
    enabled: bool = True
    object_uuid: str | None = None
    created_by: str | None = None
    created_at: datetime | None = None

    def __post_init__(self) -> None:
        masks = self.kind == "column_mask"
        if not self.grantees:
            raise ValueError("a policy restricts at least one grantee")
        if masks == (self.row_filter is not None) or (self.mask is not None and not masks):
            raise ValueError("a policy is a mask or a row filter")
        if (self.column is not None) != (masks and self.tag is None):
            raise ValueError("a mask on a table names its column, and nothing else does")
        if not masks and self.tag is not None:
            raise ValueError("a tag masks columns, it filters no rows")

    @property
    def tag(self) -> str | None:
        """The tag that the policy is about, if it is about one."""
        return self.target if isinstance(self.target, str) else None


class SupportsPolicies(ABC):
    """Capability of a `PolicyEnforcer`: CREATE POLICY and DROP POLICY are written here.

    The core has checked that the author may, and that filter and mask compile where the table is known (POL-15).
    """

    @abstractmethod
    def put_policy(self, policy: StoredPolicy, *, replace: bool, author: Identity) -> None:
        """Store a policy in one transaction.

        Args:
            policy: the policy.
            replace: whether one of that name may give way.
            author: who makes it.

        Raises:
            UserError: the name is taken.
        """

    @abstractmethod
    def delete_policy(self, name: str, *, author: Identity) -> bool:
        """Remove a policy.

        Returns:
            False when there was none.
        """

    @abstractmethod
    def list_policies(self, *, author: Identity) -> Sequence[StoredPolicy]:
        """List the policies, by name."""


class SupportsOwnership(ABC):
    """Capability of a `PolicyEnforcer`: it knows who owns what, and follows objects through their lives (POL-10).

    The core tells it after the catalog has done the work. An object's owner may do everything with it.
    """

    @abstractmethod
    def owner_of(self, name: ObjectName | NamespaceName) -> Grantee | None:
        """Return the owner of an object or a schema, None when nobody is recorded."""

    def is_owner(self, name: ObjectName | NamespaceName, principal: Identity, *, uuid: str | None = None) -> bool:
        """Say whether somebody owns this, by login and not by name alone (SESS-4); nobody does unless overridden.

        Args:
            name: the object or schema.
            principal: who asks, with the roles in use.
            uuid: the catalog's id of the object. One that was made anew under the name is not its former owner's.
        """
        return False

    @abstractmethod
    def set_owner(
        self, name: ObjectName | NamespaceName, owner: Grantee, *, uuid: str | None = None, author: Identity
    ) -> None:
        """Give an object, by its id, or a schema to a user or a role. The core has checked that the author may."""

    @abstractmethod
    def object_created(self, name: ObjectName | NamespaceName, *, uuid: str | None, owner: Identity) -> None:
        """Record a new object, not one that replaced itself and kept its id. It gains nothing from its name's past."""

    @abstractmethod
    def object_renamed(self, old: ObjectName, new: ObjectName, *, author: Identity) -> None:
        """Move grants, policies and ownership to the new name. Who had no access to the old name has none to either."""

    @abstractmethod
    def object_dropped(self, name: ObjectName | NamespaceName, *, uuid: str | None, author: Identity) -> None:
        """Take back what was granted on an object that is gone; denials and policies stay with its name."""


class PolicyEnforcerFactory(PluginFactory[ConfigT, PluginContext, PolicyEnforcer]):
    """Makes the enforcer of one `[policy] engine` kind. `create` raises when the engine cannot be reached (POL-1).

    Example:
        >>> class WeekdaysFactory(PolicyEnforcerFactory[NoConfig]):
        ...     kind = "weekdays"
        ...     config_type = NoConfig
        ...
        ...     def create(self, name, config, context):
        ...         return Weekdays()
    """
