"""What the page keeps in memory between visits."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from kafka_compat.metrics.cluster_view import ClusterView, NoBrokerRuns
from kafka_compat.metrics.group_lag import RecordTimes
from kafka_compat.network.strangers import Refusals
from kafka_compat.page.copies import Copies
from kafka_compat.page.log_lines import LogLines
from kafka_compat.page.rates import EVERY_S, Rates, record_counts
from kafka_compat.page.remote_leaders import RemoteLeaders

if TYPE_CHECKING:
    from kafka_compat.broker import Broker
    from kafka_compat.decoding.registry import Registry
    from kafka_compat.metadata.feed import MetadataDelta
    from kafka_compat.network.server import Server

log = logging.getLogger(__name__)


class Observed:
    """Of the brokers of this process."""

    def __init__(self, brokers: Sequence[Broker], registry: Registry | None) -> None:
        """On their event loop, while they run."""
        self._brokers = brokers
        self.registry = registry
        """The schema registry, with the schemas that it returned; None where none is set."""
        self.remote = RemoteLeaders()
        """Reports of leaders in other processes."""
        self.copies = Copies()
        """Of topics, record by record."""
        self.rates = Rates()
        """Of topics."""
        self.times = RecordTimes()
        """Since when records wait for groups."""
        self.refusals = Refusals(brokers[0].services.clock.now_ms)
        """Who was refused, and why."""
        self.log = LogLines(self.refusals.note)
        """The last lines of the log."""
        for broker in brokers:
            broker.subscribe(self._on_metadata)

    def _on_metadata(self, delta: MetadataDelta) -> None:
        for topic in delta.deleted:
            self.rates.forget_topic(topic.name)
            self.times.forget_topic(topic.name)

    def servers(self) -> list[tuple[int, Server]]:
        """Of the brokers that run, with their ids."""
        return [(broker.broker_id, broker.server) for broker in self._brokers if broker.is_running]

    def cluster(self) -> ClusterView:
        """What the brokers know now. Raises NoBrokerRuns."""
        return ClusterView(self._brokers)

    async def watch(self) -> None:
        """Look at the brokers every EVERY_S, until it is cancelled."""
        loop = asyncio.get_running_loop()
        logging.root.addHandler(self.log)
        try:
            while True:
                # A broker that starts anew has a new server.
                for _, server in self.servers():
                    server.refusals = self.refusals
                try:
                    cluster = ClusterView(self._brokers)
                    counts = await cluster.long_work.finish(record_counts(cluster))
                    self.rates.add(loop.time(), counts)
                except NoBrokerRuns:
                    # It stops, or starts anew.
                    self.rates.forget()
                except Exception:
                    log.exception("looking at the brokers failed")
                await asyncio.sleep(EVERY_S)
        finally:
            logging.root.removeHandler(self.log)
            await self.copies.close()
