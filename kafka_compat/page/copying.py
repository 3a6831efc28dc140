"""Copies of topics, record by record, in the background: where a topic cannot be forked.

A copy has what consumers that read committed records would have got when it began, in the same partitions,
with times, headers and codecs; its offsets have no gaps.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Final

from kafka_compat.client.consumed import whole_batches
from kafka_compat.errors import ErrorCode
from kafka_compat.http.routes import BadCall
from kafka_compat.page.producing import NotAppended, append
from kafka_compat.page.records import source_of
from kafka_compat.search.source import Content, Unreadable
from kafka_compat.storage.errors import StorageError
from kafka_compat.storage.records.batch import BatchHeader
from kafka_compat.storage.records.kinds import CompressionType, ControlRecordType, TimestampType
from kafka_compat.storage.records.legacy import records_of
from kafka_compat.storage.records.records import Record, build_batch, control_record_type, iter_records

if TYPE_CHECKING:
    from kafka_compat.page.copies import Copy
    from kafka_compat.page.visit import Visit

_READ_BYTES: Final = 512 * 1024
_RETRIES: Final = 20
_RETRY_AFTER_S: Final = 0.5
_MOVED: Final = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
"""A new leader, or a topic that its leader has not heard of yet: nothing was stored."""


async def copy_records(copy: Copy, look: Callable[[], Visit]) -> None:
    """Copy into a topic that was made for it. `look` gives a visit at any time, as who asked. Raises BadCall,
    Unreadable, StorageError, OSError and NoBrokerRuns.
    """
    visit = look()
    topic = visit.cluster.metadata.topics.get(copy.source)
    if topic is None:
        raise BadCall(f"there is no topic {copy.source}", 404)
    bounds = await source_of(visit, topic, committed=True).bounds(each.partition for each in topic.partitions)
    spans: dict[int, tuple[int, int]] = {}
    for partition, found in bounds.items():
        if isinstance(found, Unreadable):
            raise Unreadable(f"partition {partition}: {found}")
        spans[partition] = found
    copy.total = sum(end - first for first, end in spans.values())
    for partition, (first, end) in sorted(spans.items()):
        while first < end:
            first = await _step(copy, look, partition, first, end)


async def _step(copy: Copy, look: Callable[[], Visit], partition: int, first: int, end: int) -> int:
    """The offset behind what was copied."""
    visit = look()
    topic = visit.cluster.metadata.topics.get(copy.source)
    if topic is None:
        raise BadCall(f"the topic {copy.source} was deleted", 404)
    source = source_of(visit, topic, committed=True)
    content = await source.content(partition, first, end, _READ_BYTES)
    if content is None:
        copy.done += end - first
        return end
    made = await visit.cluster.long_work.in_thread(partial(_rebuilt, content, first, end))
    for batch, count, next_offset in made:
        if batch is not None:
            await _append(look, copy.target, partition, batch)
            copy.records += count
        copy.done += next_offset - first
        first = next_offset
    return first


async def _append(look: Callable[[], Visit], target: str, partition: int, batch: bytes) -> None:
    for left in reversed(range(_RETRIES)):
        try:
            await append(look(), target, partition, batch)
            return
        except NotAppended as error:
            if error.code not in _MOVED or not left:
                raise
        await asyncio.sleep(_RETRY_AFTER_S)


def _rebuilt(content: Content, first: int, end: int) -> list[tuple[bytes | None, int, int]]:
    """Batches to be appended, with the number of their records and the source's offset behind them; None for
    what is left out.
    """
    waiting = sorted(content.aborted or (), key=lambda one: one[1], reverse=True)
    out: set[int] = set()
    made: list[tuple[bytes | None, int, int]] = []
    for header, batch in whole_batches(content.load()):
        if header.magic == 2 and header.base_offset >= end:
            made.append((None, 0, end))
            break
        while waiting and waiting[-1][1] <= header.last_offset:
            out.add(waiting.pop()[0])
        next_offset = min(header.next_offset, end)
        records: list[Record] = []
        if header.is_control:
            marker = next(iter_records(batch), None)
            if marker is not None and control_record_type(marker) is ControlRecordType.ABORT:
                out.discard(header.producer_id)
        elif not (header.is_transactional and header.producer_id in out):
            records = [each for each in _records(header, batch) if first <= each.offset < end]
        if next_offset > first or records:
            made.append((_batch(header, records), len(records), max(next_offset, first)))
    if not made:
        raise StorageError(f"what is at offset {first} is no batch")
    return made


def _records(header: BatchHeader, batch: memoryview) -> Iterator[Record]:
    return iter_records(batch) if header.magic > 1 else records_of(batch)


def _batch(header: BatchHeader, records: list[Record]) -> bytes | None:
    if not records:
        return None
    # A leader of a topic with LogAppendTime gives its own time; a producer always sends CreateTime.
    return build_batch(
        records, compression=CompressionType(header.compression), timestamp_type=TimestampType.CREATE_TIME
    )
