"""What the bridge is compiled from."""

from __future__ import annotations

from pathlib import Path

from sqe_core.engine.spark.compiler import bridge_sources

AWS = Path("iceberg-aws-bundle-1.12.0.jar")


def test_sources_that_need_the_aws_sdk_are_left_out_where_there_is_none() -> None:
    everything = {path.name for path in bridge_sources([AWS])}
    without = {path.name for path in bridge_sources([Path("spark-core.jar")])}
    assert everything - without == {"MountKeys.java", "StoreClients.java", "RenewedKeys.java", "RemoteSigner.java"}
    assert {"RestMount.java", "StoreSettings.java"} <= without < everything
