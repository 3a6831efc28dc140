"""Sessions with the ZooKeeper that zookeeper.connect names."""

from __future__ import annotations

from kafka_compat.cluster.session import ConnectStore
from kafka_compat.config import BrokerConfig
from kafka_compat.coordination.metadata_store import MetadataStore


def zookeeper_sessions(config: BrokerConfig) -> ConnectStore:
    """What opens a session as the settings zookeeper.* say."""
    hosts = config.str("zookeeper.connect") or ""
    session_timeout_ms = config.int("zookeeper.session.timeout.ms")
    connection_timeout = config.get("zookeeper.connection.timeout.ms")
    connection_timeout_ms = connection_timeout if isinstance(connection_timeout, int) else None

    async def connect() -> MetadataStore:
        from kafka_compat.coordination.zookeeper import ZooKeeperMetadataStore

        return await ZooKeeperMetadataStore.connect(
            hosts, session_timeout_ms=session_timeout_ms, connection_timeout_ms=connection_timeout_ms
        )

    return connect
