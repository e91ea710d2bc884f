"""What is known of a statement as soon as it is recognised. Each handler says it of its own."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Audited(Enum):
    """What the audit log calls it (docs/audit.md)."""

    QUERY = "query"
    DDL = "admin_ddl"
    RIGHTS = "grant"


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementTraits:
    """What history and audit want to know.

    Attributes:
        audited: what the audit log calls it.
        writes_rows: whether the rows that it counts were written.
        may_do_nothing: whether it may say IF EXISTS: then what is denied is no error, and nothing happens.
    """

    audited: Audited = Audited.QUERY
    writes_rows: bool = False
    may_do_nothing: bool = False


DDL = StatementTraits(audited=Audited.DDL)
DDL_IF_EXISTS = StatementTraits(audited=Audited.DDL, may_do_nothing=True)
RIGHTS = StatementTraits(audited=Audited.RIGHTS)
