"""TLS connections to ZooKeeper with the zookeeper.ssl.* settings. The module is imported only if
zookeeper.ssl.client.enable is true.

Each new connection uses the current certificate files. If the files are unusable, the previous certificates
are used.
"""

import logging
import re
import socket
import ssl
from typing import Final, cast

from kafka_compat.config import BrokerConfig, ConfigError
from kafka_compat.coordination.zookeeper_store.security import Unusable
from kafka_compat.security import cipher_suites, pem, tls_settings
from kafka_compat.security.tls_context import TlsContext
from kafka_compat.security.tls_settings import SUPPORTED, KeyStoreSettings, Secret, TlsSettings

log = logging.getLogger(__name__)

_PREFIX: Final = "zookeeper."
_NETTY: Final = "org.apache.zookeeper.ClientCnxnSocketNetty"
_SETTING: Final = re.compile(r"(?<![\w.])ssl\.(?=[a-z])")
_HOST_NAME_MISMATCH: Final = (62, 64)
"""The OpenSSL error numbers X509_V_ERR_HOSTNAME_MISMATCH and X509_V_ERR_IP_ADDRESS_MISMATCH."""


class ZooKeeperTls:
    """TLS for connections to ZooKeeper."""

    def __init__(self, config: BrokerConfig) -> None:
        """Read the key store and the trust store. Raises ConfigError if they or the settings are invalid."""
        self._settings = _settings(config)
        self._context = self._read()
        self._problem = ""

    def wrap(self, connection: socket.socket, host: str) -> ssl.SSLSocket:
        """Perform a TLS handshake (see `StoreSecurity.tls`). Raises Unusable if it fails."""
        context = self._now()
        try:
            wrapped = context.client.wrap_socket(connection, server_hostname=host)
        except ssl.SSLCertVerificationError as error:
            setting = "ssl.truststore.location"
            if error.verify_code in _HOST_NAME_MISMATCH:
                setting = "ssl.endpoint.identification.algorithm"
            why = f"its certificate is not trusted: {error.verify_message} ({_PREFIX}{setting})"
            raise Unusable(f"ZooKeeper at {host}: {why}") from error
        except (TimeoutError, ssl.SSLEOFError, ssl.SSLZeroReturnError, ConnectionError) as error:
            raise Unusable(f"ZooKeeper at {host}: {_SILENT}") from error
        except ssl.SSLError as error:
            raise Unusable(f"ZooKeeper at {host}: {_explained(error)}") from error
        except ValueError as error:
            raise Unusable(f"ZooKeeper at {host}: {error}") from error
        suite = context.suite_refused(cast(ssl.SSLObject, wrapped))
        if suite is not None:
            wrapped.close()
            why = f"it supports only {suite}, which is not in zookeeper.ssl.cipher.suites"
            raise Unusable(f"ZooKeeper at {host}: {why}")
        return wrapped

    def explain(self, error: OSError) -> OSError:
        """Return the exception to raise for a TLS error after the handshake. With TLS 1.3, servers check this
        broker's certificate after the handshake.
        """
        if not isinstance(error, ssl.SSLError):
            return error
        return Unusable(f"ZooKeeper closed the connection: {_explained(error)}")

    def _now(self) -> TlsContext:
        if self._context.changed():
            try:
                self._context = self._read()
                self._problem = ""
            except ConfigError as error:
                if str(error) != self._problem:
                    self._problem = str(error)
                    log.error("Connections to ZooKeeper kept their old certificates: %s", error.in_full)
        return self._context

    def _read(self) -> TlsContext:
        try:
            context = TlsContext(self._settings)
            _ = context.client
        except ConfigError as error:
            raise _in_zookeepers_terms(error, self._settings) from error
        return context


_SILENT: Final = (
    "no response to the TLS handshake. Check that the port of zookeeper.connect uses TLS "
    "(secureClientPort); for a plain-text port, set zookeeper.ssl.client.enable=false"
)


def _explained(error: OSError) -> str:
    reason = (getattr(error, "reason", None) or str(error)).replace("_", " ").lower()
    if "alert" in reason:
        return (
            f"it rejects this broker: {reason}. Check that it trusts the certificate of "
            "zookeeper.ssl.keystore.location and supports a protocol of zookeeper.ssl.enabled.protocols"
        )
    return f"TLS fails: {reason}"


def _settings(config: BrokerConfig) -> TlsSettings:
    socket_class = config.str("zookeeper.clientCnxnSocket")
    if socket_class is not None and socket_class != _NETTY:
        raise ConfigError(
            "zookeeper.clientCnxnSocket", socket_class, "it has no TLS", f"expected {_NETTY} or none"
        )
    for name in ("zookeeper.ssl.crl.enable", "zookeeper.ssl.ocsp.enable"):
        if config.bool(name):
            raise ConfigError(
                name, "true", "this broker cannot check whether a certificate was revoked", "expected false"
            )
    return TlsSettings(
        listener_name="zookeeper",
        key_store=_key_store(config),
        trust_store=_trust_store(config),
        client_auth="none",
        protocols=_protocols(config),
        cipher_suites=_suites(config),
        verify_host_name=_verifies(config),
        principal_mapping_rules="",
        allow_dn_changes=True,
        allow_san_changes=True,
        own=frozenset(),
    )


def _verifies(config: BrokerConfig) -> bool:
    name = "zookeeper.ssl.endpoint.identification.algorithm"
    given = (config.str(name) or "").strip()
    if given.lower() not in ("", "https", "false"):
        # Reject other values, because in Kafka they disable host name verification.
        expected = "expected HTTPS, or no value to disable hostname verification"
        raise ConfigError(name, given, "unknown algorithm", expected)
    return given.lower() == "https"


def _secret(config: BrokerConfig, name: str) -> Secret | None:
    text = config.str(name)
    return None if text is None else Secret(text)


def _key_store(config: BrokerConfig) -> KeyStoreSettings | None:
    location = config.str("zookeeper.ssl.keystore.location")
    if not location:
        return None
    kind = _kind(config, "zookeeper.ssl.keystore.type", location)
    password = _secret(config, "zookeeper.ssl.keystore.password")
    if kind == "PEM":
        # For a PEM file, this setting is the password of the private key.
        return KeyStoreSettings(kind, location, None, password, None, None)
    return KeyStoreSettings(kind, location, password or Secret(""), None, None, None)


def _trust_store(config: BrokerConfig) -> tls_settings.TrustStoreSettings | None:
    location = config.str("zookeeper.ssl.truststore.location")
    if not location:
        return None
    kind = _kind(config, "zookeeper.ssl.truststore.type", location)
    password = None if kind == "PEM" else _secret(config, "zookeeper.ssl.truststore.password")
    return tls_settings.TrustStoreSettings(kind, location, password, None)


def _kind(config: BrokerConfig, name: str, location: str) -> str:
    """Return the type of a key store or trust store. By default, detect it from the file's content."""
    given = config.str(name)
    if given:
        if given.upper() not in ("PEM", "JKS", "PKCS12"):
            raise ConfigError(name, given, f"{given} not found", "expected one of JKS, PKCS12, PEM")
        return given.upper()
    try:
        with open(location, "rb") as file:
            return "PEM" if pem.is_pem(file.read()) else "PKCS12"
    except OSError:
        return "PKCS12"


def _protocols(config: BrokerConfig) -> tuple[str, ...]:
    name = "zookeeper.ssl.enabled.protocols"
    given = config.list(name)
    if not given:
        name = "zookeeper.ssl.protocol"
        given = [config.str(name) or ""]
    chosen = tuple(protocol for protocol in SUPPORTED if protocol in given)
    if not chosen or set(given) - {*SUPPORTED, "TLSv1", "TLSv1.1"}:
        expected = f"expected one or both of {', '.join(SUPPORTED)}"
        raise ConfigError(name, ",".join(given), "these protocols are not secure", expected)
    return chosen


def _suites(config: BrokerConfig) -> tuple[str, ...]:
    name = "zookeeper.ssl.cipher.suites"
    given = config.list(name)
    try:
        return cipher_suites.openssl_names(given)
    except ValueError as error:
        raise ConfigError(name, ",".join(given), str(error)) from None


def _in_zookeepers_terms(error: ConfigError, settings: TlsSettings) -> ConfigError:
    """Translate the setting names in an error from ssl.X to zookeeper.ssl.X. For PEM files, ssl.key.password
    becomes zookeeper.ssl.keystore.password.
    """
    is_pem = settings.key_store is not None and settings.key_store.type == "PEM"

    def renamed(text: str) -> str:
        text = text.replace("ssl.key.password", "ssl.keystore.password") if is_pem else text
        return _SETTING.sub("zookeeper.ssl.", text)

    return ConfigError(renamed(error.name), error.value, renamed(error.reason), renamed(error.expected))
