"""The lag of consumer groups, at partitions that this process leads and at those of other leaders.

See kafka_compat/lag.py for the rules.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from kafka_compat.lag import records_behind, time_behind_ms
from kafka_compat.long_work import Steps
from kafka_compat.storage.errors import StorageError

if TYPE_CHECKING:
    from kafka_compat.metadata.cache import PartitionMetadata
    from kafka_compat.metrics.cluster_view import ClusterView
    from kafka_compat.metrics.record_times import RecordTimes
    from kafka_compat.metrics.remote_lag import GroupPartition, RemoteLag
    from kafka_compat.replication.partition import Partition


class Lag(NamedTuple):
    """Of a group at a partition. None: unknown."""

    committed: int
    records: int | None
    ms: int | None


class GroupLags:
    """Those of one scrape or visit."""

    def __init__(
        self, view: ClusterView, times: RecordTimes, remote: Mapping[GroupPartition, RemoteLag]
    ) -> None:
        """`remote` is what other leaders reported."""
        self._view = view
        self._times = times
        self._remote = remote

    def at(self, group: str, topic: str, known: PartitionMetadata, committed: int) -> Steps[Lag]:
        """The lag of a group that has committed this offset. At a partition that another process leads, it is
        that of the offset that was committed when the leader was asked.
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
