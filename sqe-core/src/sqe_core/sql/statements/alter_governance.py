"""What ALTER says about tags, masking policies and owners."""

from __future__ import annotations

from sqe_core.spi.policy import Grantee
from sqe_core.sql.statement import Name, Statement
from sqe_core.sql.statements.governance import Owned, SetMaskingPolicy, SetOwner, SetTags, UnsetTags
from sqe_core.sql.statements.grant_parts import clean, grantee, tag_name
from sqe_core.sql.text.cursor import Cursor
from sqe_core.sql.text.tokens import NAMES

_A_COLUMN = "the name of a column"
_MANY_TAGS = 100


def alter_owner(cursor: Cursor, what: Owned, name: Name) -> Statement | None:
    """Read SET AUTHORIZATION or OWNER TO if it comes next. As in Trino, a bare name after AUTHORIZATION is a user's."""
    if cursor.accept("set", "authorization"):
        bare = not cursor.at_any("user", "role", "group", "public")
        owner = grantee(cursor)
        if bare:
            owner = Grantee(type="user", name=owner.name)
    elif cursor.accept("owner", "to"):
        if not cursor.at_any("user", "role"):
            cursor.fail("USER or ROLE")
        owner = grantee(cursor)
    else:
        return None
    if owner.type not in ("user", "role"):
        cursor.refuse("An owner is a user or a role", at=cursor.peek(-1))
    cursor.done()
    return SetOwner(object=what, name=name, owner=owner)


def alter_tags(cursor: Cursor, name: Name) -> Statement | None:
    """Read SET TAGS, UNSET TAGS, and the tags and masking policy of one column, if one of them comes next."""
    if cursor.accept("set", "tags"):
        return _set_tags(cursor, name)
    if cursor.accept("unset", "tags"):
        return _unset_tags(cursor, name)
    start = cursor.index
    if cursor.accept_any("alter", "modify", "change") is not None:
        cursor.accept("column")
        if cursor.token.kind in NAMES:
            column = cursor.part(_A_COLUMN)
            found = _one_column(cursor, name, column)
            if found is not None:
                return found
    cursor.index = start
    return None


def _one_column(cursor: Cursor, name: Name, column: str) -> Statement | None:
    word = cursor.token.value if cursor.at_any("set", "unset") else None
    if word is None or not (cursor.peek().is_word("tag") or cursor.peek().is_word("masking")):
        return None
    cursor.advance()
    if cursor.accept("tag"):
        tag = tag_name(cursor)
        if word == "unset":
            cursor.done()
            return UnsetTags(name=name, columns=(column,), tag=tag)
        tags = {tag}
        equals = cursor.accept_symbol("=")
        if equals or not cursor.at_end:
            tags.add(f"{tag}={tag_name(cursor)}")
        cursor.done()
        return SetTags(name=name, tags={column: frozenset(tags)})
    cursor.expect("masking", "policy")
    policy = None
    if word == "set":
        policy = clean(cursor, "the name of a policy")
    elif not cursor.at_end:
        clean(cursor, "the name of a policy")
    cursor.done()
    return SetMaskingPolicy(name=name, column=column, policy=policy)


def _set_tags(cursor: Cursor, name: Name) -> Statement:
    tags: dict[str, frozenset[str]] = {}

    def tagged(cursor: Cursor) -> None:
        at = cursor.token
        column = cursor.part(_A_COLUMN)
        if column in tags:
            raise cursor.text.error(f"Column {column} is named twice", at.start)
        cursor.expect_symbol("=")
        tags[column] = _tag_list(cursor)

    cursor.bracketed(tagged)
    cursor.done()
    return SetTags(name=name, tags=tags)


def _tag_list(cursor: Cursor) -> frozenset[str]:
    if not cursor.at_symbol("("):
        return frozenset((tag_name(cursor),))
    found = frozenset(cursor.bracketed(tag_name))
    if len(found) > _MANY_TAGS:
        cursor.refuse(f"A column has at most {_MANY_TAGS} tags")
    return found


def _unset_tags(cursor: Cursor, name: Name) -> Statement:
    columns = cursor.bracketed(lambda cursor: cursor.part(_A_COLUMN))
    cursor.done()
    return UnsetTags(name=name, columns=tuple(dict.fromkeys(columns)))
