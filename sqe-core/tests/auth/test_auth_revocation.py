"""Client certificates that were withdrawn: at the login, and for sessions that live."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from sqe_core.auth.mtls import MtlsConfig, MtlsFactory, MtlsProvider
from sqe_core.spi.auth import CertificateCredential, ClientInfo, LoginRequest
from sqe_core.spi.errors import ExternalError, InvalidCredentialsError, StartupError
from sqe_core.spi.factory import PluginContext
from sqe_core.spi.identity import Identity
from sqe_core.testing.fakes import FixedClock

NOW = datetime(2026, 11, 1, tzinfo=UTC)


class Authority:
    """Makes certificates and revocation lists."""

    def __init__(self, name: str = "Test CA") -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self.certificate = self._signed(self.name, self.key.public_key(), 1)

    def _signed(self, subject: x509.Name, key: ec.EllipticCurvePublicKey, serial: int, *names: x509.GeneralName):
        builder = x509.CertificateBuilder().subject_name(subject).issuer_name(self.name).public_key(key)
        builder = builder.serial_number(serial).not_valid_before(NOW).not_valid_after(NOW + timedelta(days=900))
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        return builder.sign(self.key, hashes.SHA256())

    def client(self, name: str, serial: int, *names: x509.GeneralName) -> CertificateCredential:
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        made = self._signed(subject, self.key.public_key(), serial, *names)
        return CertificateCredential(der=made.public_bytes(serialization.Encoding.DER))

    def revoked(
        self, *serials: int, begins: datetime = NOW, days: int = 7, key: object = None, critical: bool = False
    ) -> x509.CertificateRevocationList:
        builder = x509.CertificateRevocationListBuilder().issuer_name(self.name)
        builder = builder.last_update(begins).next_update(begins + timedelta(days=days))
        if critical:
            builder = builder.add_extension(x509.DeltaCRLIndicator(1), critical=True)
        for serial in serials:
            entry = x509.RevokedCertificateBuilder().serial_number(serial).revocation_date(NOW).build()
            builder = builder.add_revoked_certificate(entry)
        return builder.sign(key or self.key, hashes.SHA256())  # type: ignore[arg-type]


def pem(*parts: x509.Certificate | x509.CertificateRevocationList) -> bytes:
    return b"".join(part.public_bytes(serialization.Encoding.PEM) for part in parts)


def write(path: Path, content: bytes) -> None:
    """As those do who publish lists: whoever reads sees the old file or the new one."""
    new = path.with_suffix(".new")
    new.write_bytes(content)
    new.replace(path)


Make = Callable[..., MtlsProvider]


@pytest.fixture
def authority() -> Authority:
    return Authority()


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock(NOW + timedelta(hours=1))


@pytest.fixture
def make(authority: Authority, clock: FixedClock, tmp_path: Path) -> Make:
    def make_provider(content: bytes, *authorities: x509.Certificate) -> MtlsProvider:
        (tmp_path / "ca.pem").write_bytes(pem(*(authorities or (authority.certificate,))))
        (tmp_path / "revoked.crl").write_bytes(content)
        config = MtlsConfig(crl_files=(tmp_path / "revoked.crl",), client_ca_file=tmp_path / "ca.pem")
        return MtlsFactory().create("mtls", config, PluginContext(clock=clock))

    return make_provider


def log_in(provider: MtlsProvider, credential: CertificateCredential) -> Identity:
    identity = provider.authenticate(LoginRequest(credential=credential, client=ClientInfo(protocol="test")))
    assert identity is not None
    return identity


@pytest.mark.rule("JWT-9")
def test_a_withdrawn_certificate_opens_nothing_and_ends_what_it_opened(
    make: Make, authority: Authority, tmp_path: Path
) -> None:
    provider = make(pem(authority.revoked(2)))
    with pytest.raises(InvalidCredentialsError):
        log_in(provider, authority.client("bob", 2))
    alice = log_in(provider, authority.client("alice", 3))
    again = log_in(provider, authority.client("alice", 4))
    assert not provider.is_revoked(alice)

    write(tmp_path / "revoked.crl", pem(authority.revoked(2, 3)))
    assert provider.is_revoked(alice)
    assert not provider.is_revoked(again), "her other certificate still counts"
    with pytest.raises(InvalidCredentialsError):
        log_in(provider, authority.client("alice", 3))


@pytest.mark.rule("JWT-9")
def test_a_list_that_is_over_lets_nobody_in(make: Make, authority: Authority, clock: FixedClock) -> None:
    provider = make(pem(authority.revoked(2, days=1)))
    alice = log_in(provider, authority.client("alice", 3))
    provider.check()

    clock.advance(24 * 3600)
    for ask in (lambda: log_in(provider, authority.client("alice", 3)), lambda: provider.is_revoked(alice)):
        with pytest.raises(ExternalError):
            ask()
    with pytest.raises(StartupError, match="fetch the next one"):
        provider.check()


def test_a_list_of_tomorrow_does_not_count_yet(make: Make, authority: Authority) -> None:
    provider = make(pem(authority.revoked(begins=NOW + timedelta(days=1))))
    with pytest.raises(ExternalError):
        log_in(provider, authority.client("alice", 3))


def test_an_authority_without_a_list_lets_nobody_in(make: Make, authority: Authority) -> None:
    other = Authority("Other CA")
    provider = make(pem(authority.revoked()), authority.certificate, other.certificate)
    with pytest.raises(ExternalError):
        log_in(provider, other.client("alice", 3))


def test_the_lists_of_two_authorities_are_two(make: Make, authority: Authority) -> None:
    other = Authority("Other CA")
    provider = make(pem(authority.revoked(7), other.revoked(8)), authority.certificate, other.certificate)

    assert log_in(provider, authority.client("alice", 8)).key != log_in(provider, other.client("alice", 7)).key
    for credential in (authority.client("alice", 7), other.client("alice", 8)):
        with pytest.raises(InvalidCredentialsError):
            log_in(provider, credential)


def test_names_alone_prove_no_certificate(make: Make, authority: Authority) -> None:
    provider = make(pem(authority.revoked()))
    names = CertificateCredential(der=b"", subject=(("commonName", "alice"),), issuer=(("commonName", "Test CA"),))
    with pytest.raises(InvalidCredentialsError):
        log_in(provider, names)
    stranger = Identity(issuer="sqe:mtls:commonName=Test CA", subject="x", username="x", provider="mtls")
    assert provider.is_revoked(stranger)


def test_lists_in_der_are_read(make: Make, authority: Authority) -> None:
    provider = make(authority.revoked(2).public_bytes(serialization.Encoding.DER))
    assert log_in(provider, authority.client("alice", 3)).username == "alice"
    with pytest.raises(InvalidCredentialsError):
        log_in(provider, authority.client("bob", 2))


def bad_lists(authority: Authority) -> dict[str, bytes]:
    forged = Authority()
    return {
        "not signed by": pem(authority.revoked(key=forged.key)),
        "not signed by an": pem(Authority("Other CA").revoked()),
        "complete lists": pem(authority.revoked(critical=True)),
        "another list": pem(authority.revoked(2), authority.revoked(3)),
        "revoked.crl": b"garbage",
    }


@pytest.mark.parametrize("told", bad_lists(Authority()))
def test_a_list_that_does_not_count_stops_the_start(make: Make, authority: Authority, told: str) -> None:
    with pytest.raises(StartupError, match=told):
        make(bad_lists(authority)[told])


@pytest.mark.parametrize("told", bad_lists(Authority()))
def test_a_new_list_with_faults_changes_nothing(
    make: Make, authority: Authority, clock: FixedClock, tmp_path: Path, told: str, caplog: pytest.LogCaptureFixture
) -> None:
    provider = make(pem(authority.revoked(2)))
    write(tmp_path / "revoked.crl", bad_lists(authority)[told])

    with pytest.raises(InvalidCredentialsError):
        log_in(provider, authority.client("bob", 2))
    assert log_in(provider, authority.client("alice", 3)).username == "alice"
    assert "the revocation lists stay as they were" in caplog.text
    clock.advance(8 * 24 * 3600)
    with pytest.raises(ExternalError):
        log_in(provider, authority.client("alice", 3))


def test_lists_need_their_authority(authority: Authority, tmp_path: Path) -> None:
    (tmp_path / "revoked.crl").write_bytes(pem(authority.revoked()))
    with pytest.raises(StartupError, match="does not know who signs"):
        MtlsFactory().create("mtls", MtlsConfig(crl_files=(tmp_path / "revoked.crl",)), PluginContext())


@pytest.mark.parametrize(
    ("kind", "user"), [("uri", "spiffe://example.com/etl"), ("email", "etl@example.com"), ("dns", None)]
)
def test_the_user_may_be_an_alternative_name(authority: Authority, clock: FixedClock, kind, user) -> None:
    names = (
        x509.UniformResourceIdentifier("spiffe://example.com/etl"),
        x509.RFC822Name("etl@example.com"),
        x509.DNSName("a.example.com"),
        x509.DNSName("b.example.com"),
    )
    provider = MtlsFactory().create("mtls", MtlsConfig(user_from=kind), PluginContext(clock=clock))
    credential = authority.client("alice", 3, *names)
    if user is not None:
        assert log_in(provider, credential).username == user
        return
    with pytest.raises(InvalidCredentialsError):
        log_in(provider, credential)
