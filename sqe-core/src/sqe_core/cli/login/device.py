"""Login on another device: a code is shown here and typed there (RFC 8628)."""

from __future__ import annotations

import time
from collections.abc import Callable

from sqe_core.cli.login.http import LoginError, ProviderSilentError
from sqe_core.cli.login.provider import Proof, Provider, StillWaiting, Tokens

_SLOWER_SECS = 5.0


def login_on_device(
    provider: Provider, tell: Callable[[str], None], *, pause: Callable[[float], None] = time.sleep
) -> Tokens:
    proof = Proof()
    waiting = provider.begin_device_login(proof)
    tell(f"On any device, go to\n  {waiting.complete_url or waiting.url}\nand log in with the code {waiting.user_code}")
    interval = waiting.interval_secs
    while time.monotonic() + interval < waiting.ends_at:
        pause(interval)
        try:
            return provider.poll_device_login(waiting, proof)
        except StillWaiting as still:
            interval += _SLOWER_SECS if still.slower else 0
        except ProviderSilentError:
            interval += _SLOWER_SECS
    raise LoginError("Nobody logged in within the time")
