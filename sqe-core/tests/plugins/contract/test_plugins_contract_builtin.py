"""What is built in passes the contracts that vendors have to pass."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from contract_variants import given

from sqe_core.auth.anonymous import AnonymousConfig, AnonymousFactory
from sqe_core.auth.api_key import ApiKeyConfig, ApiKeyFactory
from sqe_core.auth.mtls import MtlsConfig, MtlsFactory
from sqe_core.catalog.factories import (
    HadoopConfig,
    HadoopFactory,
    JdbcConfig,
    JdbcFactory,
    SqliteConfig,
    SqliteFactory,
)
from sqe_core.observe.lineage_file import FileLineageConfig, FileLineageFactory
from sqe_core.policy.builtin import AllowAllFactory, PassthroughFactory
from sqe_core.spi import (
    AttachRequest,
    AttachSecret,
    BasicCredential,
    BearerCredential,
    CertificateCredential,
    ClientInfo,
    LoginRequest,
    NoConfig,
    NoCredential,
    ObjectName,
    Secret,
)
from sqe_core.testing import (
    AuthProviderContract,
    CatalogContract,
    LineageSinkContract,
    PluginContract,
    PolicyEnforcerContract,
    make_policy_request,
)

CLIENT = ClientInfo(protocol="test", address="127.0.0.1")
API_KEY = "sqe_9Vb2hQm4Zt7Lw1Xc5Rk8Yp3Nf6Jd0Gs"
AUTHORITY = (("commonName", "Test CA"),)
PEOPLE = ObjectName(catalog="lake", namespace=("hr",), name="people")


class TestCore(PluginContract):
    plugin_name = "core"


class TestAnonymous(AuthProviderContract):
    factory = given(AnonymousFactory)
    config = given(lambda: AnonymousConfig(user="guest", roles=("reader",)))
    accepted = given(lambda: LoginRequest(credential=NoCredential(), client=CLIENT))

    @pytest.fixture
    def foreign(self) -> Sequence[LoginRequest]:
        credentials = (
            BasicCredential(username="guest", password=Secret("")),
            BearerCredential(token=Secret("t")),
            CertificateCredential(der=b""),
        )
        return [LoginRequest(credential=credential, client=CLIENT) for credential in credentials]


class TestApiKey(AuthProviderContract):
    capabilities = frozenset({"rejects"})

    factory = given(ApiKeyFactory)

    @pytest.fixture
    def config(self, tmp_path: Path) -> ApiKeyConfig:
        file = tmp_path / "keys.toml"
        file.write_text(f'[[keys]]\nkey = "{API_KEY}"\nuser = "etl"\ngroups = ["loaders"]\nroles = ["writer"]\n')
        return ApiKeyConfig(keys_file=file)

    accepted = given(lambda: LoginRequest(credential=BearerCredential(token=Secret(API_KEY)), client=CLIENT))

    @pytest.fixture
    def foreign(self) -> Sequence[LoginRequest]:
        credentials = (
            NoCredential(),
            BasicCredential(username="etl", password=Secret("hunter2-5d1f")),
            BearerCredential(token=Secret("eyJhbGciOiJSUzI1NiJ9.e30.c2ln")),
            CertificateCredential(der=b""),
        )
        return [LoginRequest(credential=credential, client=CLIENT) for credential in credentials]

    @pytest.fixture
    def rejected(self) -> Sequence[LoginRequest]:
        credentials = (
            BearerCredential(token=Secret("sqe_")),
            BearerCredential(token=Secret(API_KEY + "x")),
            BasicCredential(username="etl", password=Secret(API_KEY[:-1])),
        )
        return [LoginRequest(credential=credential, client=CLIENT) for credential in credentials]


class TestMtls(AuthProviderContract):
    capabilities = frozenset({"rejects"})

    factory = given(MtlsFactory)
    config = given(MtlsConfig)

    @pytest.fixture
    def accepted(self) -> LoginRequest:
        subject = (("commonName", "etl"), ("organizationalUnitName", "loaders"))
        return LoginRequest(credential=CertificateCredential(der=b"", subject=subject, issuer=AUTHORITY), client=CLIENT)

    @pytest.fixture
    def foreign(self) -> Sequence[LoginRequest]:
        credentials = (
            NoCredential(),
            BasicCredential(username="etl", password=Secret("hunter2-5d1f")),
            BearerCredential(token=Secret("t")),
        )
        return [LoginRequest(credential=credential, client=CLIENT) for credential in credentials]

    @pytest.fixture
    def rejected(self) -> Sequence[LoginRequest]:
        credentials = (
            CertificateCredential(der=b""),
            CertificateCredential(der=b"no certificate", subject=(("commonName", "etl"),)),
            CertificateCredential(der=b"", subject=(("commonName", "etl"), ("commonName", "root"))),
            CertificateCredential(der=b"", subject=(("commonName", "etl\u202e"),)),
        )
        return [LoginRequest(credential=credential, client=CLIENT) for credential in credentials]


class TestSqlite(CatalogContract):
    capabilities = frozenset({"attach", "views", "writes", "quick_metadata"})

    factory = given(SqliteFactory)

    config = given(lambda tmp_path: SqliteConfig(directory=tmp_path / "lake"))
    attach_request = given(lambda tmp_path: AttachRequest(name="other", location=str(tmp_path / "other")))


class TestJdbc(CatalogContract):
    capabilities = frozenset({"attach", "views", "writes"})

    factory = given(JdbcFactory)
    config = given(
        lambda: JdbcConfig(
            url=Secret("postgresql://ann:hunter2-5d1f@db:5432/lake"),
            warehouse="s3://lake/warehouse",
            password=Secret("other-77c3"),
        )
    )

    @pytest.fixture
    def attach_request(self) -> AttachRequest:
        login = AttachSecret(name="pg", type="basic", values={"username": Secret("ann"), "password": Secret("hunter2")})
        return AttachRequest(
            name="pg", location="jdbc:postgresql://db/lake", options={"warehouse": "s3://lake"}, secret=login
        )


class TestHadoop(CatalogContract):
    capabilities = frozenset({"attach"})

    factory = given(HadoopFactory)

    config = given(lambda tmp_path: HadoopConfig(warehouse=str(tmp_path)))

    attach_request = given(lambda: AttachRequest(name="files", location="s3://bucket/tables"))


class TestAllowAll(PolicyEnforcerContract):
    factory = given(AllowAllFactory)
    config = given(NoConfig)
    allowed = given(lambda: make_policy_request(PEOPLE))


class TestPassthrough(TestAllowAll):
    factory = given(PassthroughFactory)


class TestFileLineage(LineageSinkContract):
    factory = given(FileLineageFactory)

    config = given(lambda tmp_path: FileLineageConfig(file_path=tmp_path / "lineage.jsonl"))
    delivered = given(
        lambda config: lambda: [json.loads(line) for line in config.file_path.read_text("utf-8").splitlines()]
    )
