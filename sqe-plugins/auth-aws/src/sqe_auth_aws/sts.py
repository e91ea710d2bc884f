"""The two questions that AWS's Security Token Service is asked, and what its answers mean.

A user's secret key stays here: it signs the question (SigV4), and AWS, which knows it too, compares.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import NoReturn
from urllib.parse import urlencode
from xml.etree import ElementTree

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.loaders import Loader
from botocore.regions import EndpointResolver

from sqe_auth_aws.config import AwsConfig
from sqe_core.spi import AwsCredential, ConfigError, ExternalError, InvalidCredentialsError, Secret, StartupError
from sqe_http.client import Answer, Bounds, HttpClient
from sqe_http.deadline import Tls
from sqe_http.errors import HttpFailedError

_log = logging.getLogger("sqe_core.auth_aws")
# At this level and below it writes what it signs, the session's token among it (OBS-2).
logging.getLogger("botocore.auth").setLevel(logging.INFO)

_VERSION = "2011-06-15"
_LARGEST_ANSWER = 64 * 1024
# STS says that the credential is bad. Everything else is about the service or about us, and no reason to count a
# failed attempt against anybody.
_REFUSALS = frozenset(
    {
        "AccessDenied",
        "AccessDeniedException",
        "ExpiredToken",
        "ExpiredTokenException",
        "IDPRejectedClaim",
        "IncompleteSignature",
        "InvalidAccessKeyId",
        "InvalidClientTokenId",
        "InvalidIdentityToken",
        "InvalidToken",
        "SignatureDoesNotMatch",
        "UnrecognizedClientException",
        "ValidationError",
    }
)
# AWS takes signatures that are at most five minutes away from its own time.
_MOST_SKEW_SECS = 270
# The keys that come with a web identity are not used; should somebody see them, they open nothing.
_NOTHING_ALLOWED = '{"Version":"2012-10-17","Statement":[{"Effect":"Deny","Action":"*","Resource":"*"}]}'
_SHORTEST_SECS = 900


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Whom AWS takes a key for. `user_id` is never given to anybody else, unlike a name."""

    account: str
    arn: str
    user_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WebIdentity:
    """The session that AWS gave for a token; `subject` is whose token it is, where AWS says so."""

    arn: str
    subject: str | None


class SecurityTokenService:
    """STS of one region. Safe for use from many threads."""

    def __init__(self, config: AwsConfig) -> None:
        host, self._signing_region, self.partition = _endpoint(config.region or "")
        self._url = (config.endpoint_url or f"https://{host}").rstrip("/") + "/"
        bounds = Bounds(timeout_secs=config.timeout_secs, answer_bytes=_LARGEST_ANSWER)
        try:
            self._client = HttpClient("STS", bounds, tls=Tls(ca_file=config.ca_file))
        except OSError:
            raise StartupError("The ca_file of the login provider aws_iam cannot be read") from None

    def caller_of(self, keys: AwsCredential) -> Caller:
        """Return who signs with these keys (GetCallerIdentity).

        Raises:
            InvalidCredentialsError: AWS does not know the key, or its secret is another one, or its time is over.
            ExternalError: AWS did not say.
        """
        body = _form("GetCallerIdentity")
        request = AWSRequest(method="POST", url=self._url, data=body, headers=_headers())
        token = keys.session_token.reveal() if keys.session_token else None
        signer = Credentials(keys.access_key_id, keys.secret_access_key.reveal(), token)
        SigV4Auth(signer, "sts", self._signing_region).add_auth(request)
        result = _result(self._post(body, dict(request.headers.items())), "GetCallerIdentity")
        return Caller(account=_text(result, "Account"), arn=_text(result, "Arn"), user_id=_text(result, "UserId"))

    def _post(self, body: bytes, headers: Mapping[str, str]) -> Answer:
        try:
            # Never twice: what is sent is a credential.
            return self._client.send("POST", self._url, body=body, headers=headers, read=lambda answer: answer)
        except HttpFailedError as failure:
            raise ExternalError(str(failure)) from None

    def check(self) -> None:
        """Ask without a key, which STS refuses.

        Raises:
            ExternalError: it is not STS that answers, or its clock is another one.
        """
        answer = self._post(_form("GetCallerIdentity"), _headers())
        document = _document(answer.body)
        refused = 400 <= answer.status < 500 and _code(document)
        # Stand-ins let everybody in.
        if not refused and answer.status != 200:
            raise ExternalError(f"STS answered with status {answer.status}")
        _raise_skew(answer)

    def web_identity(self, token: Secret, role_arn: str, session_name: str) -> WebIdentity:
        """Present somebody's token for a role (AssumeRoleWithWebIdentity), which checks the token.

        Raises:
            InvalidCredentialsError: AWS does not take the token, or the role is not for its owner.
            ExternalError: AWS did not say.
        """
        body = _form(
            "AssumeRoleWithWebIdentity",
            RoleArn=role_arn,
            RoleSessionName=session_name,
            WebIdentityToken=token.reveal(),
            DurationSeconds=str(_SHORTEST_SECS),
            Policy=_NOTHING_ALLOWED,
        )
        result = _result(self._post(body, _headers()), "AssumeRoleWithWebIdentity")
        subject = result.findtext("SubjectFromWebIdentityToken")
        return WebIdentity(arn=_text(result, "AssumedRoleUser/Arn"), subject=subject or None)


@functools.cache  # the table of regions is large
def _endpoint(region: str) -> tuple[str, str, str]:
    """Host, region of signatures, and partition."""
    found = EndpointResolver(Loader().load_data("endpoints")).construct_endpoint("sts", region)
    if not found:
        raise ConfigError((f"region is '{region}', which is no region of AWS",))
    return found["hostname"], found.get("credentialScope", {}).get("region", region), found["partition"]


def _headers() -> dict[str, str]:
    return {"Content-Type": "application/x-www-form-urlencoded; charset=utf-8", "Accept": "text/xml"}


def _form(action: str, **fields: str) -> bytes:
    return urlencode({"Action": action, "Version": _VERSION, **fields}).encode()


def _result(answer: Answer, action: str) -> ElementTree.Element:
    document = _document(answer.body)
    if answer.status == 200:
        result = document.find(f"{action}Result")
        if result is None:
            raise ExternalError("The answer of STS is not what was asked for")
        return result
    if 400 <= answer.status < 500:
        _refuse(answer, _code(document))
    raise ExternalError(f"STS answered with status {answer.status}")


def _code(document: ElementTree.Element) -> str:
    return document.findtext("Error/Code") or document.findtext("Errors/Error/Code") or ""


def _raise_skew(answer: Answer) -> None:
    skew = _skew(answer.headers.get("date"))
    if abs(skew) > _MOST_SKEW_SECS:
        # Every signature is refused then, and none of those who log in is at fault.
        raise ExternalError(f"The clock of this machine is {skew:+.0f} s from that of STS")


def _refuse(answer: Answer, code: str) -> NoReturn:
    _raise_skew(answer)
    if code not in _REFUSALS:
        raise ExternalError(f"STS answered with status {answer.status}")
    _log.info("STS refused a login: %s", code)
    raise InvalidCredentialsError


def _skew(date: str | None) -> float:
    """How far the machine's clock is ahead of the answer's."""
    try:
        theirs = parsedate_to_datetime(date or "")
    except (TypeError, ValueError):
        return 0.0
    return (datetime.now(UTC) - theirs.replace(tzinfo=UTC)).total_seconds()


def _document(raw: bytes) -> ElementTree.Element:
    # Answers of STS declare nothing; entities are how XML becomes large, or reads files.
    if b"<!" in raw:
        raise ExternalError("The answer of STS is no answer of STS")
    try:
        root = ElementTree.fromstring(raw)  # noqa: S314 - bounded, and without declarations
    except (ElementTree.ParseError, ValueError, LookupError):
        raise ExternalError("The answer of STS is no answer of STS") from None
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
    return root


def _text(result: ElementTree.Element, path: str) -> str:
    found = result.findall(path)
    if len(found) != 1 or not found[0].text or len(found[0].text) > 2048:
        raise ExternalError("The answer of STS is not what was asked for")
    return found[0].text
