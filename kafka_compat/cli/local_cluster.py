"""`kafka-compat serve --brokers N`: a cluster of N brokers in one process, on one embedded tree.

Broker 1 listens where a single broker would, the others on the ports after it (any free ports for port 0);
their folders are `broker-1`, `broker-2`, … under log.dirs, and the tree's journal is beside them.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys

from kafka_compat.broker import StartupError, cluster_broker
from kafka_compat.config import BrokerConfig
from kafka_compat.coordination.embedded import EmbeddedMetadataStore
from kafka_compat.coordination.journal import CorruptJournal
from kafka_compat.coordination.metadata_store import MetadataStore
from kafka_compat.membership.lone import JOURNAL_NAME

log = logging.getLogger(__name__)

STOP_TIMEOUT_S = 4.5
_REPLICATED = ("offsets.topic.replication.factor", "transaction.state.log.replication.factor")


def broker_settings(config: BrokerConfig, broker_id: int, count: int) -> dict[str, str]:
    """The settings of one broker of the cluster."""
    listeners = ",".join(
        f"{item.name}://{item.host}:{item.port + broker_id - 1 if item.port else 0}"
        for item in config.listeners
    )
    replicated = {name: str(min(config.int(name), count)) for name in _REPLICATED}
    folders = ",".join(os.path.join(folder, f"broker-{broker_id}") for folder in config.log_dirs)
    return {
        **{name: value for name, value in config.static.items() if name not in ("node.id", "log.dir")},
        **replicated,
        "broker.id": str(broker_id),
        "listeners": listeners,
        "log.dirs": folders,
    }


class LocalCluster:
    """The brokers and their tree."""

    def __init__(self, config: BrokerConfig, count: int) -> None:
        folder = config.log_dirs[0]
        os.makedirs(folder, exist_ok=True)
        self._tree = EmbeddedMetadataStore(os.path.join(folder, JOURNAL_NAME))
        self.brokers = [
            cluster_broker(
                BrokerConfig.from_properties(broker_settings(config, broker_id, count)), self._connect
            )
            for broker_id in range(1, count + 1)
        ]
        self._wanted_topics = config.create_topics

    async def _connect(self) -> MetadataStore:
        return self._tree.connect()

    async def start(self) -> None:
        """Start all brokers. Raises StartupError, with none left running, when one cannot start."""
        outcomes = await asyncio.gather(*(broker.start() for broker in self.brokers), return_exceptions=True)
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                await self.stop()
                raise outcome
        await self.brokers[0].create_wanted_topics(self._wanted_topics)

    async def stop(self) -> None:
        """Stop all brokers. Nobody is left to take over what one of them leads, so none asks for it."""
        await asyncio.gather(*(broker.stop(controlled=False) for broker in self.brokers))
        await self._tree.close()


async def serve_local_cluster(config: BrokerConfig, count: int) -> int:
    """Run the cluster until SIGINT or SIGTERM. Returns the exit code."""
    stop = asyncio.Event()
    failed = False

    def fail() -> None:
        nonlocal failed
        failed = True
        stop.set()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    try:
        cluster = LocalCluster(config, count)
        for broker in cluster.brokers:
            broker.on_fatal = fail
        await cluster.start()
    except (StartupError, CorruptJournal, OSError) as error:
        print(f"kafka-compat serve: {error}", file=sys.stderr)
        return 2
    for broker in cluster.brokers:
        addresses = ", ".join(f"{name}://{host}:{port}" for name, (host, port) in broker.addresses.items())
        folders = ", ".join(broker.config.log_dirs)
        print(f"Broker {broker.broker_id} ready on {addresses}, data in {folders}", flush=True)
    await stop.wait()
    try:
        await asyncio.wait_for(cluster.stop(), STOP_TIMEOUT_S)
    except TimeoutError:
        log.error(
            "The brokers did not stop within %s s; the next start will check their logs", STOP_TIMEOUT_S
        )
        return 1
    return 1 if failed else 0
