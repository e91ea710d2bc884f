"""Placeholder."""

from collections.abc import Sequence

from sqe_core.config.origin import Fault
from sqe_core.config.sections.root import SqeConfig


def check(config: SqeConfig) -> Sequence[Fault]:
    return ()
