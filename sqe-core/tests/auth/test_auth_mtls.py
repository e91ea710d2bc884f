"""Client certificates: what is read of one, and who it says somebody is."""

from __future__ import annotations

import base64
import random
from datetime import UTC, datetime

import pytest

from sqe_core.auth.certificate import read_certificate
from sqe_core.auth.mtls import MtlsConfig, MtlsFactory
from sqe_core.spi.auth import CertificateCredential, ClientInfo, LoginRequest
from sqe_core.spi.errors import InvalidCredentialsError
from sqe_core.spi.factory import PluginContext
from sqe_core.spi.identity import Identity
from sqe_core.testing.fakes import FixedClock

# Made with `openssl x509`: CN=etl é, two units, alternative names of six kinds, until 2081.
DER = base64.b64decode(
    """
MIICVTCCAfugAwIBAgIUNGnOSkTVHrYizQt5C71mxGJ8PKMwCgYIKoZIzj0EAwIwJDEQMA4GA1UECgwHRXhhbXBsZTEQMA4GA1UE
AwwHVGVzdCBDQTAgFw0yNjExMTgxOTQ0MDZaGA8yMDgxMDgyMTE5NDQwNlowVDELMAkGA1UEBhMCTkwxEDAOBgNVBAoMB0V4YW1w
bGUxEDAOBgNVBAsMB2xvYWRlcnMxEDAOBgNVBAsMB25pZ2h0bHkxDzANBgNVBAMMBmV0bCDDqTBZMBMGByqGSM49AgEGCCqGSM49
AwEHA0IABOu6IsqaScU4a4v1DXC4zprWRn57yfaucR/btIOo2S+Vgkxwosm/FysFIxjCPkTYNrl95riJTFBH00l9Fm9HXISjgdgw
gdUwcQYDVR0RBGowaIIPZXRsLmV4YW1wbGUuY29thhhzcGlmZmU6Ly9leGFtcGxlLmNvbS9ldGyBD2V0bEBleGFtcGxlLmNvbYcE
CgAAB4cQ/oAAAAAAAAAAAAAAAAAAAaQSMBAxDjAMBgNVBAMMBW90aGVyMAsGA1UdDwQEAwIHgDATBgNVHSUEDDAKBggrBgEFBQcD
AjAdBgNVHQ4EFgQUs0T/WhRc6NmTqIy54/JlXAN54AIwHwYDVR0jBBgwFoAUK24ZEdZa976kQrQ1EqORLdlbxLcwCgYIKoZIzj0E
AwIDSAAwRQIgO9QLdAHFuZr0PAEFCI9kwFTAhFf9mxZnRxIqzYh7fyYCIQD+eakVJ8YE6nXjpEXBJm8qk/C5O6GEguCc6JYCCSmU
AQ=="""
)
ENDS = datetime(2081, 8, 21, 19, 44, 6, tzinfo=UTC)
AUTHORITY = (("organizationName", "Example"), ("commonName", "Test CA"))


def log_in(credential: CertificateCredential, *, clock: FixedClock | None = None, **config: bool) -> Identity:
    provider = MtlsFactory().create("mtls", MtlsConfig(**config), PluginContext(clock=clock or FixedClock()))
    identity = provider.authenticate(LoginRequest(credential=credential, client=ClientInfo(protocol="test")))
    assert identity is not None
    return identity


def named(*subject: tuple[str, str], issuer: tuple[tuple[str, str], ...] = AUTHORITY) -> CertificateCredential:
    return CertificateCredential(der=b"", subject=subject, issuer=issuer)


def test_a_certificate_is_read() -> None:
    certificate = read_certificate(DER)

    assert certificate.subject == (
        ("countryName", "NL"),
        ("organizationName", "Example"),
        ("organizationalUnitName", "loaders"),
        ("organizationalUnitName", "nightly"),
        ("commonName", "etl é"),
    )
    assert certificate.issuer == AUTHORITY
    assert certificate.alternative_names == (
        ("DNS", "etl.example.com"),
        ("URI", "spiffe://example.com/etl"),
        ("email", "etl@example.com"),
        ("IP Address", "10.0.0.7"),
        ("IP Address", "fe80::1"),
    )
    assert certificate.not_after == ENDS


def test_what_is_no_certificate_is_a_value_error() -> None:
    numbers = random.Random(7)
    for size in range(0, len(DER) - 1, 7):
        with pytest.raises(ValueError, match=r"no X\.509 certificate"):
            read_certificate(DER[:size])
    with pytest.raises(ValueError, match=r"no X\.509 certificate"):
        read_certificate(DER + DER)
    for _ in range(5000):
        damaged = bytearray(DER)
        for _ in range(numbers.randint(1, 4)):
            damaged[numbers.randrange(len(damaged))] = numbers.randrange(256)
        try:
            read_certificate(bytes(damaged))
        except ValueError:
            pass


def test_the_certificate_says_who_it_is() -> None:
    identity = log_in(CertificateCredential(der=DER))

    assert identity.username == "etl é"
    units = "organizationalUnitName=loaders,organizationalUnitName=nightly"
    assert identity.subject == f"countryName=NL,organizationName=Example,{units},commonName=etl é"
    assert identity.issuer == "sqe:mtls:organizationName=Example,commonName=Test CA"
    assert identity.groups == {
        "loaders",
        "nightly",
        "etl.example.com",
        "spiffe://example.com/etl",
        "etl@example.com",
        "10.0.0.7",
        "fe80::1",
    }
    assert identity.personal


@pytest.mark.parametrize(
    ("config", "groups"),
    [
        ({"extract_ou": False, "extract_san": False}, set()),
        ({"extract_san": False}, {"loaders", "nightly"}),
    ],
)
def test_what_becomes_a_group_can_be_chosen(config, groups) -> None:
    assert log_in(CertificateCredential(der=DER), **config).groups == groups


def test_names_that_the_transport_read_count_first() -> None:
    credential = CertificateCredential(der=DER, subject=(("commonName", "etl"),), alternative_names=(("DNS", "x"),))
    identity = log_in(credential)
    assert (identity.username, identity.groups, identity.expires_at) == ("etl", {"x"}, ENDS)


@pytest.mark.rule("JWT-9")
def test_a_login_ends_with_its_certificate() -> None:
    assert log_in(CertificateCredential(der=DER)).expires_at == ENDS
    with pytest.raises(InvalidCredentialsError):
        log_in(CertificateCredential(der=DER), clock=FixedClock(ENDS))


@pytest.mark.rule("SESS-4")
def test_the_same_name_of_another_authority_is_somebody_else() -> None:
    mine = log_in(named(("commonName", "etl")))
    other = log_in(named(("commonName", "etl"), issuer=(("commonName", "Evil CA"),)))
    unit = log_in(named(("organizationalUnitName", "x"), ("commonName", "etl")))
    assert len({mine.key, other.key, unit.key}) == 3


@pytest.mark.rule("SESS-4")
def test_a_name_with_a_comma_is_not_two_names() -> None:
    tricky = log_in(named(("organizationName", "a,organizationalUnitName=b"), ("commonName", "etl")))
    plain = log_in(named(("organizationName", "a"), ("organizationalUnitName", "b"), ("commonName", "etl")))
    assert tricky.key != plain.key
    assert "b" not in tricky.groups


@pytest.mark.rule("AUTHN-10")
@pytest.mark.parametrize(
    "subject",
    [
        (),
        (("organizationName", "Example"),),
        (("commonName", ""),),
        (("commonName", "etl"), ("commonName", "root")),
        (("commonName", "etl"), ("CN", "root")),
        (("commonName", "root\x00.example"),),
        (("commonName", "etl\u202e"),),
        (("commonName", "e" * 2000),),
        (("commonName", "etl"), ("organizationalUnitName", "admin\n")),
    ],
)
def test_a_certificate_without_one_clean_name_is_refused(subject) -> None:
    with pytest.raises(InvalidCredentialsError):
        log_in(named(*subject))


def test_what_is_no_certificate_is_no_login() -> None:
    with pytest.raises(InvalidCredentialsError):
        log_in(CertificateCredential(der=b"garbage", subject=(("commonName", "root"),)))
