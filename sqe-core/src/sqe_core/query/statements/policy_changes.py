"""CREATE POLICY and DROP POLICY, masking policies of columns, owners."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqe_core.query.statements.steward import GovernedObject, Steward, denied
from sqe_core.spi.errors import ErrorCode, UserError
from sqe_core.spi.names import NamespaceName, ObjectName
from sqe_core.spi.policy import ColumnMask, Mask, SqlMask, StoredPolicy, SupportsOwnership, SupportsPolicies
from sqe_core.sql.statement import Name
from sqe_core.sql.statements.governance import CreatePolicy, DropPolicy, GrantObject, Scope, SetMaskingPolicy, SetOwner


@dataclass(frozen=True, slots=True)
class PolicyChanges:
    """Carries out what is said about named policies and owners."""

    steward: Steward

    def create(self, statement: CreatePolicy) -> None:
        """Store a policy."""
        store = self._store("create policies")
        if statement.tag is not None:
            if isinstance(statement.mask, SqlMask) and "{col}" not in statement.mask.expression.text:
                # It has to fit every table, whose columns it cannot know.
                raise UserError("The mask of a tag calls the column {col}", code=ErrorCode.INVALID_ARGUMENTS)
            policy = StoredPolicy(
                name=statement.name,
                kind="column_mask",
                target=statement.tag,
                grantees=statement.grantees,
                mask=None if statement.mask is None else self.steward.stored_mask(statement.mask),
            )
        else:
            assert statement.table is not None
            policy = self._on_table(statement, statement.table)
        store.put_policy(policy, replace=statement.replace, author=self.steward.identity)
        self.steward.authorizer.flush()

    def drop(self, statement: DropPolicy) -> None:
        """Remove a policy."""
        store = self._store("drop policies")
        if not store.delete_policy(statement.name, author=self.steward.identity) and not statement.if_exists:
            raise _no_policy(statement.name)
        self.steward.authorizer.flush()

    def set_masking_policy(self, statement: SetMaskingPolicy) -> None:
        """Put the mask of a policy on a column as well, or take what masks the column off it."""
        store = self._store("set masking policies")
        resolved, loaded = self.steward.existing(statement.name)
        author = self.steward.identity
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
            self.steward.authorizer.flush()
            return
        source = next((one for one in policies if one.name.casefold() == statement.policy.casefold()), None)
        if source is None or source.kind != "column_mask":
            raise _no_policy(statement.policy)
        column = self.steward.column(resolved.name, loaded, statement.column)
        governed = self.steward.find(GrantObject(scope="object", name=statement.name))
        self._compile_mask(governed, column, source.mask)
        made = replace(
            source,
            name=f"{source.name} on {resolved.name}.{column}",
            target=resolved.name,
            column=column,
            object_uuid=loaded.uuid,
        )
        store.put_policy(made, replace=True, author=author)
        self.steward.authorizer.flush()

    def set_owner(self, statement: SetOwner) -> None:
        """Give a table, a view or a schema to somebody."""
        steward = self.steward
        store = steward.store(SupportsOwnership)
        if not steward.is_admin and not self._owns_unseen(store, statement):
            raise denied("give this away")
        name: ObjectName | NamespaceName
        if statement.object == "schema":
            _, name = steward.find_schema(statement.name)
        else:
            scope: Scope = "view" if statement.object == "view" else "object"
            found = steward.find(GrantObject(scope=scope, name=statement.name))
            name = found.name
        store.set_owner(name, statement.owner, author=steward.identity)
        steward.authorizer.flush()

    def _owns_unseen(self, store: SupportsOwnership, statement: SetOwner) -> bool:
        scope: Scope = "schema" if statement.object == "schema" else "object"
        try:
            unseen = self.steward.unseen(GrantObject(scope=scope, name=statement.name))
        except UserError:
            return False
        return store.is_owner(unseen.name, self.steward.identity)

    def _store(self, what: str) -> SupportsPolicies:
        store = self.steward.store(SupportsPolicies)
        self.steward.require_admin(what)
        return store

    def _on_table(self, statement: CreatePolicy, table: Name) -> StoredPolicy:
        governed = self.steward.find(GrantObject(scope="object", name=table))
        assert isinstance(governed.name, ObjectName)
        assert governed.loaded is not None
        column, mask, row_filter = None, None, None
        if statement.row_filter is not None:
            row_filter = self.steward.stored_filter(statement.row_filter)
            self.steward.compile(governed, row_filters=(row_filter,))
        else:
            assert statement.column is not None
            column = self.steward.column(governed.name, governed.loaded, statement.column)
            mask = None if statement.mask is None else self.steward.stored_mask(statement.mask)
            self._compile_mask(governed, column, mask)
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

    def _compile_mask(self, governed: GovernedObject, column: str, mask: Mask | None) -> None:
        if mask is not None:
            self.steward.compile(governed, column_masks=(ColumnMask(column=column, mask=mask),))


def _no_policy(name: str) -> UserError:
    return UserError(
        f"Policy {name} does not exist", code=ErrorCode.INVALID_ARGUMENTS, hint="SHOW MASKING POLICIES lists them"
    )
