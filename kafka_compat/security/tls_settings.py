"""TLS settings of one listener: Kafka's ssl.* settings, with all checks that do not require files."""

import logging
from collections.abc import Iterator
from typing import Final, Literal, NamedTuple, Self, cast

from kafka_compat.config import BrokerConfig, ConfigError, Listener
from kafka_compat.config.listener_config import ListenerConfig

log = logging.getLogger(__name__)

ClientAuth = Literal["required", "requested", "none"]

SUPPORTED: Final = ("TLSv1.2", "TLSv1.3")
_TOO_OLD: Final = ("SSLv2Hello", "SSLv3", "TLSv1", "TLSv1.1")
_DEFAULT_CLIENT_AUTH: Final = "none"
_JAVA_STORE_TYPES: Final = ("JKS", "PKCS12", "JCEKS")


class Secret(str):
    """A password or private key, which is hidden in all text representations."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "[hidden]"


class KeyStoreSettings(NamedTuple):
    """Key store settings: the path of a file, or a PEM private key and certificates given inline."""

    type: str
    location: str | None
    password: Secret | None
    key_password: Secret | None
    key: Secret | None
    certificate_chain: str | None


class TrustStoreSettings(NamedTuple):
    """Trust store settings: the path of a file, or PEM certificates given inline."""

    type: str
    location: str | None
    password: Secret | None
    certificates: str | None


class TlsSettings(NamedTuple):
    """TLS settings of one listener, and of brokers that connect to it.

    If `key_store` is None, no certificate is presented; if `trust_store` is None, the system's authorities
    are trusted. `protocols` is a subset of SUPPORTED, in the same order. `cipher_suites` contains OpenSSL's
    names; if it is empty, OpenSSL chooses. `verify_host_name` applies to the client side. `own` contains the
    names of the settings configured specifically for this listener.
    """

    listener_name: str
    key_store: KeyStoreSettings | None
    trust_store: TrustStoreSettings | None
    client_auth: ClientAuth
    protocols: tuple[str, ...]
    cipher_suites: tuple[str, ...]
    verify_host_name: bool
    principal_mapping_rules: str
    allow_dn_changes: bool
    allow_san_changes: bool
    own: frozenset[str]

    @classmethod
    def of(cls, config: BrokerConfig, listener: Listener) -> Self:
        """Return a listener's TLS settings. Raises ConfigError, with Kafka's message, if they are invalid."""
        settings = config.for_listener(listener.name)
        return cls(
            listener.name,
            _key_store(settings),
            _trust_store(settings),
            _client_auth(settings, listener.security_protocol),
            _protocols(settings),
            _cipher_suites(settings),
            bool(settings.str("ssl.endpoint.identification.algorithm")),
            settings.str("ssl.principal.mapping.rules") or "",
            settings.bool("ssl.allow.dn.changes"),
            settings.bool("ssl.allow.san.changes"),
            frozenset(name for name in _NAMES if settings.is_own(name)),
        )

    def named(self, setting: str) -> str:
        """Return the configured name of a setting, for messages: `ssl.X` or `listener.name.L.ssl.X`."""
        return f"listener.name.{self.listener_name.lower()}.{setting}" if setting in self.own else setting


_NAMES: Final = (
    "ssl.cipher.suites",
    "ssl.enabled.protocols",
    "ssl.key.password",
    "ssl.keystore.certificate.chain",
    "ssl.keystore.key",
    "ssl.keystore.location",
    "ssl.keystore.password",
    "ssl.keystore.type",
    "ssl.principal.mapping.rules",
    "ssl.truststore.certificates",
    "ssl.truststore.location",
    "ssl.truststore.password",
    "ssl.truststore.type",
)


def _secret(settings: ListenerConfig, name: str) -> Secret | None:
    text = settings.str(name)
    return None if text is None else Secret(text)


def _key_store(settings: ListenerConfig) -> KeyStoreSettings | None:
    store = KeyStoreSettings(
        settings.str("ssl.keystore.type") or "",
        settings.str("ssl.keystore.location"),
        _secret(settings, "ssl.keystore.password"),
        _secret(settings, "ssl.key.password"),
        _secret(settings, "ssl.keystore.key"),
        settings.str("ssl.keystore.certificate.chain"),
    )
    _refuse_first(settings, "ssl.keystore", _key_store_problems(store))
    if store.key is None and store.location is None:
        return None
    _check_type(settings, "ssl.keystore.type", store.type)
    return store


def _key_store_problems(store: KeyStoreSettings) -> Iterator[tuple[str, str]]:
    """Yield the errors in the key store settings, in Kafka's order and wording."""
    has_key, has_chain = store.key is not None, store.certificate_chain is not None
    has_location, has_password = store.location is not None, store.password is not None
    pem = store.type == "PEM"
    if has_key and not pem:
        yield "key", f"SSL private key can be specified only for PEM, but key store type is {store.type}."
    if has_key and not has_chain:
        yield "key", "SSL private key is specified, but certificate chain is not specified."
    if has_key and has_location:
        yield "location", "Both SSL key store location and separate private key are specified."
    if has_chain and not has_key:
        yield "certificate.chain", "SSL certificate chain is specified, but private key is not specified"
    if pem and has_password and (has_key or has_location):
        only = "only key password may be specified"
        yield "password", f"SSL key store password cannot be specified with PEM format, {only}."
    if has_password and not (has_key or has_location):
        yield "password", "SSL key store is not specified, but key store password is specified."
    if has_location and not pem and not has_password:
        yield "location", "SSL key store is specified, but key store password is not specified."


def _trust_store(settings: ListenerConfig) -> TrustStoreSettings | None:
    store = TrustStoreSettings(
        settings.str("ssl.truststore.type") or "",
        settings.str("ssl.truststore.location"),
        _secret(settings, "ssl.truststore.password"),
        settings.str("ssl.truststore.certificates"),
    )
    _refuse_first(settings, "ssl.truststore", _trust_store_problems(store))
    if store.certificates is None and store.location is None:
        return None
    _check_type(settings, "ssl.truststore.type", store.type)
    return store


def _trust_store_problems(store: TrustStoreSettings) -> Iterator[tuple[str, str]]:
    """Yield the errors in the trust store settings, in Kafka's order and wording."""
    has_certificates, has_location = store.certificates is not None, store.location is not None
    pem, has_password = store.type == "PEM", store.password is not None
    if has_certificates and not pem:
        given = f"but trust store type is {store.type}"
        yield "certificates", f"SSL trust store certs can be specified only for PEM, {given}."
    if has_certificates and has_location:
        yield "location", "Both SSL trust store location and separate trust certificates are specified."
    if pem and has_password and (has_certificates or has_location):
        yield "password", "SSL trust store password cannot be specified for PEM format."
    if has_password and not (has_certificates or has_location):
        yield "password", "SSL trust store is not specified, but trust store password is specified."


def _refuse_first(settings: ListenerConfig, prefix: str, problems: Iterator[tuple[str, str]]) -> None:
    for setting, sentence in problems:
        name = settings.named(f"{prefix}.{setting}")
        raise ConfigError(name, None, f"{sentence} ({name})", whole=True)


def _check_type(settings: ListenerConfig, name: str, given: str) -> None:
    # As in Java, ignore the case of types, except for Kafka's type PEM.
    if given != "PEM" and given.upper() not in _JAVA_STORE_TYPES:
        expected = f"expected one of {', '.join(_JAVA_STORE_TYPES)}, PEM"
        raise ConfigError(settings.named(name), given, f"{given} not found", expected)


def _client_auth(settings: ListenerConfig, security_protocol: str) -> ClientAuth:
    """Return the effective ssl.client.auth. SASL_SSL listeners use only their own setting (KIP-684)."""
    if security_protocol == "SASL_SSL" and not settings.is_own("ssl.client.auth"):
        if settings.str("ssl.client.auth") != _DEFAULT_CLIENT_AUTH:
            log.warning(
                "Ignored ssl.client.auth for the SASL_SSL listener %s. To request certificates from its "
                "clients, set listener.name.%s.ssl.client.auth",
                settings.listener_name,
                settings.listener_name.lower(),
            )
        return _DEFAULT_CLIENT_AUTH
    return cast(ClientAuth, settings.str("ssl.client.auth"))


def _protocols(settings: ListenerConfig) -> tuple[str, ...]:
    name = "ssl.enabled.protocols"
    expected = f"expected one or both of {', '.join(SUPPORTED)}"
    given = settings.list(name)
    if not given:
        # As in Java, enable all supported versions up to ssl.protocol.
        return ("TLSv1.2",) if settings.str("ssl.protocol") == "TLSv1.2" else SUPPORTED
    for protocol in given:
        if protocol not in SUPPORTED and protocol not in _TOO_OLD:
            raise ConfigError(
                settings.named(name), ",".join(given), f"Unsupported protocol {protocol}", expected
            )
    chosen = tuple(protocol for protocol in SUPPORTED if protocol in given)
    if not chosen:
        raise ConfigError(
            settings.named(name), ",".join(given), "these protocols are no longer secure", expected
        )
    if old := [protocol for protocol in given if protocol in _TOO_OLD]:
        log.warning("Ignored insecure protocols in %s: %s", settings.named(name), ", ".join(old))
    return chosen


def _cipher_suites(settings: ListenerConfig) -> tuple[str, ...]:
    name = "ssl.cipher.suites"
    given = settings.list(name)
    if not given:
        return ()
    from kafka_compat.security import cipher_suites  # Import the module here, because it loads OpenSSL.

    try:
        return cipher_suites.openssl_names(given)
    except ValueError as error:
        raise ConfigError(
            settings.named(name),
            ",".join(given),
            str(error),
            "expected Java's or OpenSSL's names of cipher suites, "
            "for example TLS_AES_256_GCM_SHA384,TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
        ) from None
