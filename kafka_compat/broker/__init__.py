"""One broker: the composition root, which creates, starts and stops all parts in order.

Several brokers may run in one process. They share only the objects that are passed to them.

    settings = {"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": directory}
    broker = standalone_broker(BrokerConfig.from_properties(settings))
    await broker.start()
    print(broker.addresses["PLAINTEXT"])
    await broker.stop()
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka_compat.broker.broker import Broker
from kafka_compat.broker.hooks import BrokerHooks
from kafka_compat.errors import StartupError
from kafka_compat.handlers.served import CLUSTER_SERVED, QUORUM_SERVED, SERVED

if TYPE_CHECKING:
    from kafka_compat.broker.quorum_process import QuorumProcess
    from kafka_compat.cluster.own_store import NewTree
    from kafka_compat.cluster.quorum_store import QuorumStore
    from kafka_compat.cluster.shared_store import ConnectStore
    from kafka_compat.config import BrokerConfig

__all__ = [
    "Broker",
    "BrokerHooks",
    "StartupError",
    "cluster_broker",
    "migration_broker",
    "quorum_broker",
    "standalone_broker",
]


def standalone_broker(
    config: BrokerConfig, hooks: BrokerHooks | None = None, *, new_tree: NewTree | None = None
) -> Broker:
    """Create a standalone broker (a cluster of one). `new_tree` opens its metadata store."""
    from kafka_compat.cluster.membership import Membership
    from kafka_compat.cluster.own_store import OwnStore, new_unsynced_tree

    if new_tree is None and hooks is not None and not hooks.syncs:
        new_tree = new_unsynced_tree
    return Broker(config, Membership(OwnStore() if new_tree is None else OwnStore(new_tree)), SERVED, hooks)


def cluster_broker(
    config: BrokerConfig, connect_store: ConnectStore, hooks: BrokerHooks | None = None
) -> Broker:
    """Create a broker for a cluster. `connect_store` opens sessions with the cluster's metadata store."""
    from kafka_compat.cluster.membership import Membership
    from kafka_compat.cluster.shared_store import SharedStore

    return Broker(config, Membership(SharedStore(connect_store)), CLUSTER_SERVED, hooks)


def quorum_broker(config: BrokerConfig, hooks: BrokerHooks | None = None) -> Broker:
    """Create a broker of a cluster with a metadata quorum. It runs the quorum's node of this process."""
    from kafka_compat.broker.quorum_process import QuorumProcess
    from kafka_compat.cluster.quorum_store import QuorumStore

    process = QuorumProcess(config, hooks)
    return _quorum_broker(config, process, QuorumStore(process), hooks)


def migration_broker(
    config: BrokerConfig, connect_zookeeper: ConnectStore, hooks: BrokerHooks | None = None
) -> Broker:
    """Create a broker of a cluster whose metadata can move between ZooKeeper and a metadata quorum."""
    from kafka_compat.broker.quorum_process import QuorumProcess
    from kafka_compat.cluster.migration_store import MigrationStore

    process = QuorumProcess(config, hooks)
    return _quorum_broker(config, process, MigrationStore(process, connect_zookeeper), hooks)


def _quorum_broker(
    config: BrokerConfig, process: QuorumProcess, store: QuorumStore, hooks: BrokerHooks | None
) -> Broker:
    from kafka_compat.cluster.membership import Membership

    served = dict(sorted({**CLUSTER_SERVED, **QUORUM_SERVED}.items()))
    broker = Broker(config, Membership(store), served, hooks)
    process.on_fatal = lambda: broker.on_fatal()
    return broker
