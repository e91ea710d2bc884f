"""A hash mask without a key is refused, unless the operator has asked for it (POL-12)."""

from __future__ import annotations

import pytest

from sqe_core.policy.masks import MaskWriter
from sqe_core.spi.errors import ConfigError
from sqe_core.spi.identity import Secret
from sqe_core.spi.policy import HashMask


@pytest.mark.rule("POL-12")
def test_a_hash_mask_needs_a_key() -> None:
    with pytest.raises(ConfigError, match="mask_key"):
        MaskWriter().write(HashMask(), "name", "string")
    unkeyed = MaskWriter(unkeyed=True).write(HashMask(), "name", "string").text
    assert "sha2(`name`, 256)" in unkeyed
    keyed = MaskWriter(key=Secret("k")).write(HashMask(), "name", "string").text
    assert "sha2(`name`, 256)" not in keyed
