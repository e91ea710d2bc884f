"""The kinds of statements."""

from __future__ import annotations

from enum import Enum


class StatementKind(Enum):
    """What a statement is, as history, audit, lineage and protocols name it."""

    QUERY = "query"
    INSERT = "insert"
    UPDATE = "update"
    DELETE = "delete"
    MERGE = "merge"
    TRUNCATE = "truncate"
    CREATE_TABLE = "create_table"
    CREATE_TABLE_AS = "create_table_as"
    DROP_TABLE = "drop_table"
    ALTER_TABLE = "alter_table"
    CREATE_VIEW = "create_view"
    DROP_VIEW = "drop_view"
    ALTER_VIEW = "alter_view"
    CREATE_SCHEMA = "create_schema"
    DROP_SCHEMA = "drop_schema"
    COMMENT = "comment"
    SHOW = "show"
    DESCRIBE = "describe"
    EXPLAIN = "explain"
    USE = "use"
    SESSION = "session"
    TRANSACTION = "transaction"
    UTILITY = "utility"
    GRANT = "grant"
    REVOKE = "revoke"
    DENY = "deny"
    ROLE = "role"
    POLICY = "policy"
    SET_TAGS = "set_tags"
    SET_OWNER = "set_owner"
    CHECK_ACCESS = "check_access"
    KILL = "kill"
    ATTACH = "attach"
    DETACH = "detach"
    SECRET = "secret"  # noqa: S105 - a word
    PREPARE = "prepare"
    DEALLOCATE = "deallocate"
    EXECUTE = "execute"
    CALL = "call"
