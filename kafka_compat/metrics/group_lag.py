"""The lag of the consumer groups that this process coordinates, by the rules in kafka_compat/lag.py.

Leaders in other processes are queried only for partitions with committed offsets, because each request takes
time. The results are not cached, because this process is not notified of records that compaction removed.
Partitions whose leaders do not respond in time are omitted.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Mapping
from functools import partial
from itertools import starmap
from typing import TYPE_CHECKING, NamedTuple

from kafka_compat.lag import UNKNOWN_MS, records_behind, time_behind_ms
from kafka_compat.long_work import Steps, batched
from kafka_compat.protocol.codec import MalformedRequest
from kafka_compat.storage.errors import StorageError
from kafka_compat.storage.log.first_record import first_record_from
from kafka_compat.storage.log.timestamp_lookup import ANY_TIMESTAMP, TimestampOffset, first_of_batch, is_quick
from kafka_compat.storage.records.batch import read_header

if TYPE_CHECKING:
    from kafka_compat.cluster.remote_partitions import RemotePartitions, TopicPartition
    from kafka_compat.metadata.cache import PartitionMetadata
    from kafka_compat.metrics.cluster_view import ClusterView
    from kafka_compat.replication.partition import Partition
    from kafka_compat.storage.log.log import Log

log = logging.getLogger(__name__)

PATIENCE_S = 3.0
"""Timeout of the queries in seconds. Prometheus waits for ten seconds by default."""
_AT_ONCE = 16
_BATCHES_MAX = 64
"""Maximum number of marker batches that are skipped to find a record."""

GroupPartition = tuple[str, str, int]
"""A group, and the topic and number of a partition."""


class RemoteLag(NamedTuple):
    """A group's lag for a partition. `since_ms` is the timestamp of the first record at or after the
    committed offset: None if there is no such record, UNKNOWN_MS if its timestamp is unknown.
    """

    committed: int
    end: int
    since_ms: int | None


class _Asked(NamedTuple):
    leader_epochs: dict[TopicPartition, int]
    committed: dict[GroupPartition, int]


async def remote_lags(view: ClusterView, group: str | None = None) -> dict[GroupPartition, RemoteLag]:
    """Return the lags of all groups or of one group, as reported by leaders in other processes, or {} for a
    standalone broker.
    """
    remote = view.remote_partitions()
    if remote is None:
        return {}
    found: dict[GroupPartition, RemoteLag] = {}
    asked = await view.long_work.finish(_to_ask(view, group))
    await asyncio.gather(*(_ask(view, remote, leader, each, found) for leader, each in asked.items()))
    return found


def _to_ask(view: ClusterView, group: str | None) -> Steps[dict[int, _Asked]]:
    asked: dict[int, _Asked] = defaultdict(lambda: _Asked({}, {}))
    for coordinator in view.coordinators():
        for group_id in coordinator.group_ids() if group is None else [group]:
            progress = coordinator.progress(group_id)
            for some in batched(list(progress.committed.items()) if progress is not None else []):
                for (topic, number), position in some:
                    known = view.metadata.partition(topic, number)
                    leader = None if known is None else view.metadata.reachable_leader(known)
                    if known is None or leader is None or view.led(topic, known) is not None:
                        continue
                    at_leader = asked[leader]
                    at_leader.leader_epochs[topic, number] = known.leader_epoch
                    at_leader.committed[group_id, topic, number] = position.value.offset
                yield None
            yield None
    return dict(asked)


async def _ask(
    view: ClusterView,
    remote: RemotePartitions,
    leader_id: int,
    asked: _Asked,
    found: dict[GroupPartition, RemoteLag],
) -> None:
    behind: dict[tuple[TopicPartition, int], list[GroupPartition]] = defaultdict(list)
    try:
        async with asyncio.timeout(PATIENCE_S):
            bounds = await remote.bounds(leader_id, asked.leader_epochs)
            for key, committed in asked.committed.items():
                place = key[1:]
                if place in bounds:
                    oldest, newest = bounds[place]
                    is_behind = committed < newest
                    found[key] = RemoteLag(committed, newest, UNKNOWN_MS if is_behind else None)
                    if is_behind:
                        behind[place, max(committed, oldest)].append(key)

            async def look(place: TopicPartition, offset: int) -> None:
                epoch, newest = asked.leader_epochs[place], bounds[place].newest
                since_ms = await _since_ms(view, remote, leader_id, place, epoch, offset, newest)
                for key in behind[place, offset]:
                    found[key] = found[key]._replace(since_ms=since_ms)

            for some in batched(list(behind), _AT_ONCE):
                await asyncio.gather(*starmap(look, some))
    except (ConnectionError, TimeoutError, MalformedRequest) as problem:
        log.info("Broker %d did not report the offsets of its partitions: %r", leader_id, problem)


async def _since_ms(
    view: ClusterView,
    remote: RemotePartitions,
    leader_id: int,
    place: TopicPartition,
    leader_epoch: int,
    offset: int,
    end_offset: int,
) -> int | None:
    """Return the timestamp of the first record in [offset, end_offset), encoded like RemoteLag.since_ms."""
    for _ in range(_BATCHES_MAX):
        if offset >= end_offset:
            return None
        data = await remote.batch_at(leader_id, place, leader_epoch, offset)
        if data is None:
            return UNKNOWN_MS
        if not data:
            return None
        try:
            header = read_header(data)
            if not header.is_control:
                look = partial(first_of_batch, data, header, ANY_TIMESTAMP, offset)
                record = look() if is_quick(header) else await view.long_work.in_thread(look)
                if record is not None:
                    return record.timestamp if record.offset < end_offset else None
        except StorageError:
            return UNKNOWN_MS
        offset = header.next_offset
    return UNKNOWN_MS


class Lag(NamedTuple):
    """A group's lag for a partition. Unknown values are None."""

    committed: int
    records: int | None
    ms: int | None


class _Known(NamedTuple):
    log: Log
    removals: int
    end_offset: int
    """End of the scanned range."""
    record: TimestampOffset | None
    """The first record, or None if the range contains only transaction markers."""


class RecordTimes:
    """Timestamps of the first records at or after committed offsets, cached between scrapes.

    An entry is valid until records are removed from the log (compaction, retention, truncation). A scrape
    therefore reads records only for changed offsets.
    """

    def __init__(self) -> None:
        self._before: dict[tuple[str, int, int], _Known] = {}
        self._now: dict[tuple[str, int, int], _Known] = {}

    def begin(self) -> None:
        """Begin a scrape, and discard the entries that the last scrape did not use."""
        self._before, self._now = self._now, {}

    def forget_topic(self, topic: str) -> None:
        """Discard the entries of a deleted topic, to release its logs before the next scrape."""
        for known in (self._before, self._now):
            for key in [key for key in known if key[0] == topic]:
                del known[key]

    def first_uncommitted_ms(self, led: Partition, committed: int) -> Steps[int | None]:
        """Return the timestamp of the first record at or after `committed`, or None if there is no such
        record. If the record has no timestamp, the result is negative. Raises StorageError if the read fails.
        """
        record = yield from self._first(led, max(committed, led.log.log_start_offset))
        return None if record is None else record.timestamp

    def _first(self, led: Partition, offset: int) -> Steps[TimestampOffset | None]:
        log, end_offset = led.log, led.high_watermark
        if offset >= end_offset:
            return None
        removals, begin = log.segments.removals, offset
        key = (led.topic, led.partition, offset)
        known = self._now.get(key) or self._before.get(key)
        if known is not None and known.log is log and known.removals == removals:
            if known.record is not None or known.end_offset >= end_offset:
                self._now[key] = known
                return known.record if known.record and known.record.offset < end_offset else None
            begin = known.end_offset
        record = yield from first_record_from(log, begin, end_offset)
        self._now[key] = _Known(log, removals, end_offset, record)
        return record


class FreshTimes:
    """Timestamps of the first records at or after committed offsets, read each time. Use this to look at many
    partitions rarely, because a cache of `RecordTimes` takes memory for each of them.
    """

    def first_uncommitted_ms(self, led: Partition, committed: int) -> Steps[int | None]:
        """See RecordTimes.first_uncommitted_ms."""
        offset, end_offset = max(committed, led.log.log_start_offset), led.high_watermark
        if offset >= end_offset:
            return None
        record = yield from first_record_from(led.log, offset, end_offset)
        return None if record is None else record.timestamp


class GroupLags:
    """The lags of groups for one scrape or web console request."""

    def __init__(
        self, view: ClusterView, times: RecordTimes | FreshTimes, remote: Mapping[GroupPartition, RemoteLag]
    ) -> None:
        """`remote` contains the lags reported by leaders in other processes."""
        self._view = view
        self._times = times
        self._remote = remote

    def at(self, group: str, topic: str, known: PartitionMetadata, committed: int) -> Steps[Lag]:
        """Return the lag of a group with this committed offset. If another process leads the partition, the
        lag refers to the offset that was committed at the time of the query.
        """
        led = self._view.led(topic, known)
        if led is not None:
            return (yield from self._at_leader(led, committed))
        reported = self._remote.get((group, topic, known.partition))
        if reported is None:
            return Lag(committed, None, None)
        records = records_behind(reported.committed, reported.end)
        return Lag(reported.committed, records, time_behind_ms(reported.since_ms, self._view.now_ms()))

    def _at_leader(self, led: Partition, committed: int) -> Steps[Lag]:
        end = led.known_high_watermark
        if end is None:
            return Lag(committed, None, None)
        try:
            since_ms = yield from self._times.first_uncommitted_ms(led, committed)
        except StorageError:
            return Lag(committed, records_behind(committed, end), None)
        return Lag(committed, records_behind(committed, end), time_behind_ms(since_ms, self._view.now_ms()))
