"""Who an ARN names: an IAM user, a role, or a session of a role."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

# What IAM allows in names and paths. A path begins and ends with a slash and is part of a user's ARN only: AWS leaves
# it out of the ARN of a role's session, and names are unique without it.
_ARN = re.compile(
    r"arn:(?P<partition>aws(?:-[a-z]+)*):(?P<service>iam|sts)::(?P<account>[0-9]{12}):"
    r"(?P<kind>user|role|assumed-role)/(?P<rest>[\x21-\x7e]{1,1024})"
)
_NAME = re.compile(r"[A-Za-z0-9_+=,.@-]{1,64}")
_KINDS = {("iam", "user"): "user", ("iam", "role"): "role", ("sts", "assumed-role"): "session"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """A user or role of an account; `session` is the name that somebody gave to a session of the role."""

    partition: str
    account: str
    kind: Literal["user", "role"]
    path: str = "/"
    name: str
    session: str | None = None

    @property
    def arn(self) -> str:
        """The ARN to compare by: of a session that of its role, and of a role without its path."""
        path = self.path if self.kind == "user" else "/"
        return f"arn:{self.partition}:iam::{self.account}:{self.kind}{path}{self.name}"

    @property
    def session_arn(self) -> str:
        """The ARN of the session itself."""
        return f"arn:{self.partition}:sts::{self.account}:assumed-role/{self.name}/{self.session}"


def read_arn(arn: str) -> Principal | None:
    """Read an ARN; None when it names nobody who can log in: root, a federated user, a service."""
    found = _ARN.fullmatch(arn)
    kind = _KINDS.get((found["service"], found["kind"])) if found else None
    if found is None or kind is None:
        return None
    *path, name = found["rest"].split("/")
    partition, account = found["partition"], found["account"]
    if kind == "session":
        if len(path) != 1 or not _NAME.fullmatch(path[0]) or not _NAME.fullmatch(name):
            return None
        return Principal(partition=partition, account=account, kind="role", name=path[0], session=name)
    if not _NAME.fullmatch(name):
        return None
    return Principal(
        partition=partition,
        account=account,
        kind="user" if kind == "user" else "role",
        path="/" + "".join(f"{part}/" for part in path),
        name=name,
    )
