"""One broker: the composition root, and the order in which its parts start and stop.

Several may live in one process: nothing is shared but what is passed in.

    settings = {"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": folder}
    broker = standalone_broker(BrokerConfig.from_properties(settings))
    await broker.start()
    print(broker.addresses["PLAINTEXT"])
    await broker.stop()
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from kafka_compat.broker.broker import Broker
from kafka_compat.clock import Clock
from kafka_compat.config import BrokerConfig
from kafka_compat.errors import StartupError
from kafka_compat.handlers.served import CLUSTER_SERVED, SERVED
from kafka_compat.storage.filesystem import Filesystem

if TYPE_CHECKING:
    from kafka_compat.cluster.membership import Membership
    from kafka_compat.cluster.own_store import NewTree
    from kafka_compat.cluster.session import ConnectStore
    from kafka_compat.coordinator_runtime.scheduler import Scheduler
    from kafka_compat.network.stages import Stages
    from kafka_compat.storage.directories.directory_worker import Worker
    from kafka_compat.telemetry.pushed import PushedMetrics

__all__ = ["Broker", "StartupError", "cluster_broker", "standalone_broker"]


def standalone_broker(
    config: BrokerConfig,
    *,
    clock: Clock | None = None,
    filesystem: Filesystem | None = None,
    scheduler: Scheduler | None = None,
    stages: Stages | None = None,
    new_worker: Callable[[str], Worker] | None = None,
    pushed: PushedMetrics | None = None,
    new_tree: NewTree | None = None,
) -> Broker[Membership]:
    """A standalone broker, a cluster of one; `clock`, `filesystem` (of its logs), `scheduler` (of its
    coordinators' timers), `new_worker` (for each log directory) and `new_tree` (of its metadata) are the
    machine's own by default; `stages` are what requests go through beside their handlers, `pushed` takes what
    clients push of their metrics.
    """
    from kafka_compat.cluster.membership import Membership
    from kafka_compat.cluster.own_store import OwnStore

    return Broker(
        config,
        Membership(OwnStore() if new_tree is None else OwnStore(new_tree)),
        SERVED,
        clock=clock,
        filesystem=filesystem,
        scheduler=scheduler,
        stages=stages,
        new_worker=new_worker,
        pushed=pushed,
    )


def cluster_broker(
    config: BrokerConfig,
    connect_store: ConnectStore,
    *,
    clock: Clock | None = None,
    filesystem: Filesystem | None = None,
    scheduler: Scheduler | None = None,
    stages: Stages | None = None,
    new_worker: Callable[[str], Worker] | None = None,
    pushed: PushedMetrics | None = None,
) -> Broker[Membership]:
    """A broker of the cluster with whose metadata store `connect_store` opens sessions; the rest as above."""
    from kafka_compat.cluster.membership import Membership
    from kafka_compat.cluster.shared_store import SharedStore

    return Broker(
        config,
        Membership(SharedStore(connect_store)),
        CLUSTER_SERVED,
        clock=clock,
        filesystem=filesystem,
        scheduler=scheduler,
        stages=stages,
        new_worker=new_worker,
        pushed=pushed,
    )
