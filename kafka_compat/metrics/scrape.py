"""One scrape, in steps: what there is to say of brokers, topics and groups at its time.

As kafka_exporter does: a group shows each partition of a topic of which it committed any, -1 where it has
not; lag is what lies between the committed offset and where consumers may read to.

What nobody in this process knows is left out: where a partition is led in another one, its offsets and the
lag there, and the sums that these belong to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka_compat.long_work import Steps
from kafka_compat.metrics.families import Families
from kafka_compat.metrics.record_times import RecordTimes
from kafka_compat.metrics.sight import Sight, newest_offset
from kafka_compat.metrics.text import escaped
from kafka_compat.storage.errors import StorageError

if TYPE_CHECKING:
    from kafka_compat.groups.coordinator import GroupProgress
    from kafka_compat.metadata.cache import TopicMetadata

_AT_ONCE = 50
"""Partitions of a step: some 500 µs."""


def scrape(sight: Sight, times: RecordTimes, *, by_partition: bool) -> Steps[list[bytes]]:
    """The text. `by_partition=False`: without samples of single partitions."""
    families = Families(by_partition=by_partition)
    _brokers(sight, families)
    for topic in list(sight.metadata.topics.values()):
        yield from _topic(sight, families, topic)
    times.begin()
    for coordinator in sight.coordinators():
        for group_id in coordinator.group_ids():
            progress = coordinator.progress(group_id)
            if progress is not None:
                yield from _group(sight, families, times, group_id, progress)
    return families.pieces()


def _brokers(sight: Sight, families: Families) -> None:
    brokers = sight.metadata.brokers
    families.brokers.add("", len(brokers))
    for broker in list(brokers.values()):
        address = sight.address(broker)
        if address is not None:
            host, port = address
            shown = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
            families.broker_info.add(f'{{address="{escaped(shown)}",id="{broker.broker_id}"}}', 1)


def _topic(sight: Sight, families: Families, topic: TopicMetadata) -> Steps[None]:
    name = topic.name
    of_topic = f'topic="{escaped(name)}"}}'
    current_sum: int | None = 0
    oldest_sum: int | None = 0
    leaderless = under_replicated = 0
    for count, known in enumerate(topic.partitions):
        if count % _AT_ONCE == 0:
            yield None
        labels = f'{{partition="{known.partition}",{of_topic}'
        leader = sight.metadata.reachable_leader(known)
        if leader is None:
            leaderless += 1
        else:
            families.leader.add(labels, leader)
        led = sight.led(name, known)
        newest = newest_offset(led)
        if newest is None:
            current_sum = None
        else:
            families.current_offset.add(labels, newest)
            current_sum = None if current_sum is None else current_sum + newest
        if led is None:
            oldest_sum = None
        else:
            oldest = led.log.log_start_offset
            families.oldest_offset.add(labels, oldest)
            oldest_sum = None if oldest_sum is None else oldest_sum + oldest
        is_under_replicated = len(known.isr) < len(known.replicas)
        under_replicated += is_under_replicated
        families.replicas.add(labels, len(known.replicas))
        families.in_sync_replica.add(labels, len(known.isr))
        families.leader_is_preferred.add(labels, int(leader is not None and leader == known.replicas[0]))
        families.under_replicated.add(labels, int(is_under_replicated))
    labels = "{" + of_topic
    families.partitions.add(labels, len(topic.partitions))
    families.under_replicated_count.add(labels, under_replicated)
    families.leaderless_count.add(labels, leaderless)
    if current_sum is not None:
        families.current_offset_sum.add(labels, current_sum)
    if oldest_sum is not None:
        families.oldest_offset_sum.add(labels, oldest_sum)


def _group(
    sight: Sight, families: Families, times: RecordTimes, group_id: str, progress: GroupProgress
) -> Steps[None]:
    group = f'consumergroup="{escaped(group_id)}"'
    families.members.add(f"{{{group}}}", progress.members)
    oldest_ms: int | None = 0
    committed_to = dict.fromkeys(topic for topic, _ in progress.committed)
    yield None
    for name in committed_to:
        topic = sight.metadata.topics.get(name)
        if topic is not None:
            found_ms = yield from _group_at(sight, families, times, group, progress, topic)
            oldest_ms = None if oldest_ms is None or found_ms is None else max(oldest_ms, found_ms)
    if oldest_ms is not None and committed_to:
        families.lag_seconds_max.add(f"{{{group}}}", oldest_ms / 1000)


def _group_at(
    sight: Sight,
    families: Families,
    times: RecordTimes,
    group: str,
    progress: GroupProgress,
    topic: TopicMetadata,
) -> Steps[int | None]:
    """A group at a topic; how old the oldest record is that it has not committed there, None where nobody
    here knows.
    """
    name = topic.name
    of_topic = f'topic="{escaped(name)}"}}'
    committed_sum = 0
    lag_sum: int | None = 0
    oldest_ms: int | None = 0
    for count, known in enumerate(topic.partitions):
        if count % _AT_ONCE == 0:
            yield None
        labels = f'{{{group},partition="{known.partition}",{of_topic}'
        position = progress.committed.get((name, known.partition))
        committed = -1 if position is None else position.value.offset
        families.committed.add(labels, committed)
        committed_sum += committed
        if position is None:
            families.lag.add(labels, -1)
            continue
        led = sight.led(name, known)
        newest = newest_offset(led)
        if led is None or newest is None:
            lag_sum = oldest_ms = None
            continue
        lag = newest - committed
        families.lag.add(labels, lag)
        lag_sum = None if lag_sum is None else lag_sum + lag
        try:
            lag_ms = yield from times.lag_ms(led, committed, sight.now_ms())
        except StorageError:
            lag_ms = None
        if lag_ms is None:
            oldest_ms = None
        else:
            families.lag_seconds.add(labels, lag_ms / 1000)
            oldest_ms = None if oldest_ms is None else max(oldest_ms, lag_ms)
    labels = f"{{{group},{of_topic}"
    families.committed_sum.add(labels, committed_sum)
    if lag_sum is not None:
        families.lag_sum.add(labels, lag_sum)
    return oldest_ms
