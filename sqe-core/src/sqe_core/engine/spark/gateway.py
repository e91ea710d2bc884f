"""The py4j connection to the engine's JVM. Each Python thread speaks over a connection and a Java thread of its own."""

from __future__ import annotations

from typing import Any

from py4j.clientserver import ClientServer, JavaParameters, PythonParameters


class Gateway:
    """Calls into one JVM; safe to use from every thread.

    Spark keeps the active session, job tags and job groups per Java thread, hence the pinning (ENF-3).
    """

    def __init__(self, *, port: int, secret: str) -> None:
        self._server = ClientServer(
            java_parameters=JavaParameters(port=port, auth_token=secret, auto_convert=True),
            # Nothing in the JVM calls Python back, so no callback server listens.
            python_parameters=PythonParameters(port=0, eager_load=False),
        )
        self.jvm: Any = self._server.jvm

    def close(self) -> None:
        """Drop every connection; the JVM goes on."""
        self._server.close()
