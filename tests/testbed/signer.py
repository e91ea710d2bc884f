"""A catalog's signer: it signs requests for the files of one table, for the people who may, with its own keys."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from testbed.meddler import Answer, Seen

READ = frozenset({"GET", "HEAD"})
WRITE = READ | {"PUT", "POST", "DELETE"}


class _Unsigned(S3SigV4Auth):
    """Signs a request whose body it does not know."""

    def payload(self, request: Any) -> str:
        return "UNSIGNED-PAYLOAD"


@dataclass
class Signer:
    """Signs what somebody may do.

    Args:
        access_key: the key of the store.
        secret_key: its secret.
        rights: the methods that the owner of each token may have signed.
        prefix: where the files are, as a path of the store.
        changes: what takes the place of parts of an answer.
    """

    access_key: str
    secret_key: str
    region: str
    rights: dict[str, frozenset[str]] = field(default_factory=dict)
    prefix: str = "/warehouse/hr/emp/"
    changes: Mapping[str, Any] = field(default_factory=dict)
    signed: list[tuple[str, str, str]] = field(default_factory=list)
    """Whose token, what and where."""
    refused: list[tuple[str, str, str]] = field(default_factory=list)

    def answer(self, request: Seen) -> Answer:
        """Answer a request to sign another one."""
        asked = json.loads(request.body)
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        path = urlsplit(asked["uri"]).path
        line = (token, asked["method"], path)
        inside = all(each.startswith(self.prefix) for each in _paths(asked, path))
        if asked["method"] not in self.rights.get(token, frozenset()) or not inside or ".." in path:
            self.refused.append(line)
            error = {"message": "Zwiebelfisch", "type": "ForbiddenException", "code": 403}
            return 403, {}, json.dumps({"error": error}).encode()
        self.signed.append(line)
        headers = {name: ",".join(values) for name, values in asked["headers"].items()}
        aws = AWSRequest(method=asked["method"], url=asked["uri"], headers=headers)
        _Unsigned(Credentials(self.access_key, self.secret_key), "s3", self.region).add_auth(aws)
        found = {"uri": aws.url, "headers": {name: [value] for name, value in aws.headers.items()}, **self.changes}
        return 200, {"Cache-Control": "private"}, json.dumps(found).encode()


def _paths(asked: Mapping[str, Any], path: str) -> list[str]:
    """What a request is about: many files are deleted with one, whose body names them."""
    body = asked.get("body")
    if not body:
        return [path]
    keys = [part.partition("</Key>")[0] for part in body.split("<Key>")[1:]]
    bucket = path.rstrip("/")
    return [f"{bucket}/{key}" for key in keys]
