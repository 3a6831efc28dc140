"""How a client means to reach a cluster, by the settings that Java clients have for it; and a connection that
went this way."""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kafka_compat.client.connection import Connection
from kafka_compat.errors import ErrorCode, KafkaError, known_code
from kafka_compat.protocol.api_keys import ApiKey

if TYPE_CHECKING:
    import ssl

    from kafka_compat.security.sasl.client import ClientMechanism

_PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")


class WrongSettings(Exception):
    """The client's settings cannot be; the text says what would be right."""


class HandshakeFailed(Exception):
    """Of TLS: the broker's certificate is not trusted, or the broker does not trust the client's."""


class Way(NamedTuple):
    """`tls` and `mechanism` are None where it has none; without `new_client` nobody logs in."""

    security_protocol: str
    tls: ssl.SSLContext | None
    mechanism: str | None
    new_client: Callable[[], ClientMechanism] | None
    timeout_s: float


def read_settings(path: str) -> dict[str, str]:
    """The settings of a properties file. Raises WrongSettings; OSError when it cannot be read."""
    from kafka_compat.config.properties import parse_properties

    with open(path, "rb") as file:
        text = file.read()
    try:
        return {name: value for name, (value, _) in parse_properties(text).items()}
    except ValueError as error:
        raise WrongSettings(f"{path}: {error}") from error


def addresses(text: str) -> list[tuple[str, int]]:
    """Of a list as bootstrap.servers is one. Raises WrongSettings."""
    found = []
    for item in filter(None, (item.strip() for item in text.split(","))):
        host, _, port = item.rpartition(":")
        if not host or not port.isdigit() or not 0 < int(port) < 65536:
            raise WrongSettings(f"{item} is no address: expected HOST:PORT, several separated by commas")
        found.append((host.strip("[]"), int(port)))
    if not found:
        raise WrongSettings("bootstrap.servers names no broker: expected HOST:PORT")
    return found


def way_of(settings: Mapping[str, str], timeout_s: float) -> Way:
    """Raises WrongSettings."""
    protocol = settings.get("security.protocol", "PLAINTEXT").upper()
    if protocol not in _PROTOCOLS:
        raise WrongSettings(f"security.protocol={protocol}: expected one of {', '.join(_PROTOCOLS)}")
    tls = None
    if protocol.endswith("SSL"):
        from kafka_compat.config import BrokerConfig, ConfigError, Listener
        from kafka_compat.security.tls_context import TlsContext
        from kafka_compat.security.tls_settings import TlsSettings

        # Clients have the same settings of TLS as brokers.
        given = {name: value for name, value in settings.items() if name.startswith("ssl.")}
        listener = Listener("CLIENT", "", 0, protocol)
        try:
            tls = TlsContext(TlsSettings.of(BrokerConfig.from_properties(given), listener)).client
        except ConfigError as error:
            raise WrongSettings(error.in_full) from error
    if not protocol.startswith("SASL"):
        return Way(protocol, tls, None, None, timeout_s)
    mechanism = settings.get("sasl.mechanism", "GSSAPI")
    return Way(protocol, tls, mechanism, _client(mechanism, settings), timeout_s)


def _client(mechanism: str, settings: Mapping[str, str]) -> Callable[[], ClientMechanism] | None:
    """None for mechanisms by which this project's commands cannot log in."""
    from kafka_compat.security import jaas
    from kafka_compat.security.sasl.client import PlainClient, ScramClient
    from kafka_compat.security.scram import MECHANISMS

    if mechanism != "PLAIN" and mechanism not in MECHANISMS:
        return None
    if "sasl.jaas.config" not in settings:
        raise WrongSettings("sasl.jaas.config is missing: it has the name and the password of the client")
    try:
        options = jaas.parse(settings["sasl.jaas.config"]).options
    except ValueError as error:
        raise WrongSettings(f"sasl.jaas.config: {error}") from error
    name, password = options.get("username"), options.get("password")
    if not name or not password:
        raise WrongSettings('sasl.jaas.config has no username="NAME" password="PASSWORD"')
    if mechanism == "PLAIN":
        return lambda: PlainClient(name, password)
    return lambda: ScramClient(mechanism, name, password)


def dialled(host: str) -> Any:
    """As sockets take it, without what Python imports to look into names that have other letters."""
    return host.encode() if host.isascii() else host


def connect(way: Way, host: str, port: int, client_id: str) -> Connection:
    """A connection that is encrypted and logged in as need be. Raises OSError, EOFError, ValueError for what
    is no broker; HandshakeFailed; KafkaError and Untrusted when the login fails.
    """
    opened = socket.create_connection((dialled(host), port), way.timeout_s)
    opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        if way.tls is not None:
            opened = _encrypted(way.tls, opened, host)
        connection = Connection(opened, client_id)
        if way.mechanism is not None:
            _log_in(way, connection)
    except BaseException:
        opened.close()
        raise
    return connection


def _encrypted(tls: ssl.SSLContext, opened: socket.socket, host: str) -> socket.socket:
    from ssl import SSLCertVerificationError

    try:
        return tls.wrap_socket(opened, server_hostname=host)
    except SSLCertVerificationError as error:
        raise HandshakeFailed(f"SSL handshake failed: {error.verify_message}") from error


def _log_in(way: Way, connection: Connection) -> None:
    if way.new_client is None:
        raise WrongSettings(f"sasl.mechanism={way.mechanism}: expected PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512")
    answer = connection.ask(ApiKey.SASL_HANDSHAKE, 1, mechanism=way.mechanism)
    if answer.error_code:
        offered = ", ".join(answer.mechanisms)
        text = f"Client SASL mechanism '{way.mechanism}' not enabled in the server, enabled mechanisms are "
        raise KafkaError(known_code(answer.error_code), f"{text}[{offered}]")
    client = way.new_client()
    token: bytes | None = client.first()
    while token is not None:
        answer = connection.ask(ApiKey.SASL_AUTHENTICATE, 1, auth_bytes=token)
        if answer.error_code:
            raise KafkaError(ErrorCode.SASL_AUTHENTICATION_FAILED, answer.error_message or "")
        token = client.next(bytes(answer.auth_bytes))
