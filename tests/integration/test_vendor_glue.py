"""A vendor's Glue plugin, against moto that checks keys: two catalogs, two roles, two sets of keys."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import ClassVar

import pytest
from contract_variants import given
from testbed.moto import ACCOUNT, REGION, Moto, running_moto

from acme_glue import Glue, GlueConfig, GlueFactory
from sqe_core.bootstrap import EmbeddedSqe
from sqe_core.spi import Secret
from sqe_core.spi.errors import SqeError
from sqe_core.testing.catalog_engine import CatalogEngineContract, mounted

RIGHTS = {
    "writer": ["glue:*", "s3:*"],
    "reader": ["glue:Get*", "s3:Get*", "s3:List*", "s3:Head*"],
}


def statement(*actions: str) -> str:
    allow = [{"Effect": "Allow", "Action": list(actions), "Resource": "*"}]
    return json.dumps({"Version": "2012-10-17", "Statement": allow})


@pytest.fixture(scope="module")
def configs() -> Iterator[dict[str, GlueConfig]]:
    """The settings of two catalogs of one account, whose roles may do different things."""
    with running_moto() as moto:
        moto.client("s3").create_bucket(Bucket="lake", CreateBucketConfiguration={"LocationConstraint": REGION})
        found = {role: made(moto, role, rights) for role, rights in RIGHTS.items()}
        moto.check_keys()
        yield found


def made(moto: Moto, role: str, rights: list[str]) -> GlueConfig:
    iam = moto.client("iam")
    iam.create_user(UserName=f"sqe-{role}")
    iam.put_user_policy(UserName=f"sqe-{role}", PolicyName="take", PolicyDocument=statement("sts:AssumeRole"))
    key = iam.create_access_key(UserName=f"sqe-{role}")["AccessKey"]
    iam.create_role(RoleName=role, AssumeRolePolicyDocument=statement("sts:AssumeRole"))
    iam.put_role_policy(RoleName=role, PolicyName="work", PolicyDocument=statement(*rights))
    return GlueConfig(
        region=REGION,
        warehouse="s3://lake/tables",
        role_arn=f"arn:aws:iam::{ACCOUNT}:role/{role}",
        access_key_id=key["AccessKeyId"],
        secret_access_key=Secret(key["SecretAccessKey"]),
        endpoint=moto.url,
    )


@pytest.fixture(scope="module")
def embedded(sqe: EmbeddedSqe) -> EmbeddedSqe:
    """The test run has one engine."""
    return sqe


class TestGlue(CatalogEngineContract):
    capabilities: ClassVar[frozenset[str]] = frozenset({"writes"})

    factory = given(GlueFactory)
    config = given(lambda configs: configs["writer"])


def test_each_catalog_has_keys_of_its_own(sqe: EmbeddedSqe, configs: dict[str, GlueConfig]) -> None:
    writer, reader = Glue(configs["writer"]), Glue(configs["reader"])
    try:
        with mounted(sqe, writer) as write, mounted(sqe, reader) as read:
            write("CREATE SCHEMA both")
            write("CREATE TABLE both.t AS SELECT 1 AS id")
            assert read("SELECT id FROM both.t") == [(1,)]
            with pytest.raises(SqeError) as refused:
                read("INSERT INTO both.t VALUES (2)")
            assert "AccessDenied" not in str(refused.value)
            assert write("INSERT INTO both.t VALUES (3)") is not None
            assert read("SELECT count(*) AS n FROM both.t") == [(2,)]
    finally:
        for each in (writer, reader):
            each.close()
