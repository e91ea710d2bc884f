"""Tokens that are malformed or hostile: none is accepted, and none does more than that.

Each entry of `HOSTILE` makes one token. Most of them have a right signature, so that nothing but the fault itself can
be what they are refused for; `VALID` shows that tokens without a fault are accepted.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import random
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from joserfc import jwe
from joserfc.jwk import OctKey
from joserfc.jws import JWSRegistry
from oidc_idp import CLIENT, KEY_ALGORITHMS, FakeIdp, bearer, encode, private_key, public_jwk, sign

from sqe_auth_oidc.bearer import BearerProvider
from sqe_auth_oidc.config import BearerConfig
from sqe_auth_oidc.keys import ALGORITHMS
from sqe_auth_oidc.provider import Surroundings
from sqe_core.spi import Identity, InvalidCredentialsError, PluginContext

HEADER: Mapping[str, Any] = {"alg": "RS256", "kid": "rs", "typ": "JWT"}
OCT_SECRET = b"a secret of 32 bytes, in the set"
STRANGER = "https://stranger.example.com/keys"

Make = Callable[["Forge"], str]


class Forge:
    """Makes tokens of one issuer, right but for what a test wants."""

    def __init__(self, idp: FakeIdp) -> None:
        self.idp = idp

    def claims(self, **changed: Any) -> dict[str, Any]:
        """Right claims but for those; None leaves one out."""
        return self.idp.access_claims(**changed)

    def with_claims(self, **changed: Any) -> str:
        """A signed token with these claims."""
        return sign(HEADER, self.claims(**changed), "rs")

    def with_header(self, kind: str = "rs", **changed: Any) -> str:
        """A signed token with this header; `...` leaves a member out."""
        header = {name: value for name, value in {**HEADER, **changed}.items() if value is not ...}
        return sign(header, self.claims(), kind, alg="RS256")

    def unsigned(self, **changed: Any) -> str:
        """A token without a signature."""
        header = {name: value for name, value in {**HEADER, **changed}.items() if value is not ...}
        return f"{encode(json.dumps(header).encode())}.{encode(json.dumps(self.claims()).encode())}."

    def with_bytes(self, header: bytes | None = None, payload: bytes | None = None) -> str:
        """A signed token whose parts are exactly these bytes."""
        first = json.dumps(HEADER).encode() if header is None else header
        second = json.dumps(self.claims()).encode() if payload is None else payload
        return self.signed(f"{encode(first)}.{encode(second)}")

    def with_text(self, old: str, new: str) -> str:
        """A signed token in whose payload a text was exchanged; how JSON is written decides."""
        text = json.dumps(self.claims(jti="j"))
        assert old in text
        return self.with_bytes(payload=text.replace(old, new, 1).encode("utf-8", "surrogatepass"))

    def signed(self, text: str, *, alg: str = "RS256", kind: str = "rs") -> str:
        """A text with its signature."""
        return f"{text}.{encode(JWSRegistry.algorithms[alg].sign(text.encode(), private_key(kind)))}"

    def parts(self) -> tuple[str, str, str]:
        """A right token, taken apart."""
        header, payload, signature = self.with_claims().split(".")
        return header, payload, signature

    def hmac(self, secret: bytes, alg: str = "HS256", **header: Any) -> str:
        """A token with a symmetric signature."""
        text = f"{encode(json.dumps({**HEADER, 'alg': alg, **header}).encode())}.{self.parts()[1]}"
        return f"{text}.{encode(hmac.new(secret, text.encode(), f'sha{alg[2:]}').digest())}"

    def es256(self, signature: bytes) -> str:
        """A token of a curve, with these bytes for its signature."""
        header = encode(json.dumps({"alg": "ES256", "kid": "es256"}).encode())
        return f"{header}.{self.parts()[1]}.{encode(signature)}"

    def encrypted(self, alg: str, key: Any, payload: str, **header: Any) -> str:
        """A JWE."""
        return jwe.encrypt_compact(
            {"alg": alg, "enc": "A256GCM", **header}, payload, key, algorithms=[alg, "A256GCM", "DEF"]
        )

    @property
    def pem(self) -> bytes:
        """The public key as text: what is presented as a secret to who confuses the two."""
        return private_key("rs").as_pem(private=False)


def now() -> int:
    return int(time.time())


def swap(first: str, second: str, part: int) -> str:
    """The first token, with one part of the second."""
    ours, theirs = first.split("."), second.split(".")
    ours[part] = theirs[part]
    return ".".join(ours)


def last_bits(part: str) -> str:
    """The same bytes in another spelling: the last character has bits that nothing stands for."""
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    assert len(part) % 4, "this part has no such bits"
    return part[:-1] + alphabet[alphabet.index(part[-1]) | 1]


def padded(token: str, part: int) -> str:
    """A token with padding at one part."""
    parts = token.split(".")
    parts[part] += "=" * (-len(parts[part]) % 4 or 4)
    return ".".join(parts)


def in_der(token: str) -> str:
    """The signature of a curve as certificates have it, and not as tokens do."""
    text, _, signature = token.rpartition(".")
    raw = base64.urlsafe_b64decode(signature + "==")
    numbers = int.from_bytes(raw[:32], "big"), int.from_bytes(raw[32:], "big")
    return f"{text}.{encode(encode_dss_signature(*numbers))}"


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


def with_odd_parts(forge: Forge) -> tuple[str, str, str]:
    """A right token in which each part has bits to spare."""
    while True:
        header, payload, signature = sign(
            {**HEADER, "x": "x" * random.randrange(9)}, forge.claims(x="x" * random.randrange(9)), "rs"
        ).split(".")
        if len(header) % 4 and len(payload) % 4 and len(signature) % 4:
            return header, payload, signature


ALG: dict[str, Make] = {
    "none without a signature": lambda f: f.unsigned(alg="none"),
    "none with a signature": lambda f: f.signed(f.unsigned(alg="none")[:-1]),
    "None": lambda f: f.unsigned(alg="None"),
    "NONE": lambda f: f.unsigned(alg="NONE"),
    "nOnE": lambda f: f.unsigned(alg="nOnE"),
    "none, and no kid": lambda f: f.unsigned(alg="none", kid=...),
    "RS256 without a signature": lambda f: ".".join((*f.parts()[:2], "")),
    "no alg": lambda f: f.with_header(alg=...),
    "alg null": lambda f: f.with_header(alg=None),
    "alg empty": lambda f: f.with_header(alg=""),
    "alg a number": lambda f: f.with_header(alg=256),
    "alg an array": lambda f: f.with_header(alg=["RS256"]),
    "alg an object": lambda f: f.with_header(alg={"RS256": 1}),
    "alg true": lambda f: f.with_header(alg=True),
    "alg in lower case": lambda f: f.with_header(alg="rs256"),
    "alg with a blank": lambda f: f.with_header(alg="RS256 "),
    "alg with a NUL": lambda f: f.with_header(alg="RS256\0"),
    "alg of a longer hash": lambda f: f.with_header(alg="RS384"),
    "alg of PSS, signature of PKCS": lambda f: f.with_header(alg="PS256"),
    "alg of encryption": lambda f: f.with_header(alg="RSA-OAEP"),
    "alg unknown": lambda f: f.with_header(alg="RS1"),
    "alg in capitals": lambda f: f.with_bytes(header=b'{"ALG":"RS256","kid":"rs"}'),
}

CONFUSION: dict[str, Make] = {
    "HS256 with the key as PEM": lambda f: f.hmac(f.pem),
    "HS256 with the key as PEM, no last line end": lambda f: f.hmac(f.pem.strip()),
    "HS384 with the key as PEM": lambda f: f.hmac(f.pem, "HS384"),
    "HS512 with the key as PEM": lambda f: f.hmac(f.pem, "HS512"),
    "HS256 with the key as DER": lambda f: f.hmac(private_key("rs").as_der(private=False)),
    "HS256 with the key as JWK": lambda f: f.hmac(json.dumps(public_jwk("rs", alg="RS256")).encode()),
    "HS256 with the modulus": lambda f: f.hmac(base64.urlsafe_b64decode(public_jwk("rs")["n"] + "==")),
    "HS256 with the modulus as text": lambda f: f.hmac(public_jwk("rs")["n"].encode()),
    "HS256 with the name of the key": lambda f: f.hmac(b"rs"),
    "HS256 without a secret": lambda f: f.hmac(b""),
    "HS256 with a NUL": lambda f: f.hmac(b"\0"),
    "HS256 with the point of a curve": lambda f: f.hmac(public_jwk("es256")["x"].encode(), kid="es256"),
    "HS256 with a symmetric key of the key set": lambda f: f.hmac(OCT_SECRET, kid="oct"),
    "HS256 with the issuer": lambda f: f.hmac(f.idp.issuer.encode()),
    "RS256 with a curve's key": lambda f: f.with_header(kid="es256"),
    "RS256 with the key of EdDSA": lambda f: f.with_header(kid="ed"),
    "ES256 with an RSA key": lambda f: sign({**HEADER, "alg": "ES256"}, f.claims(), "es256"),
    "ES256 with a key of P-384": lambda f: sign({"alg": "ES256", "kid": "es384"}, f.claims(), "es384"),
    "ES384 with a key of P-256": lambda f: sign({"alg": "ES384", "kid": "es256"}, f.claims(), "es256"),
    "ES512 with a key of P-256": lambda f: sign({"alg": "ES512", "kid": "es256"}, f.claims(), "es256"),
    "EdDSA with an RSA key": lambda f: sign({**HEADER, "alg": "EdDSA"}, f.claims(), "ed"),
    "Ed448 with a key of Ed25519": lambda f: sign(
        {"alg": "Ed448", "kid": "ed25519"}, f.claims(), "ed25519", alg="EdDSA"
    ),
    "Ed25519 with a key of Ed448": lambda f: sign({"alg": "Ed25519", "kid": "ed448"}, f.claims(), "ed448", alg="EdDSA"),
    "PS256 with a key that is for RS256": lambda f: sign({**HEADER, "alg": "PS256"}, f.claims(), "rs"),
    "RS256 with a key that is for PS256": lambda f: sign({**HEADER, "kid": "ps256"}, f.claims(), "rs"),
    "RS512 with a key that is for RS256": lambda f: sign({**HEADER, "alg": "RS512"}, f.claims(), "rs"),
    "ES256 of zeros": lambda f: f.es256(bytes(64)),
    "ES256 of r = 0": lambda f: f.es256(bytes(32) + b"\1" * 32),
    "ES256 of s = 0": lambda f: f.es256(b"\1" * 32 + bytes(32)),
    "ES256 of ones": lambda f: f.es256(b"\xff" * 64),
    "ES256 with nothing": lambda f: f.es256(b""),
    "ES256 in DER": lambda f: in_der(sign({"alg": "ES256", "kid": "es256"}, f.claims(), "es256")),
    "ES256 with a byte more": lambda f: sign({"alg": "ES256", "kid": "es256"}, f.claims(), "es256") + "AAAA",
    "ES256K": lambda f: sign({"alg": "ES256K", "kid": "k1"}, f.claims(), "es256", alg="ES256"),
}

KEYS: dict[str, Make] = {
    "a stranger's key": lambda f: f.with_header("other-rs"),
    "jwk": lambda f: f.with_header("other-rs", jwk=public_jwk("other-rs")),
    "jwk, no kid": lambda f: f.with_header("other-rs", kid=..., jwk=public_jwk("other-rs")),
    "jwk with the name of ours": lambda f: f.with_header("other-rs", jwk={**public_jwk("other-rs"), "kid": "rs"}),
    "jwk with a name of its own": lambda f: f.with_header("other-rs", kid="other-rs", jwk=public_jwk("other-rs")),
    "jwk, symmetric": lambda f: f.hmac(b"mine" * 8, jwk={"kty": "oct", "k": encode(b"mine" * 8)}),
    "jku": lambda f: f.with_header("other-rs", jku=STRANGER),
    "jku, unknown kid": lambda f: f.with_header("other-rs", kid="other-rs", jku=STRANGER),
    "jku on the issuer's host": lambda f: f.with_header("other-rs", kid="x", jku=f"{f.idp.url}/redirect?to={STRANGER}"),
    "jku with the issuer before the @": lambda f: f.with_header(
        "other-rs", kid="x", jku=f.idp.url + "@stranger.example.com"
    ),
    "jku of a file": lambda f: f.with_header("other-rs", kid="x", jku="file:///dev/null"),
    "x5u": lambda f: f.with_header("other-rs", x5u=STRANGER),
    "x5c": lambda f: f.with_header(
        "other-rs", x5c=[base64.b64encode(private_key("other-rs").as_der(private=False)).decode()]
    ),
    "x5c, no kid": lambda f: f.with_header("other-rs", kid=..., x5c=["MIIB"]),
    "x5t": lambda f: f.with_header(kid=..., x5t=encode(hashlib.sha1(f.pem).digest())),
    "x5t#S256": lambda f: f.with_header(kid=..., **{"x5t#S256": encode(hashlib.sha256(f.pem).digest())}),
    "no kid": lambda f: f.with_header(kid=...),
    "kid null": lambda f: f.with_header(kid=None),
    "kid empty": lambda f: f.with_header(kid=""),
    "kid a number": lambda f: f.with_header(kid=0),
    "kid true": lambda f: f.with_header(kid=True),
    "kid an array": lambda f: f.with_header(kid=["rs"]),
    "kid an object": lambda f: f.with_header(kid={"rs": "rs"}),
    "kid unknown": lambda f: f.with_header(kid="rs2"),
    "kid in capitals": lambda f: f.with_header(kid="RS"),
    "kid with a blank": lambda f: f.with_header(kid="rs "),
    "kid with a NUL": lambda f: f.with_header(kid="rs\0"),
    "kid with a line end": lambda f: f.with_header(kid="rs\n"),
    "kid of a file": lambda f: f.hmac(b"", kid="../../../../../../dev/null"),
    "kid of SQL": lambda f: f.with_header(kid="x' UNION SELECT 'rs"),
    "kid of a shell": lambda f: f.with_header(kid="rs|id"),
    "kid of an address": lambda f: f.with_header("other-rs", kid=STRANGER),
    "kid with a look-alike": lambda f: f.with_header(kid="r\u0455"),
    "kid decomposed": lambda f: f.with_header(kid="r\u0301s"),
    "kid very long": lambda f: f.with_header(kid="r" * 3000),
    "kid of Python": lambda f: f.with_header(kid="__class__"),
    "kid of a key for encryption": lambda f: f.with_header(kid="enc"),
    "kid of a key that only signs": lambda f: f.with_header(kid="ops"),
    "kid of two keys": lambda f: f.with_header(kid="twice"),
    "kid of two keys, the other one": lambda f: f.with_header("other-rs", kid="twice"),
    "kid of a key that is too small": lambda f: f.with_header("small", kid="small"),
    "kid of a key for HS256": lambda f: f.with_header(kid="for-hs"),
    "kid of a key for none": lambda f: f.with_header(kid="for-none"),
    "kid of a key without a kind": lambda f: f.with_header(kid="kindless"),
}

EXTENSIONS: dict[str, Make] = {
    "crit": lambda f: f.with_header(crit=["exp"], exp=1),
    "crit empty": lambda f: f.with_header(crit=[]),
    "crit null": lambda f: f.with_header(crit=None),
    "crit a text": lambda f: f.with_header(crit="b64"),
    "crit of what is there anyway": lambda f: f.with_header(crit=["alg"]),
    "crit unknown": lambda f: f.with_header(crit=["x-unknown"], **{"x-unknown": 1}),
    "b64 false": lambda f: f.with_header(b64=False, crit=["b64"]),
    "b64 false, not critical": lambda f: f.with_header(b64=False),
    "b64 true": lambda f: f.with_header(b64=True, crit=["b64"]),
    "an unencoded payload": lambda f: f.signed(
        f.unsigned(b64=False, crit=["b64"]).split(".")[0] + "." + json.dumps(f.claims())
    ),
    "a detached payload": lambda f: ".".join((f.parts()[0], "", f.parts()[2])),
    "zip": lambda f: f.with_header(zip="DEF"),
    "enc": lambda f: f.with_header(enc="A256GCM"),
    "cty": lambda f: f.with_header(cty="JWT"),
    "typ of a logout": lambda f: f.with_header(typ="logout+jwt"),
    "typ of a proof of possession": lambda f: f.with_header(typ="dpop+jwt"),
    "typ of an event": lambda f: f.with_header(typ="secevent+jwt"),
    "typ of a request": lambda f: f.with_header(typ="oauth-authz-req+jwt"),
    "typ of a client": lambda f: f.with_header(typ="client-authentication+jwt"),
    "typ of an introspection": lambda f: f.with_header(typ="token-introspection+jwt"),
    "typ of an entity": lambda f: f.with_header(typ="entity-statement+jwt"),
    "typ of JOSE": lambda f: f.with_header(typ="JOSE+JSON"),
    "typ a number": lambda f: f.with_header(typ=1),
    "typ null": lambda f: f.with_header(typ=None),
    "typ an array": lambda f: f.with_header(typ=["JWT"]),
    "typ empty": lambda f: f.with_header(typ=""),
}

ENCODING: dict[str, Make] = {
    "padding at the header": lambda f: padded(".".join(with_odd_parts(f)), 0),
    "padding at the payload": lambda f: padded(".".join(with_odd_parts(f)), 1),
    "padding at the signature": lambda f: padded(f.with_claims(), 2),
    "spare bits of the header": lambda f: f.signed(".".join((last_bits(with_odd_parts(f)[0]), f.parts()[1]))),
    "spare bits of the payload": lambda f: f.signed(".".join((f.parts()[0], last_bits(with_odd_parts(f)[1])))),
    "spare bits of the signature": lambda f: ".".join((*(p := f.parts())[:2], last_bits(p[2]))),
    "one character too many": lambda f: f.with_claims() + "A",
    "the alphabet of base64": lambda f: (
        f.with_bytes(header=b'{"alg":"RS256","kid":"rs","x":"\xc3\xbf\xc3\xbf"}').replace("_", "/").replace("-", "+")
        + "/"
    ),
    "a blank before": lambda f: " " + f.with_claims(),
    "a blank behind": lambda f: f.with_claims() + " ",
    "a line end behind": lambda f: f.with_claims() + "\n",
    "a line end inside": lambda f: f.with_claims().replace(".", ".\n", 1),
    "a tab inside": lambda f: f.with_claims().replace(".", "\t.", 1),
    "a NUL behind": lambda f: f.with_claims() + "\0",
    "a NUL inside": lambda f: f.with_claims().replace(".", "\0.", 1),
    "a look-alike of the dot": lambda f: f.with_claims().replace(".", "\u2024", 1),
    "full-width letters": lambda f: f.with_claims().replace("A", "\uff21", 1),
    "percent signs": lambda f: f.with_claims().replace(".", "%2E"),
    "quoted": lambda f: f'"{f.with_claims()}"',
    "Bearer twice": lambda f: "Bearer " + f.with_claims(),
    "two tokens": lambda f: f"{f.with_claims()},{f.with_claims()}",
    "empty": lambda f: "",
    "dots": lambda f: "..",
    "one part": lambda f: f.parts()[0],
    "two parts": lambda f: ".".join(f.parts()[:2]),
    "four parts": lambda f: f.with_claims() + ".AAAA",
    "an empty first part": lambda f: "." + f.with_claims(),
    "no header": lambda f: ".".join(("", *f.parts()[1:])),
    "no payload": lambda f: f.signed(f.parts()[0] + "."),
    "a half surrogate": lambda f: f.with_claims() + "\udc80",
    "flattened JSON": lambda f: json.dumps(dict(zip(("protected", "payload", "signature"), f.parts(), strict=True))),
    "general JSON": lambda f: json.dumps(
        {"payload": f.parts()[1], "signatures": [{"protected": f.parts()[0], "signature": f.parts()[2]}]}
    ),
    "header in UTF-16": lambda f: f.with_bytes(header=json.dumps(HEADER).encode("utf-16")),
    "header in UTF-32": lambda f: f.with_bytes(header=json.dumps(HEADER).encode("utf-32-be")),
    "header with a mark of bytes": lambda f: f.with_bytes(header=b"\xef\xbb\xbf" + json.dumps(HEADER).encode()),
    "payload with a mark of bytes": lambda f: f.with_bytes(payload=b"\xef\xbb\xbf" + json.dumps(f.claims()).encode()),
    "payload in UTF-16": lambda f: f.with_bytes(payload=json.dumps(f.claims()).encode("utf-16")),
    "payload in Latin 1": lambda f: f.with_bytes(
        payload=json.dumps(f.claims(x="é"), ensure_ascii=False).encode("latin-1")
    ),
    "payload with an overlong slash": lambda f: f.with_bytes(
        payload=json.dumps(f.claims(x="@@")).encode().replace(b"@@", b"\xc0\xaf")
    ),
    "a surrogate in the payload": lambda f: f.with_text("engineering", "\ud800"),
    "an escaped surrogate": lambda f: f.with_text("engineering", "\\ud800"),
    "header compressed": lambda f: f.with_bytes(header=zlib.compress(json.dumps(HEADER).encode())),
}

JSON: dict[str, Make] = {
    "header an array": lambda f: f.with_bytes(header=b'["alg","RS256"]'),
    "header a text": lambda f: f.with_bytes(header=b'"RS256"'),
    "header null": lambda f: f.with_bytes(header=b"null"),
    "header empty": lambda f: f.with_bytes(header=b"{}"),
    "header with a comment": lambda f: f.with_bytes(header=b'{"alg":"RS256",/**/"kid":"rs"}'),
    "header with a comma more": lambda f: f.with_bytes(header=b'{"alg":"RS256","kid":"rs",}'),
    "header with single quotes": lambda f: f.with_bytes(header=b"{'alg':'RS256','kid':'rs'}"),
    "header with text behind": lambda f: f.with_bytes(header=b'{"alg":"RS256","kid":"rs"}x'),
    "two headers": lambda f: f.with_bytes(header=b'{"alg":"RS256","kid":"rs"}{"alg":"none"}'),
    "alg twice": lambda f: f.with_bytes(header=b'{"alg":"none","alg":"RS256","kid":"rs"}'),
    "alg twice, once escaped": lambda f: f.with_bytes(header=b'{"alg":"RS256","\\u0061lg":"RS256","kid":"rs"}'),
    "kid twice": lambda f: f.with_bytes(header=b'{"alg":"RS256","kid":"x","kid":"rs"}'),
    "a member twice, deep in the header": lambda f: f.with_bytes(
        header=b'{"alg":"RS256","kid":"rs","x":{"a":1,"a":2}}'
    ),
    "payload an array": lambda f: f.with_bytes(payload=b"[1]"),
    "payload a text": lambda f: f.with_bytes(payload=b'"alice"'),
    "payload a number": lambda f: f.with_bytes(payload=b"1"),
    "payload null": lambda f: f.with_bytes(payload=b"null"),
    "payload empty": lambda f: f.with_bytes(payload=b"{}"),
    "payload of bytes": lambda f: f.with_bytes(payload=bytes(range(256))),
    "payload with text behind": lambda f: f.with_bytes(payload=json.dumps(f.claims()).encode() + b"x"),
    "two payloads": lambda f: f.with_bytes(payload=json.dumps(f.claims()).encode() * 2),
    "sub twice": lambda f: f.with_text('"sub": ', '"sub": "bob", "sub": '),
    "exp twice": lambda f: f.with_text('"exp": ', '"exp": 1, "exp": '),
    "aud twice": lambda f: f.with_text('"aud": ', '"aud": "x", "aud": '),
    "iss twice": lambda f: f.with_text('"iss": ', '"iss": "x", "iss": '),
    "roles twice": lambda f: f.with_text('"roles": ', '"roles": [], "roles": '),
    "sub twice, once escaped": lambda f: f.with_text('"sub": ', '"\\u0073ub": "bob", "sub": '),
    "exp not a number": lambda f: f.with_claims(exp=float("nan")),
    "exp infinite": lambda f: f.with_claims(exp=float("inf")),
    "exp of 5,000 digits": lambda f: f.with_text('"exp": ', '"x": ' + "9" * 5000 + ', "exp": '),
    "exp that overflows": lambda f: f.with_text('"exp": ', '"exp": 1e999, "x": '),
    "a line end in a text": lambda f: f.with_text("engineering", "engi\nneering"),
}

SIZE: dict[str, Make] = {
    "a token of 17 KiB": lambda f: f.with_claims(x="x" * 12_700),
    "a token of 1 MiB": lambda f: f.with_claims(x="x" * 800_000),
    "a signature of 20 KiB": lambda f: f.with_claims() + "A" * 20_000,
    "a header of 5 KiB": lambda f: f.with_header(x="x" * 5000),
    "a header nested deeply": lambda f: f.with_header(x=nested(20)),
    "a payload nested deeply": lambda f: f.with_claims(x=nested(40)),
    "a payload nested very deeply": lambda f: f.with_bytes(payload=b'{"x":' + b"[" * 5000 + b"]" * 5000 + b"}"),
    "objects nested very deeply": lambda f: f.with_bytes(payload=b'{"x":' * 1500 + b"1" + b"}" * 1500),
    "brackets without an end": lambda f: f.with_bytes(payload=b"[" * 11_000),
    "too many roles": lambda f: f.with_claims(realm_access={"roles": ["r"] * 5001}, jti=None, email=None),
}

TIME: dict[str, Make] = {
    "no exp": lambda f: f.with_claims(exp=None),
    "exp null": lambda f: f.with_text('"exp": ', '"exp": null, "x": '),
    "exp a text": lambda f: f.with_claims(exp=str(now() + 300)),
    "exp true": lambda f: f.with_claims(exp=True),
    "exp an array": lambda f: f.with_claims(exp=[now() + 300]),
    "exp an object": lambda f: f.with_claims(exp={"at": now() + 300}),
    "exp zero": lambda f: f.with_claims(exp=0),
    "exp negative": lambda f: f.with_claims(exp=-1),
    "exp negative and huge": lambda f: f.with_claims(exp=-(10**30)),
    "exp long ago": lambda f: f.with_claims(exp=1),
    "exp before the leeway": lambda f: f.with_claims(exp=now() - 32),
    "exp in milliseconds": lambda f: f.with_claims(exp=(now() + 300) * 1000),
    "exp beyond the calendar": lambda f: f.with_claims(exp=10**15),
    "exp of 2**63": lambda f: f.with_claims(exp=2**63),
    "exp as a date": lambda f: f.with_claims(exp="2099-01-01T00:00:00Z"),
    "exp in capitals": lambda f: f.with_text('"exp": ', '"EXP": '),
    "a life of two days": lambda f: f.with_claims(exp=now() + 2 * 86_400),
    "a life of two days, no iat": lambda f: f.with_claims(exp=now() + 2 * 86_400, iat=None),
    "a life of two days, nbf now": lambda f: f.with_claims(exp=now() + 2 * 86_400, iat=None, nbf=now()),
    "nbf to come": lambda f: f.with_claims(nbf=now() + 120),
    "nbf a text": lambda f: f.with_claims(nbf="0"),
    "nbf true": lambda f: f.with_claims(nbf=True),
    "nbf null": lambda f: f.with_text('"exp": ', '"nbf": null, "exp": '),
    "nbf negative": lambda f: f.with_claims(nbf=-5),
    "nbf infinite": lambda f: f.with_text('"exp": ', '"nbf": -1e999, "exp": '),
    "iat to come": lambda f: f.with_claims(iat=now() + 120),
    "iat a text": lambda f: f.with_claims(iat="now"),
    "iat an array": lambda f: f.with_claims(iat=[1]),
    "iat false": lambda f: f.with_claims(iat=False),
}

PARTIES: dict[str, Make] = {
    "no iss": lambda f: f.with_claims(iss=None),
    "iss null": lambda f: f.with_text('"iss": ', '"iss": null, "x": '),
    "iss empty": lambda f: f.with_claims(iss=""),
    "iss of another": lambda f: f.with_claims(iss="https://stranger.example.com"),
    "iss with a slash more": lambda f: f.with_claims(iss=f.idp.issuer + "/"),
    "iss in capitals": lambda f: f.with_claims(iss=f.idp.issuer.upper()),
    "iss with a blank": lambda f: f.with_claims(iss=f.idp.issuer + " "),
    "iss of another realm": lambda f: f.with_claims(iss=f.idp.issuer.replace("iceberg", "master")),
    "iss that goes up": lambda f: f.with_claims(iss=f.idp.issuer + "/../iceberg"),
    "iss that begins alike": lambda f: f.with_claims(iss=f.idp.issuer + ".example.com"),
    "iss an array": lambda f: f.with_claims(iss=[f.idp.issuer]),
    "iss an object": lambda f: f.with_claims(iss={"iss": f.idp.issuer}),
    "iss a number": lambda f: f.with_claims(iss=1),
    "iss by another name of the host": lambda f: f.with_claims(iss=f.idp.issuer.replace("127.0.0.1", "localhost")),
    "no aud": lambda f: f.with_claims(aud=None),
    "aud null": lambda f: f.with_text('"aud": ', '"aud": null, "x": '),
    "aud empty": lambda f: f.with_claims(aud=""),
    "aud an empty array": lambda f: f.with_claims(aud=[]),
    "aud of another": lambda f: f.with_claims(aud="account"),
    "aud of others": lambda f: f.with_claims(aud=["account", "broker"]),
    "aud longer": lambda f: f.with_claims(aud=CLIENT + "-2"),
    "aud shorter": lambda f: f.with_claims(aud=CLIENT[:-1]),
    "aud in capitals": lambda f: f.with_claims(aud=CLIENT.upper()),
    "aud with a blank": lambda f: f.with_claims(aud=CLIENT + " "),
    "aud of several in one text": lambda f: f.with_claims(aud=f"account {CLIENT}"),
    "aud a number": lambda f: f.with_claims(aud=1),
    "aud true": lambda f: f.with_claims(aud=True),
    "aud an object": lambda f: f.with_claims(aud={CLIENT: 1}),
    "aud with a number": lambda f: f.with_claims(aud=[CLIENT, 1]),
    "aud with null": lambda f: f.with_claims(aud=[CLIENT, None]),
    "aud nested": lambda f: f.with_claims(aud=[[CLIENT]]),
    "aud a pattern": lambda f: f.with_claims(aud="*"),
    "azp of another": lambda f: f.with_claims(azp="other"),
    "azp of another in capitals": lambda f: f.with_claims(azp=CLIENT.upper()),
    "no azp": lambda f: f.with_claims(azp=None),
    "azp null": lambda f: f.with_text('"azp": ', '"azp": null, "x": '),
    "azp an array": lambda f: f.with_claims(azp=[CLIENT]),
    "azp of ours, client_id of another": lambda f: f.with_claims(client_id="other"),
}

USE: dict[str, Make] = {
    "an ID token of Keycloak": lambda f: f.with_claims(typ="ID"),
    "an ID token with at_hash": lambda f: f.with_claims(typ=None, at_hash="x"),
    "an ID token with c_hash": lambda f: f.with_claims(typ=None, c_hash="x"),
    "an ID token of Cognito": lambda f: f.with_claims(typ=None, token_use="id"),
    "a refresh token": lambda f: f.with_claims(typ="Refresh"),
    "an offline token": lambda f: f.with_claims(typ="Offline"),
    "a refresh token by token_use": lambda f: f.with_claims(token_use="refresh"),
    "a logout token": lambda f: f.with_claims(typ="Logout"),
    "a logout token by its events": lambda f: f.with_claims(
        events={"http://schemas.openid.net/event/backchannel-logout": {}}
    ),
    "an action token": lambda f: f.with_claims(typ="execute-actions"),
    "a registration token": lambda f: f.with_claims(typ="RegistrationAccessToken"),
    "typ a number in the claims": lambda f: f.with_claims(typ=1),
    "token_use an array": lambda f: f.with_claims(token_use=["access"]),
    "bound to a key": lambda f: f.with_claims(cnf={"jkt": "x"}),
    "bound to a certificate": lambda f: f.with_claims(cnf={"x5t#S256": "x"}),
}

PERSON: dict[str, Make] = {
    "no sub": lambda f: f.with_claims(sub=None),
    "sub empty": lambda f: f.with_claims(sub=""),
    "sub a number": lambda f: f.with_claims(sub=17),
    "sub an array": lambda f: f.with_claims(sub=["alice"]),
    "sub with a line end": lambda f: f.with_claims(sub="alice\n"),
    "sub with a NUL": lambda f: f.with_claims(sub="alice\0"),
    "sub that turns its direction": lambda f: f.with_claims(sub="\u202eecila"),
    "sub very long": lambda f: f.with_claims(sub="a" * 1025),
    "no user name": lambda f: f.with_claims(preferred_username=None),
    "a user name empty": lambda f: f.with_claims(preferred_username=""),
    "a user name of a number": lambda f: f.with_claims(preferred_username=1),
    "a user name with an escape": lambda f: f.with_claims(preferred_username="al\x1b[2Jice"),
    "a user name with a hidden character": lambda f: f.with_claims(preferred_username="al\u200bice"),
    "a user name of an object": lambda f: f.with_claims(preferred_username={"name": "alice"}),
    "roles a number": lambda f: f.with_claims(realm_access={"roles": 1}),
    "roles an object": lambda f: f.with_claims(realm_access={"roles": {"admin": True}}),
    "roles as one text": lambda f: f.with_claims(realm_access={"roles": "analyst"}),
    "roles with a number": lambda f: f.with_claims(realm_access={"roles": ["analyst", 1]}),
    "roles with an array": lambda f: f.with_claims(realm_access={"roles": [["admin"]]}),
    "roles with an empty one": lambda f: f.with_claims(realm_access={"roles": ["analyst", ""]}),
    "roles with a line end": lambda f: f.with_claims(realm_access={"roles": ["analyst\nadmin"]}),
    "email a number": lambda f: f.with_claims(email=1),
}

MIXED: dict[str, Make] = {
    "another's payload": lambda f: swap(f.with_claims(), f.with_claims(preferred_username="root"), 1),
    "another's header": lambda f: swap(f.with_claims(), sign({**HEADER, "x": 1}, f.claims(), "rs"), 0),
    "another's signature": lambda f: swap(f.with_claims(), f.with_claims(preferred_username="root"), 2),
    "half a signature": lambda f: f.with_claims()[:-100],
    "a signature twice": lambda f: f.with_claims() + f.parts()[2],
    "a signature of zeros": lambda f: ".".join((*f.parts()[:2], encode(bytes(256)))),
    "a signature of one": lambda f: ".".join((*f.parts()[:2], encode(bytes(255) + b"\1"))),
    "a signature of ones": lambda f: ".".join((*f.parts()[:2], encode(b"\xff" * 256))),
    "header and payload exchanged": lambda f: ".".join(f.parts()[i] for i in (1, 0, 2)),
    "a JWE with a secret of its own": lambda f: f.encrypted(
        "dir", OctKey.import_key(b"k" * 32), json.dumps(f.claims())
    ),
    "a JWE for our key": lambda f: f.encrypted("RSA-OAEP", private_key("rs"), f.with_claims(), kid="rs", cty="JWT"),
    "a JWE that is compressed": lambda f: f.encrypted(
        "dir", OctKey.import_key(b"k" * 32), "x" * 90_000, zip="DEF", kid="rs"
    ),
    "a JWE with an alg of signatures": lambda f: swap(
        f.encrypted("dir", OctKey.import_key(b"k" * 32), "x"), f.with_claims() + ".a.b", 0
    ),
    "a token inside of a token": lambda f: f.with_bytes(payload=f.with_claims().encode()),
    "a PASETO": lambda f: "v4.public." + f.parts()[1],
    "a macaroon": lambda f: "MDAxY2xvY2F0aW9uIGh0dHA6Ly9teWJhbmsv",
    "an SQE key": lambda f: "sqe_" + "a" * 43,
}

GROUPS = {
    "alg": ALG,
    "confusion": CONFUSION,
    "keys": KEYS,
    "extensions": EXTENSIONS,
    "encoding": ENCODING,
    "json": JSON,
    "size": SIZE,
    "time": TIME,
    "parties": PARTIES,
    "use": USE,
    "person": PERSON,
    "mixed": MIXED,
}
HOSTILE = {f"{group}: {name}": make for group, entries in GROUPS.items() for name, make in entries.items()}

VALID: dict[str, Make] = {
    "as Keycloak makes them": lambda f: f.with_claims(),
    "as RFC 9068 has them": lambda f: f.with_header(typ="at+jwt"),
    "the long name of the type": lambda f: f.with_header(typ="application/at+jwt"),
    "a type in lower case": lambda f: f.with_header(typ="jwt"),
    "no type": lambda f: f.with_header(typ=...),
    "a member of the header that nobody knows": lambda f: f.with_header(x={"y": [1]}),
    "the address of a stranger's keys, and our signature": lambda f: f.with_header(jku=STRANGER, x5u=STRANGER),
    "several audiences": lambda f: f.with_claims(aud=["account", CLIENT]),
    "an exp with a fraction": lambda f: f.with_claims(exp=time.time() + 300.5),
    "an exp within the leeway": lambda f: f.with_claims(exp=now() - 20),
    "an nbf within the leeway": lambda f: f.with_claims(nbf=now() + 20),
    "an iat within the leeway": lambda f: f.with_claims(iat=now() + 20),
    "no iat": lambda f: f.with_claims(iat=None),
    "a life of a day": lambda f: f.with_claims(exp=now() + 86_000),
    "no typ in the claims": lambda f: f.with_claims(typ=None),
    "token_use": lambda f: f.with_claims(typ=None, token_use="access"),
    "claims in other scripts": lambda f: f.with_claims(name="Ålice Ünal 爱丽丝 🧊"),
    "escapes in the claims": lambda f: f.with_text("engineering", "\\u0065ngineering"),
    "blanks in the claims": lambda f: f.with_text('"exp": ', '\n\t "exp"  :  '),
    "client_id beside azp": lambda f: f.with_claims(client_id=CLIENT),
    "nearly 16 KiB": lambda f: f.with_claims(x="x" * 11_000),
}


@pytest.fixture(scope="module")
def forge() -> Iterator[Forge]:
    idp = FakeIdp()
    idp.keys = [
        *(public_jwk(kid, alg=alg) for kid, alg in KEY_ALGORITHMS.items()),
        # What a key set may hold besides, and what must never check a signature.
        {**public_jwk("rs"), "kid": "enc", "use": "enc"},
        {**public_jwk("rs"), "kid": "ops", "key_ops": ["sign"]},
        {**public_jwk("rs"), "kid": "twice"},
        {**public_jwk("other-rs"), "kid": "twice"},
        public_jwk("small", alg="RS256"),
        {**public_jwk("rs"), "kid": "for-hs", "alg": "HS256"},
        {**public_jwk("rs"), "kid": "for-none", "alg": "none"},
        {"kid": "kindless", "use": "sig", "n": public_jwk("rs")["n"], "e": "AQAB"},
        {"kty": "oct", "kid": "oct", "k": encode(OCT_SECRET), "use": "sig", "alg": "HS256"},
        {**public_jwk("es256"), "kid": "k1", "crv": "secp256k1", "alg": "ES256K"},
        {},
    ]
    yield Forge(idp)
    idp.stop()


def provider(forge: Forge, **keys: Any) -> BearerProvider:
    config = BearerConfig(
        **{"issuer": forge.idp.issuer, "audience": (CLIENT,), "authorized_parties": (CLIENT,), **keys}
    )
    return BearerProvider(config, Surroundings(name="idp", context=PluginContext()))


@pytest.fixture(scope="module")
def lenient(forge: Forge) -> Iterator[BearerProvider]:
    """Allows every algorithm there is: nothing is refused only because it is not on the list."""
    made = provider(forge, algorithms=ALGORITHMS)
    yield made
    made.close()


@pytest.fixture(scope="module")
def usual(forge: Forge) -> Iterator[BearerProvider]:
    """Allows what is allowed by default."""
    made = provider(forge)
    yield made
    made.close()


def judge(provider: BearerProvider, token: str) -> Identity | None:
    """Whom a provider takes a token for; None when it is refused. Anything else that it raises fails the test."""
    try:
        return provider.authenticate(bearer(token))
    except InvalidCredentialsError:
        return None


@pytest.mark.rule("JWT-1", "JWT-2", "JWT-3", "JWT-4", "JWT-5", "JWT-6", "JWT-7", "AUTHN-10")
@pytest.mark.parametrize("name", HOSTILE)
def test_no_hostile_token_is_accepted(forge: Forge, lenient: BearerProvider, usual: BearerProvider, name: str) -> None:
    token = HOSTILE[name](forge)

    assert judge(lenient, token) is None
    assert judge(usual, token) is None


def test_there_are_enough_of_them() -> None:
    assert len(HOSTILE) >= 150


@pytest.mark.parametrize("name", VALID)
def test_right_tokens_are_accepted(forge: Forge, usual: BearerProvider, name: str) -> None:
    identity = judge(usual, VALID[name](forge))

    assert identity is not None
    assert (identity.issuer, identity.username) == (forge.idp.issuer, "alice")


@pytest.mark.rule("JWT-1")
@pytest.mark.parametrize(("kid", "algorithm"), KEY_ALGORITHMS.items())
def test_every_algorithm_is_accepted_where_it_is_allowed(forge: Forge, kid: str, algorithm: str) -> None:
    token = sign({"alg": algorithm, "kid": kid}, forge.claims(), kid)
    allowing = provider(forge, algorithms=(algorithm,))
    refusing = provider(forge, algorithms=tuple(name for name in ALGORITHMS if name != algorithm))

    assert judge(allowing, token) is not None
    assert judge(refusing, token) is None
    allowing.close()
    refusing.close()


def test_each_algorithm_has_a_test() -> None:
    assert sorted(KEY_ALGORITHMS.values()) == sorted(ALGORITHMS)


@pytest.mark.rule("JWT-2", "JWT-8")
def test_hostile_tokens_make_no_requests(forge: Forge) -> None:
    """Neither to addresses that they name, nor more often than now and then to the issuer."""
    made = provider(forge)
    judge(made, forge.with_claims())
    before = len(forge.idp.requests)

    for make in (*KEYS.values(), *PARTIES.values()):
        judge(made, make(forge))

    assert len(forge.idp.requests) - before <= 1
    made.close()


def test_no_changed_character_is_overlooked(forge: Forge, usual: BearerProvider) -> None:
    dice = random.Random(6)
    token = forge.with_claims()
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.= \0"
    changed: set[str] = set()
    for _ in range(400):
        place = dice.randrange(len(token))
        letter = dice.choice(alphabet)
        changed |= {token[:place] + letter + token[place + 1 :], token[:place] + token[place + 1 :], token[:place]}

    assert not [text for text in changed - {token} if judge(usual, text) is not None]


@pytest.mark.rule("AUTHN-8")
def test_what_is_logged_holds_nothing_of_a_token(
    forge: Forge, usual: BearerProvider, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    for name in ("kid of SQL", "kid with a line end", "kid very long"):
        judge(usual, KEYS[name](forge))
    for make in (*PERSON.values(), *USE.values(), *PARTIES.values()):
        judge(usual, make(forge))

    logged = "".join(record.getMessage() for record in caplog.records)
    assert logged
    assert not [word for word in ("UNION", "\n", "\x1b", "\u202e", "stranger", "eyJ", "rrrrr") if word in logged]
