"""`kafka-compat serve --brokers N`: a cluster of N brokers in one process, on one embedded tree."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys

from kafka_compat.broker import StartupError, cluster_broker
from kafka_compat.cli.foreground import STOP_TIMEOUT_S, ready_line
from kafka_compat.cli.local_brokers import Tree, broker_configs
from kafka_compat.config import BrokerConfig
from kafka_compat.coordination.metadata_store import MetadataStore

log = logging.getLogger(__name__)


class LocalCluster:
    """The brokers and their tree."""

    def __init__(self, config: BrokerConfig, count: int) -> None:
        """Raises StartupError."""
        configs = broker_configs(config, count)
        self._tree = Tree(config)
        self.brokers = [cluster_broker(each, self._connect) for each in configs]
        self._wanted_topics = config.create_topics

    async def _connect(self) -> MetadataStore:
        return self._tree.store.connect()

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
    except StartupError as error:
        print(f"kafka-compat serve: {error}", file=sys.stderr)
        return 2
    for broker in cluster.brokers:
        print(ready_line(broker), flush=True)
    await stop.wait()
    try:
        await asyncio.wait_for(cluster.stop(), STOP_TIMEOUT_S)
    except TimeoutError:
        log.error(
            "The brokers did not stop within %s s; the next start will check their logs", STOP_TIMEOUT_S
        )
        return 1
    return 1 if failed else 0
