"""Rows of the list of topics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kafka_compat.long_work import Steps

if TYPE_CHECKING:
    from kafka_compat.metadata.cache import PartitionMetadata, TopicMetadata
    from kafka_compat.metrics.cluster_view import ClusterView
    from kafka_compat.page.listing import Row
    from kafka_compat.page.remote_leaders import RemoteReport
    from kafka_compat.page.visit import Visit

_AT_ONCE: Final = 50
"""Partitions of a step."""


def topic_rows(visit: Visit, remote: RemoteReport) -> Steps[list[Row]]:
    """The topics that may be seen. What is not known is None."""
    found = []
    looked_at = 0
    for topic in list(visit.cluster.metadata.topics.values()):
        looked_at += 1 + len(topic.partitions)
        if visit.rights.may_see_topic(topic.name):
            found.append((yield from topic_row(visit, remote, topic)))
        if looked_at >= _AT_ONCE:
            looked_at = 0
            yield None
    return found


def topic_row(visit: Visit, remote: RemoteReport, topic: TopicMetadata) -> Steps[Row]:
    """Of one topic: `records` are offsets between both ends, `size_bytes` is of one copy."""
    cluster = visit.cluster
    records: int | None = 0
    size_bytes: int | None = 0
    leaderless = under_replicated = 0
    for number, known in enumerate(topic.partitions, 1):
        leaderless += cluster.metadata.reachable_leader(known) is None
        under_replicated += len(known.isr) < len(known.replicas)
        oldest, newest, log_bytes = extent(cluster, remote, topic.name, known)
        records = None if records is None or oldest is None or newest is None else records + newest - oldest
        size_bytes = None if size_bytes is None or log_bytes is None else size_bytes + log_bytes
        if number % _AT_ONCE == 0:
            yield None
    return {
        "name": topic.name,
        "is_internal": topic.is_internal,
        "partitions": len(topic.partitions),
        "replication_factor": len(topic.partitions[0].replicas) if topic.partitions else 0,
        "leaderless_partitions": leaderless,
        "under_replicated_partitions": under_replicated,
        "records": records,
        "records_per_second": visit.observed.rates.of(topic.name),
        "size_bytes": size_bytes,
    }


def extent(
    cluster: ClusterView, remote: RemoteReport, topic: str, known: PartitionMetadata
) -> tuple[int | None, int | None, int | None]:
    """Where a partition begins, up to where consumers may read, and the bytes of its leader's log."""
    led = cluster.led(topic, known)
    if led is not None:
        return led.log.log_start_offset, led.known_high_watermark, led.log.size_bytes
    place = (topic, known.partition)
    bounds = remote.bounds.get(place)
    if bounds is None:
        return None, None, remote.sizes.get(place)
    return bounds.oldest, bounds.newest, remote.sizes.get(place)
