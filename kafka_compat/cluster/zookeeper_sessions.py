"""ZooKeeper sessions with the zookeeper.* settings: connection string, SASL, TLS, and the ACLs of the
broker's nodes.
"""

from typing import Final

from kafka_compat.cluster.shared_store import ConnectStore
from kafka_compat.config import BrokerConfig, ConfigError
from kafka_compat.coordination.store.metadata_store import MetadataStore
from kafka_compat.coordination.zookeeper_store.security import OPEN, DigestLogin, StoreSecurity


def zookeeper_sessions(config: BrokerConfig) -> ConnectStore:
    """Return a function that opens sessions. Its first call raises ConfigError if settings are invalid."""
    hosts = config.str("zookeeper.connect") or ""
    session_timeout_ms = config.int("zookeeper.session.timeout.ms")
    connection_timeout = config.get("zookeeper.connection.timeout.ms")
    connection_timeout_ms = connection_timeout if isinstance(connection_timeout, int) else None
    security: StoreSecurity | None = None

    async def connect() -> MetadataStore:
        nonlocal security
        from kafka_compat.coordination.zookeeper_store.zookeeper import ZooKeeperMetadataStore

        if security is None:
            security = store_security(config)
        return await ZooKeeperMetadataStore.connect(
            hosts,
            session_timeout_ms=session_timeout_ms,
            connection_timeout_ms=connection_timeout_ms,
            security=security,
        )

    return connect


_JAAS: Final = "kafka.compat.zookeeper.sasl.jaas.config"
_JAAS_FILE: Final = "kafka.compat.zookeeper.sasl.jaas.file"
_SECTION: Final = "kafka.compat.zookeeper.sasl.jaas.section"
_ENABLE: Final = "kafka.compat.zookeeper.sasl.enable"
_MODULE: Final = "org.apache.zookeeper.server.auth.DigestLoginModule"
_EXPECTED: Final = f'expected {_MODULE} required username="NAME" password="PASSWORD";'


def store_security(config: BrokerConfig) -> StoreSecurity:
    """Read the security settings for sessions, and their files. Raises ConfigError if they are invalid."""
    login = _login(config)
    has_certificate = False
    security = OPEN._replace(login=login)
    if config.bool("zookeeper.ssl.client.enable"):
        from kafka_compat.cluster.zookeeper_tls import ZooKeeperTls

        security = security._replace(tls=ZooKeeperTls(config))
        has_certificate = bool(config.str("zookeeper.ssl.keystore.location"))
    if config.bool("zookeeper.set.acl"):
        if login is None and not has_certificate:
            raise ConfigError(
                "zookeeper.set.acl",
                "true",
                "this broker cannot own nodes without authenticating to ZooKeeper: it has no login "
                f"({_JAAS}, or the section {config.str(_SECTION)} of the file {_JAAS_FILE}) and no "
                "certificate (zookeeper.ssl.client.enable and zookeeper.ssl.keystore.location)",
                "expected one of them",
            )
        security = security._replace(protects_nodes=True)
    return security


def _login(config: BrokerConfig) -> DigestLogin | None:
    from kafka_compat.security import jaas

    text, path = config.str(_JAAS), config.str(_JAAS_FILE)
    section = config.str(_SECTION) or ""
    where = _JAAS if text else f"the section {section} of {path} ({_JAAS_FILE})"
    name, value = (_JAAS, "[hidden]") if text else (_JAAS_FILE, path)
    try:
        if text:
            modules = [jaas.parse(text)]
        elif path:
            with open(path, encoding="utf-8") as file:
                modules = jaas.parse_section(file.read(), section)
        else:
            return None
    except ValueError as error:
        raise ConfigError(name, value, str(error), _EXPECTED) from None
    except OSError as error:
        raise ConfigError(name, value, f"the file cannot be read: {error.strerror or error}") from error
    if not modules:
        # Ignore a file without this section: the file may be intended for other programs.
        return None
    if not config.bool(_ENABLE):
        reason = f"a login for ZooKeeper is configured in {where}"
        raise ConfigError(_ENABLE, "false", reason, "expected one or the other")
    module = modules[0]
    username, password = module.options.get("username"), module.options.get("password")
    if "Krb5" in module.name or not username or password is None:
        reason = f"{module.name} is not supported for ZooKeeper: only DIGEST-MD5 is"
        raise ConfigError(name, value, reason, _EXPECTED)
    return DigestLogin(username, password, where)
