"""The log that gRPC's core writes to standard error, where everything else is ours."""

from __future__ import annotations

import os


def silence_grpc() -> None:
    """Keep gRPC's own log out, unless the environment asks for it; call it before grpc is imported.

    What matters of it comes as errors and as lines of our log; a handshake that fails is the client's affair.
    """
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
