"""Sessions with the ZooKeeper that zookeeper.connect names."""

from __future__ import annotations

from kafka_compat.cluster.session import ConnectStore
from kafka_compat.cluster.zookeeper_security import store_security
from kafka_compat.config import BrokerConfig
from kafka_compat.coordination.store.metadata_store import MetadataStore
from kafka_compat.coordination.zookeeper_store.security import StoreSecurity


def zookeeper_sessions(config: BrokerConfig) -> ConnectStore:
    """What opens a session as the settings zookeeper.* say. The first one raises ConfigError when they
    cannot be."""
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
