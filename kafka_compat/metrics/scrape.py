"""One scrape, in steps: what there is to say of brokers, topics and groups at its time.

As kafka_exporter does: a group shows each partition of a topic of which it committed any, -1 where it has
not; lag is what lies between the committed offset and where consumers may read to.

What is not known is left out, and so are the sums that it belongs to. Of a partition that another process
leads the offsets are told there; of a group that is coordinated here, also what its leader was asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from kafka_compat.long_work import Steps
from kafka_compat.metrics.elsewhere import FarLag, GroupPartition
from kafka_compat.metrics.families import Families
from kafka_compat.metrics.record_times import RecordTimes, age_ms
from kafka_compat.metrics.sight import Sight, newest_offset
from kafka_compat.metrics.text import escaped
from kafka_compat.storage.errors import StorageError

if TYPE_CHECKING:
    from kafka_compat.groups.coordinator import GroupProgress
    from kafka_compat.metadata.cache import TopicMetadata
    from kafka_compat.replication.partition import Partition

_AT_ONCE = 50
"""Partitions of a step: some 500 µs."""


def scrape(
    sight: Sight, times: RecordTimes, elsewhere: Mapping[GroupPartition, FarLag], *, by_partition: bool
) -> Steps[list[bytes]]:
    """The text. `elsewhere` is what is known of partitions that others lead. `by_partition=False`: without
    samples of single partitions.
    """
    families = Families(by_partition=by_partition)
    _brokers(sight, families)
    for topic in list(sight.metadata.topics.values()):
        yield from _topic(sight, families, topic)
    times.begin()
    groups = _Groups(sight, families, times, elsewhere)
    for coordinator in sight.coordinators():
        for group_id in coordinator.group_ids():
            progress = coordinator.progress(group_id)
            if progress is not None:
                yield from groups.add(group_id, progress)
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


class _Groups:
    """What there is to say of groups."""

    def __init__(
        self,
        sight: Sight,
        families: Families,
        times: RecordTimes,
        elsewhere: Mapping[GroupPartition, FarLag],
    ) -> None:
        self._sight = sight
        self._families = families
        self._times = times
        self._elsewhere = elsewhere

    def add(self, group_id: str, progress: GroupProgress) -> Steps[None]:
        labels = f'{{consumergroup="{escaped(group_id)}"}}'
        self._families.members.add(labels, progress.members)
        oldest_ms: int | None = 0
        committed_to = dict.fromkeys(topic for topic, _ in progress.committed)
        yield None
        for name in committed_to:
            topic = self._sight.metadata.topics.get(name)
            if topic is not None:
                found_ms = yield from self._add_topic(group_id, progress, topic)
                oldest_ms = None if oldest_ms is None or found_ms is None else max(oldest_ms, found_ms)
        if oldest_ms is not None and committed_to:
            self._families.lag_seconds_max.add(labels, oldest_ms / 1000)

    def _add_topic(self, group_id: str, progress: GroupProgress, topic: TopicMetadata) -> Steps[int | None]:
        """A group at a topic; how old the oldest record is that it has not committed there, None where that
        is not known.
        """
        families = self._families
        name = topic.name
        group, of_topic = f'consumergroup="{escaped(group_id)}"', f'topic="{escaped(name)}"}}'
        committed_sum = 0
        lag_sum: int | None = 0
        oldest_ms: int | None = 0
        for count, known in enumerate(topic.partitions):
            if count % _AT_ONCE == 0:
                yield None
            labels = f'{{{group},partition="{known.partition}",{of_topic}'
            position = progress.committed.get((name, known.partition))
            if position is None:
                families.committed.add(labels, -1)
                families.lag.add(labels, -1)
                committed_sum -= 1
                continue
            led = self._sight.led(name, known)
            if led is not None:
                seen = yield from self._at_leader(led, position.value.offset)
            else:
                seen = self._far_away((group_id, name, known.partition), position.value.offset)
            families.committed.add(labels, seen.committed)
            committed_sum += seen.committed
            if seen.lag is not None:
                families.lag.add(labels, seen.lag)
            if seen.lag_ms is not None:
                families.lag_seconds.add(labels, seen.lag_ms / 1000)
            lag_sum = None if lag_sum is None or seen.lag is None else lag_sum + seen.lag
            oldest_ms = None if oldest_ms is None or seen.lag_ms is None else max(oldest_ms, seen.lag_ms)
        labels = f"{{{group},{of_topic}"
        families.committed_sum.add(labels, committed_sum)
        if lag_sum is not None:
            families.lag_sum.add(labels, lag_sum)
        return oldest_ms

    def _at_leader(self, led: Partition, committed: int) -> Steps[_Seen]:
        newest = newest_offset(led)
        if newest is None:
            return _Seen(committed, None, None)
        try:
            lag_ms = yield from self._times.lag_ms(led, committed, self._sight.now_ms())
        except StorageError:
            lag_ms = None
        return _Seen(committed, newest - committed, lag_ms)

    def _far_away(self, key: GroupPartition, committed: int) -> _Seen:
        told = self._elsewhere.get(key)
        if told is None:
            return _Seen(committed, None, None)
        lag_ms = age_ms(told.since_ms, self._sight.now_ms())
        return _Seen(told.committed, told.newest - told.committed, lag_ms)


class _Seen(NamedTuple):
    """A group at a partition; None where that is not known."""

    committed: int
    lag: int | None
    lag_ms: int | None
