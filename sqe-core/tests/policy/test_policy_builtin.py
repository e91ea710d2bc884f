"""The engines that let everything pass have to be wanted (POL-1)."""

from __future__ import annotations

import pytest

from sqe_core.policy.builtin import AllowAllFactory, PassthroughConfig, PassthroughFactory
from sqe_core.spi import ConfigError, NoConfig, PluginContext

pytestmark = pytest.mark.rule("POL-1")


def test_passthrough_has_to_be_understood() -> None:
    with pytest.raises(ConfigError, match="i_understand_no_enforcement = true"):
        PassthroughFactory().create("passthrough", PassthroughConfig(), PluginContext())


def test_passthrough_takes_nothing_but_true() -> None:
    sloppy = PassthroughConfig(i_understand_no_enforcement="yes")  # type: ignore[arg-type]
    with pytest.raises(ConfigError):
        PassthroughFactory().create("passthrough", sloppy, PluginContext())


def test_production_refuses_both() -> None:
    context = PluginContext(production_mode=True)
    with pytest.raises(ConfigError, match="refused in production_mode"):
        PassthroughFactory().create("p", PassthroughConfig(i_understand_no_enforcement=True), context)
    with pytest.raises(ConfigError, match="not for production_mode"):
        AllowAllFactory().create("p", NoConfig(), context)
