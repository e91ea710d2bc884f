"""CREATE POLICY and DROP POLICY, masking policies of columns, owners; what is asked about them."""

from __future__ import annotations

from dataclasses import replace

from sqe_core.query.answers.access import AccessAnswers
from sqe_core.query.answers.grants import GovernanceAnswers
from sqe_core.query.statements.handler import denied
from sqe_core.query.statements.steward import GovernedObject, Steward, steward_answer, steward_change
from sqe_core.spi.errors import ErrorCode, UserError
from sqe_core.spi.names import ObjectName
from sqe_core.spi.policy import ColumnMask, Mask, SqlMask, StoredPolicy, SupportsOwnership, SupportsPolicies
from sqe_core.sql.statement import Name
from sqe_core.sql.statements.governance import (
    CreatePolicy,
    DropPolicy,
    GrantObject,
    Scope,
    SetMaskingPolicy,
    SetOwner,
    ShowEffectivePolicy,
    ShowMaskingPolicies,
)

show_masking_policies = steward_answer(
    ShowMaskingPolicies, lambda asked, steward: GovernanceAnswers(steward).masking_policies(asked)
)
show_effective_policy = steward_answer(
    ShowEffectivePolicy, lambda asked, steward: AccessAnswers(steward).effective_policy(asked)
)


@steward_change(CreatePolicy)
def create_policy(statement: CreatePolicy, steward: Steward) -> None:
    store = steward.store(SupportsPolicies, admin="create policies")
    if statement.tag is not None:
        if isinstance(statement.mask, SqlMask) and "{col}" not in statement.mask.expression.text:
            # It has to fit every table, whose columns it cannot know.
            raise UserError("The mask of a tag calls the column {col}", code=ErrorCode.INVALID_ARGUMENTS)
        policy = StoredPolicy(
            name=statement.name,
            kind="column_mask",
            target=statement.tag,
            grantees=statement.grantees,
            mask=None if statement.mask is None else steward.stored_mask(statement.mask),
        )
    else:
        assert statement.table is not None
        policy = _on_table(steward, statement, statement.table)
    store.put_policy(policy, replace=statement.replace, author=steward.identity)
    steward.remark(statement.grantees)


@steward_change(DropPolicy)
def drop_policy(statement: DropPolicy, steward: Steward) -> None:
    store = steward.store(SupportsPolicies, admin="drop policies")
    if not store.delete_policy(statement.name, author=steward.identity) and not statement.if_exists:
        raise _no_policy(statement.name)


@steward_change(SetMaskingPolicy)
def set_masking_policy(statement: SetMaskingPolicy, steward: Steward) -> None:
    """ALTER COLUMN … SET and UNSET MASKING POLICY: a column has the mask of a policy as well, or none."""
    store = steward.store(SupportsPolicies, admin="set masking policies")
    resolved, loaded = steward.existing(statement.name)
    author = steward.identity
    policies = store.list_policies(author=author)
    if statement.policy is None:
        column = statement.column.casefold()
        found = [
            one
            for one in policies
            if one.target == resolved.name and one.column is not None and one.column.casefold() == column
        ]
        for one in found:
            store.delete_policy(one.name, author=author)
        return
    source = next((one for one in policies if one.name.casefold() == statement.policy.casefold()), None)
    if source is None or source.kind != "column_mask":
        raise _no_policy(statement.policy)
    column = steward.column(resolved.name, loaded, statement.column)
    governed = steward.find(GrantObject(scope="object", name=statement.name))
    _compile_mask(steward, governed, column, source.mask)
    made = replace(
        source,
        name=f"{source.name} on {resolved.name}.{column}",
        target=resolved.name,
        column=column,
        object_uuid=loaded.uuid,
    )
    store.put_policy(made, replace=True, author=author)


@steward_change(SetOwner)
def set_owner(statement: SetOwner, steward: Steward) -> None:
    """ALTER … SET AUTHORIZATION, ALTER … OWNER TO."""
    store = steward.store(SupportsOwnership)
    if not steward.is_admin and not _owns_unseen(steward, store, statement):
        raise denied("give this away")
    scope: Scope = "object" if statement.object == "table" else statement.object
    found = steward.find(GrantObject(scope=scope, name=statement.name))
    uuid = None if found.loaded is None else found.loaded.uuid
    if not steward.is_admin and not store.is_owner(found.name, steward.identity, uuid=uuid):
        raise denied("give this away")
    store.set_owner(found.name, statement.owner, uuid=uuid, author=steward.identity)


def _owns_unseen(steward: Steward, store: SupportsOwnership, statement: SetOwner) -> bool:
    scope: Scope = "schema" if statement.object == "schema" else "object"
    try:
        unseen = steward.unseen(GrantObject(scope=scope, name=statement.name))
    except UserError:
        return False
    return store.is_owner(unseen.name, steward.identity)


def _on_table(steward: Steward, statement: CreatePolicy, table: Name) -> StoredPolicy:
    governed = steward.find(GrantObject(scope="object", name=table))
    assert isinstance(governed.name, ObjectName)
    assert governed.loaded is not None
    column, mask, row_filter = None, None, None
    if statement.row_filter is not None:
        row_filter = steward.stored_filter(statement.row_filter)
        steward.compile(governed, row_filters=(row_filter,))
    else:
        assert statement.column is not None
        column = steward.column(governed.name, governed.loaded, statement.column)
        mask = None if statement.mask is None else steward.stored_mask(statement.mask)
        _compile_mask(steward, governed, column, mask)
    return StoredPolicy(
        name=statement.name,
        kind="row_filter" if statement.row_filter is not None else "column_mask",
        target=governed.name,
        grantees=statement.grantees,
        column=column,
        mask=mask,
        row_filter=row_filter,
        object_uuid=governed.loaded.uuid,
    )


def _compile_mask(steward: Steward, governed: GovernedObject, column: str, mask: Mask | None) -> None:
    if mask is not None:
        steward.compile(governed, column_masks=(ColumnMask(column=column, mask=mask),))


def _no_policy(name: str) -> UserError:
    return UserError(
        f"Policy {name} does not exist", code=ErrorCode.INVALID_ARGUMENTS, hint="SHOW MASKING POLICIES lists them"
    )
