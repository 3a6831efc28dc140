"""The timestamps of the first records that groups have not committed, remembered from scrape to scrape.

What is remembered of an offset is so as long as nothing was taken out of its log (compaction, retention,
truncation), so that a scrape reads only what moved.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kafka_compat.long_work import Steps
from kafka_compat.storage.log.first_record import first_record_from
from kafka_compat.storage.log.timestamp_lookup import TimestampOffset

if TYPE_CHECKING:
    from kafka_compat.replication.partition import Partition
    from kafka_compat.storage.log.log import Log


class _Known(NamedTuple):
    log: Log
    removals: int
    end_offset: int
    """How far was looked."""
    record: TimestampOffset | None
    """None: up to `end_offset` there are only markers of transactions."""


class RecordTimes:
    """See above."""

    def __init__(self) -> None:
        self._before: dict[tuple[str, int, int], _Known] = {}
        self._now: dict[tuple[str, int, int], _Known] = {}

    def begin(self) -> None:
        """A scrape begins: what the last one did not ask for is forgotten."""
        self._before, self._now = self._now, {}

    def forget_topic(self, topic: str) -> None:
        """A topic was deleted: its logs need not be kept until the next scrape."""
        for known in (self._before, self._now):
            for key in [key for key in known if key[0] == topic]:
                del known[key]

    def first_uncommitted_ms(self, led: Partition, committed: int) -> Steps[int | None]:
        """The timestamp of the first record that a group has not committed; None where there is no such
        record, negative where it has no timestamp. Raises a StorageError where it cannot be read.
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
