"""Connect to brokers with the Java client's settings for security protocol, TLS and SASL."""

from __future__ import annotations

import logging
import socket
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kafka_compat.client.connection import Connection
from kafka_compat.errors import ErrorCode, KafkaError, known_code
from kafka_compat.protocol.api_keys import ApiKey

if TYPE_CHECKING:
    import ssl

    from kafka_compat.client.logins import NewLogin

log = logging.getLogger(__name__)

_PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")


class WrongSettings(Exception):
    """Raised for invalid client settings. The text states the valid values."""


class HandshakeFailed(Exception):
    """Raised if a TLS handshake fails because the client rejects the broker's certificate."""


class ConnectionSettings(NamedTuple):
    """Settings for a connection. `tls` is None without TLS, `mechanism` is None without SASL, and
    `new_client` is None if this client cannot authenticate with the mechanism.
    """

    security_protocol: str
    tls: ssl.SSLContext | None
    mechanism: str | None
    new_client: NewLogin | None
    timeout_s: float
    invalid_certificate: str | None = None
    """Why brokers reject the client's own certificate, such as its expiry, or None."""


_DIGITS_MAX: Final = 20
_LONGS: Final = frozenset(
    ("linger.ms", "max.block.ms", "metadata.max.age.ms", "reconnect.backoff.ms", "retry.backoff.ms")
)
"""Settings of clients whose values have 64 bits."""


def whole_number(given: Mapping[str, str], name: str, default: int) -> int:
    """Return a producer's or consumer's integer setting. Raises ValueError if the value is invalid."""
    text = given.get(name, str(default)).strip()
    bits = 64 if name in _LONGS else 32
    is_number = text.removeprefix("-").isdecimal() and len(text) <= _DIGITS_MAX
    if not is_number or not -(1 << (bits - 1)) <= int(text) < 1 << (bits - 1):
        kind = "LONG" if name in _LONGS else "INT"
        raise ValueError(f"Invalid value {text} for configuration {name}: Not a number of type {kind}")
    return int(text)


def read_settings(path: str) -> dict[str, str]:
    """Read a properties file. Raises WrongSettings if it is malformed, and OSError if it cannot be read."""
    from kafka_compat.config.properties import parse_properties

    with open(path, "rb") as file:
        text = file.read()
    try:
        properties = parse_properties(text)
    except ValueError as error:
        raise WrongSettings(f"{path}: {error}") from error
    for name, entry in properties.items():
        if entry.in_utf8 is not None:
            log.warning(
                "%s, line %d: decoded %s as ISO-8859-1, as Kafka does, although it appears to be UTF-8. "
                "Write non-ASCII characters as \\u followed by four hexadecimal digits",
                path,
                entry.line,
                name,
            )
    return {name: entry.value for name, entry in properties.items()}


def addresses(text: str) -> list[tuple[str, int]]:
    """Parse a list of addresses, such as bootstrap.servers. Raises WrongSettings if it is invalid."""
    found = []
    for item in filter(None, (item.strip() for item in text.split(","))):
        host, _, port = item.rpartition(":")
        if not host or not port.isdigit() or not 0 < int(port) < 65536:
            raise WrongSettings(f"{item} is not an address: expected HOST:PORT, separated by commas")
        found.append((host.strip("[]"), int(port)))
    if not found:
        raise WrongSettings("bootstrap.servers contains no broker: expected HOST:PORT")
    return found


def connection_settings(settings: Mapping[str, str], timeout_s: float) -> ConnectionSettings:
    """Derive connection settings from a client's properties. Raises WrongSettings if any is invalid."""
    protocol = settings.get("security.protocol", "PLAINTEXT").upper()
    if protocol not in _PROTOCOLS:
        raise WrongSettings(f"security.protocol={protocol}: expected one of {', '.join(_PROTOCOLS)}")
    tls = invalid = None
    if protocol.endswith("SSL"):
        from kafka_compat.config import BrokerConfig, ConfigError, Listener
        from kafka_compat.security.tls_context import TlsContext
        from kafka_compat.security.tls_settings import TlsSettings

        # Parse the TLS settings like those of a broker's listener, because they have the same names.
        given = {name: value for name, value in settings.items() if name.startswith("ssl.")}
        listener = Listener("CLIENT", "", 0, protocol)
        try:
            context = TlsContext(
                TlsSettings.of(BrokerConfig.from_properties(given), listener), of_client=True
            )
            tls, invalid = context.client, context.invalid()
        except ConfigError as error:
            raise WrongSettings(error.in_full) from error
    if not protocol.startswith("SASL"):
        return ConnectionSettings(protocol, tls, None, None, timeout_s, invalid)
    mechanism = settings.get("sasl.mechanism", "GSSAPI")
    return ConnectionSettings(protocol, tls, mechanism, _login(mechanism, settings), timeout_s, invalid)


def _login(mechanism: str, settings: Mapping[str, str]) -> NewLogin | None:
    from kafka_compat.client.logins import BY_OTHERS, JAAS, MECHANISMS, login_of

    if mechanism not in MECHANISMS or (mechanism in BY_OTHERS and JAAS not in settings):
        return None
    try:
        return login_of(mechanism, settings)
    except ValueError as error:
        raise WrongSettings(str(error)) from error


def dialled(host: str) -> Any:
    """Return the host for a socket call. ASCII names are returned as bytes, to avoid Python's IDNA codec."""
    return host.encode() if host.isascii() else host


def connect(using: ConnectionSettings, host: str, port: int, client_id: str) -> Connection:
    """Open a connection with the configured security. Raises OSError if this fails, EOFError or ValueError if
    the peer is not a broker, HandshakeFailed if the broker's certificate is rejected, KafkaError or Untrusted
    if authentication fails, and WrongSettings if this client cannot authenticate with the SASL mechanism.
    """
    sock = socket.create_connection((dialled(host), port), using.timeout_s)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        if using.tls is not None:
            sock = _encrypted(using.tls, sock, host)
        connection = Connection(sock, client_id)
        if using.mechanism is not None:
            _log_in(using, connection, host)
    except BaseException:
        sock.close()
        raise
    return connection


def _encrypted(tls: ssl.SSLContext, plain: socket.socket, host: str) -> socket.socket:
    from ssl import SSLCertVerificationError

    try:
        return tls.wrap_socket(plain, server_hostname=host)
    except SSLCertVerificationError as error:
        raise HandshakeFailed(f"SSL handshake failed: {error.verify_message}") from error


def _log_in(using: ConnectionSettings, connection: Connection, host: str) -> None:
    if using.new_client is None:
        from kafka_compat.client.logins import JAAS, MECHANISMS

        mechanisms = ", ".join(MECHANISMS)
        raise WrongSettings(f"sasl.mechanism={using.mechanism}: expected one of {mechanisms}, and {JAAS}")
    answer = connection.ask(ApiKey.SASL_HANDSHAKE, 1, mechanism=using.mechanism)
    if answer.error_code:
        offered = ", ".join(answer.mechanisms)
        text = f"The broker has not enabled the SASL mechanism '{using.mechanism}', but "
        raise KafkaError(known_code(answer.error_code), f"{text}[{offered}]")
    client = using.new_client(host)
    token: bytes | None = client.first()
    while token is not None:
        answer = connection.ask(ApiKey.SASL_AUTHENTICATE, 1, auth_bytes=token)
        if answer.error_code:
            raise KafkaError(ErrorCode.SASL_AUTHENTICATION_FAILED, answer.error_message or "")
        token = client.next(bytes(answer.auth_bytes))
