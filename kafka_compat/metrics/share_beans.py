"""Kafka's metrics of share groups: share-partitions, dead letter queues, and the share coordinator."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Final

from kafka_compat.long_work import Steps, batched
from kafka_compat.metadata.topic_names import SHARE_STATE_TOPIC
from kafka_compat.metrics.dialects import NO_TAGS, Bean, Tags
from kafka_compat.share_partitions.changes import ACCEPT, REJECT, RELEASE, RENEW

if TYPE_CHECKING:
    from kafka_compat.metrics.beans import Beans
    from kafka_compat.metrics.cluster_view import ClusterView
    from kafka_compat.share_coordinator.coordinator import ShareCoordinator
    from kafka_compat.share_coordinator.samples import Samples
    from kafka_compat.share_partitions.counts import GroupCounts
    from kafka_compat.share_partitions.led_share_partition import LedSharePartition
    from kafka_compat.share_partitions.share_partition_manager import SharePartitionManager

_COORDINATOR: Final = "share-coordinator-metrics"
_ACK_TYPES: Final = {ACCEPT: "Accept", RELEASE: "Release", REJECT: "Reject", RENEW: "Renew"}


def share_groups(view: ClusterView, beans: Beans) -> Steps[None]:
    """Add the metrics of the share-partitions that this process leads, and of its share coordinators."""
    acknowledged: Counter[int] = Counter()
    load_ms: list[float] = []
    loads = 0
    coordinators = []
    for services in view.services:
        if (coordinator := services.coordinators.shares.made) is not None:
            coordinators.append(coordinator)
        manager = services.coordinators.share_partitions.made
        if manager is None:
            continue
        acknowledged += manager.counts.acknowledged
        loads += manager.counts.load_ms.count
        load_ms += manager.counts.load_ms.kept
        yield from _groups(manager, beans)
        for some in batched(list(manager), 200):
            for led in some:
                _share_partition(led, beans)
            yield None
    for kind, name in _ACK_TYPES.items():
        beans.counter(_group("RecordAcknowledgementsPerSec"), acknowledged[kind], {"ackType": name})
    beans.distribution(_group("PartitionLoadTimeMs"), loads, sorted(load_ms))
    _coordinators(coordinators, beans)


def _groups(manager: SharePartitionManager, beans: Beans) -> Steps[None]:
    for some in batched(list(manager.counts.groups.items()), 100):
        for group_id, counts in some:
            _of_group(counts, {"group": group_id}, beans)
        yield None


def _of_group(counts: GroupCounts, tags: Tags, beans: Beans) -> None:
    _samples(_group("RequestTopicPartitionsFetchRatio"), counts.fetch_ratio, tags, beans)
    _samples(_group("TopicPartitionsAcquireTimeMs"), counts.acquire_ms, tags, beans)
    for name, value in (
        ("DeadLetterQueueRecordCount", counts.dead_letters),
        ("DeadLetterQueueTotalProduceRequestsPerSec", counts.dead_letter_requests),
        ("DeadLetterQueueFailedProduceRequestsPerSec", counts.failed_dead_letter_requests),
    ):
        if counts.dead_letter_requests:
            beans.counter(_group(name), value, tags)


def _share_partition(led: LedSharePartition, beans: Beans) -> None:
    if led.machine is None:
        return
    tags = {"group": led.key.group_id, "topic": led.replica.topic, "partition": str(led.key.partition)}
    beans.gauge(_partition("InFlightMessageCount"), led.machine.in_flight_count, tags)
    beans.gauge(_partition("InFlightBatchCount"), len(led.machine.batches), tags)
    beans.counter(_partition("AcquisitionLockTimeoutPerSec"), led.lock_timeouts, tags)
    _samples(_partition("InFlightBatchMessageCount"), led.batch_sizes, tags, beans)


def _coordinators(coordinators: list[ShareCoordinator], beans: Beans) -> None:
    load_ms: list[int] = []
    write_ms: list[float] = []
    writes = active = loading = 0
    pruned: dict[int, int] = {}
    for each in coordinators:
        load_ms += each.load_times_ms
        write_ms += each.write_ms.kept
        writes += each.write_ms.count
        active += each.active_count
        loading += each.loading_count
        pruned.update(each.pruned_offsets)
    for attribute, values in (("partition-load-time", load_ms), ("write-latency", write_ms)):
        average_ms = sum(values) / len(values) if values else math.nan
        beans.attribute(_COORDINATOR, f"{attribute}-avg", average_ms)
        beans.attribute(_COORDINATOR, f"{attribute}-max", max(values, default=math.nan))
    beans.attribute(_COORDINATOR, "write-total", writes)
    for state, count in (("loading", loading), ("active", active), ("failed", 0)):
        beans.attribute(_COORDINATOR, "num-partitions", count, {"state": state})
    for partition, offset in pruned.items():
        tags = {"topic": SHARE_STATE_TOPIC, "partition": str(partition)}
        beans.attribute(_COORDINATOR, "last-pruned-offset", offset, tags)


def _samples(bean: Bean, samples: Samples, tags: Tags, beans: Beans) -> None:
    beans.distribution(bean, samples.count, sorted(samples.kept), tags or NO_TAGS)


def _group(name: str) -> Bean:
    return Bean("server", "ShareGroupMetrics", name)


def _partition(name: str) -> Bean:
    return Bean("server", "SharePartitionMetrics", name)
