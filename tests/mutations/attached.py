"""A plugin of pytest: the engine of the tests is one that already runs. Without it each mutation would start a JVM."""

from __future__ import annotations

import os
from typing import Any

from sqe_core.engine.spark.engine import SparkEngine

VARIABLE = "SQE_MUTATIONS_ENGINE"


def pytest_configure() -> None:
    # The folder of the test bed is on the path by now.
    from testbed.joined_engine import JoinedEngine

    def start(engine: Any) -> None:
        engine._address = os.environ[VARIABLE]
        JoinedEngine.start(engine)

    SparkEngine.start = start  # type: ignore[method-assign]
    SparkEngine.stop = JoinedEngine.stop  # type: ignore[method-assign,assignment]
