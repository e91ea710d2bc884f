"""The way to a server: a gRPC channel, and in plain words why there is none."""

from __future__ import annotations

import contextlib
import socket
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc

from sqe_core import __version__
from sqe_core.cli.arguments import ServerOptions
from sqe_core.cli.exit_codes import UsageError
from sqe_core.cli.remote.unchecked_tls import UncheckedTls

_PROBE_SECS = 10.0
_UNKNOWN_AUTHORITY = (18, 19, 20, 21)
"""What OpenSSL calls certificates that are self-signed, or signed by somebody whom nobody here knows."""


def open_channel(server: ServerOptions) -> tuple[grpc.Channel, Callable[[], None]]:
    """Return a channel, which connects with its first call, and what closes it."""
    options = _options(server)
    if not server.tls:
        channel = grpc.insecure_channel(server.address, options)
        return channel, channel.close
    if server.check_certificate:
        certificate, key = _own_certificate(server)
        credentials = grpc.ssl_channel_credentials(_roots(server.ca_file), key, certificate)
        channel = grpc.secure_channel(server.address, credentials, options)
        return channel, channel.close
    tunnel = UncheckedTls(server.host, server.port, unchecked_context(server))
    channel = grpc.insecure_channel(tunnel.target, [*options, ("grpc.default_authority", server.address)])

    def close() -> None:
        channel.close()
        tunnel.close()

    return channel, close


def explain(server: ServerOptions) -> str | None:
    """Say why a server cannot be reached, as far as trying it with plain sockets tells; None when they see nothing."""
    try:
        with socket.create_connection((server.host, server.port), timeout=_PROBE_SECS) as connection:
            return _explain_tls(server, connection)
    except socket.gaierror:
        return f"the host {server.host!r} is not known"
    except TimeoutError:
        return "nothing answers there"
    except ConnectionRefusedError:
        return "nothing listens there"
    except OSError as error:
        return error.strerror or str(error)


def _explain_tls(server: ServerOptions, connection: socket.socket) -> str | None:
    if server.tls and server.check_certificate:
        context = ssl.create_default_context(cafile=server.ca_file)
        _show_certificate(context, server)
        context.set_alpn_protocols(["h2"])
    else:
        context = unchecked_context(server)
    try:
        with context.wrap_socket(connection, server_hostname=server.host) as encrypted:
            if not server.tls:
                return "it wants an encrypted connection; add --tls"
            # With TLS 1.3 a server judges the client's certificate after the handshake, and may just hang up.
            encrypted.settimeout(1)
            with contextlib.suppress(TimeoutError):
                if not encrypted.recv(1):
                    return _unwanted(server)
            return None
    except ssl.SSLCertVerificationError as error:
        remedy = "; --tls-ca names the authority that signed it" if error.verify_code in _UNKNOWN_AUTHORITY else ""
        return f"its certificate is not to be trusted: {error.verify_message or error.reason}{remedy}"
    except (ssl.SSLError, OSError) as error:
        if not server.tls:
            return "it does not speak Arrow Flight SQL"
        if isinstance(error, ssl.SSLError) and "CERTIFICATE" in (error.reason or ""):
            return _unwanted(server)
        return "it does not speak TLS; leave out --tls"


def _unwanted(server: ServerOptions) -> str:
    if server.cert_file is not None:
        return "it does not accept the certificate of --tls-cert"
    return "it hangs up, as servers do that want a client certificate; --tls-cert shows one"


def unchecked_context(server: ServerOptions) -> ssl.SSLContext:
    """Return what encrypts without a look at the server's certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    _show_certificate(context, server)
    context.set_alpn_protocols(["h2"])
    return context


def _show_certificate(context: ssl.SSLContext, server: ServerOptions) -> None:
    if server.cert_file is None:
        return
    try:
        # An empty password fails; without one OpenSSL would ask on the terminal.
        context.load_cert_chain(server.cert_file, server.key_file, password="")
    except (OSError, ssl.SSLError) as error:
        reason = "no certificate with its private key" if isinstance(error, ssl.SSLError) else error.strerror
        raise UsageError(f"--tls-cert {server.cert_file} cannot be used: {reason}") from error


def _own_certificate(server: ServerOptions) -> tuple[bytes | None, bytes | None]:
    """Return certificate and key, which gRPC takes without a look and then fails with."""
    if server.cert_file is None:
        return None, None
    _show_certificate(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), server)
    return server.cert_file.read_bytes(), (server.key_file or server.cert_file).read_bytes()


def _options(server: ServerOptions) -> list[tuple[str, Any]]:
    return [
        ("grpc.primary_user_agent", f"sqe-cli/{__version__}"),
        ("grpc.max_receive_message_length", -1),
        ("grpc.max_metadata_size", 64 << 10),
        # A statement may be silent for an hour; a server that is gone is noticed within a minute.
        ("grpc.keepalive_time_ms", 30_000),
        ("grpc.keepalive_timeout_ms", 20_000),
        ("grpc.http2.max_pings_without_data", 0),
        # When a server comes back, the next statement shall find it.
        ("grpc.initial_reconnect_backoff_ms", 200),
        ("grpc.min_reconnect_backoff_ms", 200),
        ("grpc.max_reconnect_backoff_ms", 2_000),
        ("grpc.enable_http_proxy", 0 if server.is_local else 1),
    ]


def _roots(ca_file: Path | None) -> bytes | None:
    """The authorities of a file, else those of the system; None leaves it to those that gRPC brings."""
    if ca_file is not None:
        try:
            ssl.create_default_context(cafile=ca_file)
            return ca_file.read_bytes()
        except (OSError, ssl.SSLError) as error:
            reason = (isinstance(error, ssl.SSLError) and "it holds no certificate") or error.strerror
            raise UsageError(f"--tls-ca {ca_file} cannot be used: {reason}") from error
    system = ssl.get_default_verify_paths().cafile
    try:
        return Path(system).read_bytes() if system else None
    except OSError:
        return None
