"""Sizes and offsets of partitions led by other processes, queried from the leaders."""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from typing import TYPE_CHECKING, Final, NamedTuple

from kafka_compat.client.partitions import each_partition
from kafka_compat.long_work import Steps, batched
from kafka_compat.metrics.cluster_view import ClusterView
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.codec import MalformedRequest

if TYPE_CHECKING:
    from kafka_compat.cluster.remote_partitions import Bounds, RemotePartitions, TopicPartition

log = logging.getLogger(__name__)

PATIENCE_S: Final = 3.0
_FRESH_S: Final = 3.0
"""Maximum age of a reused report, in seconds."""
_LOG_DIRS_VERSION: Final = 2
_AT_ONCE: Final = 500


class RemoteReport(NamedTuple):
    """Data from leaders in other processes. `missing` lists the brokers that did not respond."""

    sizes: dict[TopicPartition, int]
    """Sizes of the leaders' logs, in bytes."""
    bounds: dict[TopicPartition, Bounds]
    missing: list[str]


_NOTHING: Final = RemoteReport({}, {}, [])


class RemoteLeaders:
    """Client for the leaders in other processes. Concurrent requests share one query."""

    def __init__(self) -> None:
        self._asking = asyncio.Lock()
        self._known: tuple[float, RemoteReport] | None = None

    async def look(self, cluster: ClusterView) -> RemoteReport:
        """Return a report that is at most three seconds old."""
        remote = cluster.remote_partitions()
        if remote is None:
            return _NOTHING
        async with self._asking:
            now_s = asyncio.get_running_loop().time()
            if self._known is None or now_s - self._known[0] > _FRESH_S:
                found = await _look(cluster, remote)
                self._known = asyncio.get_running_loop().time(), found
            return self._known[1]


async def _look(cluster: ClusterView, remote: RemotePartitions) -> RemoteReport:
    led = await cluster.long_work.finish(_led_by_others(cluster))
    found = RemoteReport({}, {}, [])
    await asyncio.gather(*(_ask(remote, leader, epochs, found) for leader, epochs in led.items()))
    return found


def _led_by_others(cluster: ClusterView) -> Steps[dict[int, dict[TopicPartition, int]]]:
    """Map each leader in another process to its partitions, and each partition to its leader epoch."""
    here = {services.broker_id for services in cluster.services}
    found: dict[int, dict[TopicPartition, int]] = defaultdict(dict)
    known = ((topic, each) for topic in list(cluster.metadata.topics.values()) for each in topic.partitions)
    for some in batched(known):
        for topic, partition in some:
            leader = cluster.metadata.reachable_leader(partition)
            if leader is not None and leader not in here:
                found[leader][topic.name, partition.partition] = partition.leader_epoch
        yield None
    return dict(found)


async def _ask(
    remote: RemotePartitions, leader_id: int, epochs: dict[TopicPartition, int], found: RemoteReport
) -> None:
    from kafka_compat.protocol.messages.describe_log_dirs import DescribeLogDirsRequest

    try:
        async with asyncio.timeout(PATIENCE_S):
            for some in batched(epochs.items(), _AT_ONCE):
                found.bounds.update(await remote.bounds(leader_id, dict(some)))
            answer = await remote.ask(
                leader_id, ApiKey.DESCRIBE_LOG_DIRS, _LOG_DIRS_VERSION, DescribeLogDirsRequest(topics=None)
            )
    except (ConnectionError, TimeoutError, MalformedRequest) as problem:
        log.info("Broker %d did not report its partitions: %r", leader_id, problem)
        found.missing.append(f"broker {leader_id} did not report the partitions that it leads")
        return
    for directory in answer.results:
        for place, each in each_partition(directory.topics):
            if place in epochs and not each.is_future_key:
                found.sizes[place] = each.partition_size
