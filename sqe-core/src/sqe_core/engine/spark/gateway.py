"""The py4j connection to the engine's JVM. Each Python thread speaks over a connection and a Java thread of its own."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from py4j.clientserver import ClientServer, JavaParameters, PythonParameters
from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError

from sqe_core.spi.errors import EngineLostError

# At DEBUG py4j logs every command, and with it the gateway's secret and the values of parameters.
logging.getLogger("py4j").setLevel(logging.WARNING)

# A killed process closes its connections a moment before it is seen to have ended.
_END_SECS = 0.5


def engine_lost() -> EngineLostError:
    """Return the error of whoever needed a JVM that has ended."""
    return EngineLostError(
        "The engine ended while the statement ran", hint="it restarts by itself; send the statement again"
    )


class Gateway:
    """Calls into one JVM; safe to use from every thread.

    Spark keeps the active session, job tags and job groups per Java thread, hence the pinning (ENF-3). A gateway serves
    one JVM and never another: after a restart of the engine there is a new one.
    """

    def __init__(self, *, port: int, secret: str, ended: Callable[[float], bool] = lambda timeout_secs: False) -> None:
        """Connect lazily. `ended` waits that long for the JVM's end and says whether it came."""
        self._ended = ended
        self._server = ClientServer(
            java_parameters=JavaParameters(port=port, auth_token=secret, auto_convert=True),
            # Nothing in the JVM calls Python back, so no callback server listens.
            python_parameters=PythonParameters(port=0, eager_load=False),
        )
        self._alive = True
        self.jvm: Any = self._server.jvm

    @property
    def alive(self) -> bool:
        """False when the JVM has ended or the gateway was closed, and from then on."""
        return self._alive

    def mark_lost(self) -> None:
        """Note that the JVM has ended."""
        self._alive = False

    def vanished(self, error: BaseException) -> bool:
        """Whether an error of py4j means that the JVM has ended.

        py4j is not clear about that: it also says that a package does not exist, when it could not ask.
        """
        if isinstance(error, Py4JJavaError):
            return False
        return isinstance(error, Py4JNetworkError | OSError) or not self._alive or self._ended(_END_SECS)

    @contextmanager
    def calls(self) -> Iterator[None]:
        """Turn what py4j says of a vanished JVM into `EngineLostError`."""
        try:
            yield
        except (Py4JError, OSError) as error:
            if not self.vanished(error):
                raise
            raise engine_lost() from error

    def close(self) -> None:
        """Drop every connection; the JVM goes on."""
        self._alive = False
        with suppress(Py4JNetworkError, OSError):
            self._server.close()
