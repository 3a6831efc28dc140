"""Read a topic's partitions: locally if this process leads them, otherwise from their leaders."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from kafka_compat.long_work import LongWork, Steps, batched
from kafka_compat.protocol.buffers import Buffer
from kafka_compat.protocol.codec import MalformedRequest
from kafka_compat.storage.errors import StorageError

if TYPE_CHECKING:
    from kafka_compat.cluster.remote_partitions import RemotePartitions
    from kafka_compat.replication.partition import Partition

PATIENCE_S: Final = 3.0
"""Timeout in seconds for requests to other brokers."""
T = TypeVar("T")
_REMOTE_READS: Final = (ConnectionError, TimeoutError, MalformedRequest)


class Unreadable(Exception):
    """Raised or returned for a partition that cannot be read. The text states the reason."""


class Content(NamedTuple):
    """Batches starting at an offset. `load` reads them, and is called in another thread. `aborted` contains
    (producer ID, first offset) of the transactions whose records are skipped.
    """

    load: Callable[[], Buffer]
    aborted: Iterable[tuple[int, int]] | None


_Bounds = tuple[int, int] | Unreadable


class Leader(NamedTuple):
    """A partition's leader and leader epoch."""

    broker_id: int
    epoch: int


class Source:
    """A reader of one topic's partitions."""

    def __init__(
        self,
        topic: str,
        leader_of: Callable[[int], Leader | None],
        led: Callable[[int], Partition | None],
        remote: RemotePartitions | None,
        long_work: LongWork,
        *,
        committed: bool,
    ) -> None:
        """Create a reader. `leader_of` returns a partition's leader, or None if it has none. `led` returns a
        partition that this process leads, or None. With `committed`, records of open and aborted transactions
        are skipped.
        """
        self._topic = topic
        self._leader_of = leader_of
        self._led = led
        self._remote = remote
        self._long_work = long_work
        self._committed = committed

    async def bounds(self, partitions: Iterable[int]) -> dict[int, _Bounds]:
        """Return each partition's first offset and end offset for consumers, or an Unreadable."""
        found, remote = await self._long_work.finish(self._bounds_here(partitions))

        async def ask(broker_id: int, epochs: Mapping[int, int]) -> None:
            for some in batched(epochs.items()):
                found.update(await self._remote_bounds(broker_id, dict(some)))

        await asyncio.gather(*(ask(*each) for each in remote.items()))
        return found

    def _bounds_here(
        self, partitions: Iterable[int]
    ) -> Steps[tuple[dict[int, _Bounds], dict[int, dict[int, int]]]]:
        """Return the bounds known locally and, by remote leader, the leader epochs of its partitions."""
        found: dict[int, _Bounds] = {}
        remote: dict[int, dict[int, int]] = defaultdict(dict)
        for some in batched(partitions):
            for partition in some:
                led = self._led(partition)
                if led is None:
                    try:
                        leader = self._leader(partition)
                    except Unreadable as error:
                        found[partition] = error
                    else:
                        remote[leader.broker_id][partition] = leader.epoch
                elif led.epoch_start_offset > led.high_watermark:
                    found[partition] = Unreadable("its leader does not know the high watermark yet")
                else:
                    found[partition] = led.log.log_start_offset, self._end(led)
            yield None
        return found, remote

    async def _remote_bounds(self, broker_id: int, epochs: Mapping[int, int]) -> dict[int, _Bounds]:
        assert self._remote is not None
        places = {(self._topic, partition): epoch for partition, epoch in epochs.items()}
        try:
            asked = self._remote.bounds(broker_id, places, committed=self._committed)
            bounds = await self._answer_of(broker_id, asked)
        except Unreadable as error:
            return dict.fromkeys(epochs, error)
        found: dict[int, _Bounds] = {}
        for place in places:
            known = bounds.get(place)
            unknown = Unreadable(f"broker {broker_id} is no longer its leader")
            found[place[1]] = unknown if known is None else (known.oldest, known.newest)
        return found

    async def offset_at(self, partition: int, time_ms: int) -> int | None:
        """Return the offset of the first record at or after a time, or None if there is none. Raises
        Unreadable if the partition cannot be read.
        """
        led = self._led(partition)
        if led is not None:
            try:
                record = await self._long_work.finish(led.log.offset_for_timestamp(time_ms))
            except StorageError as error:
                raise Unreadable(str(error)) from error
            return None if record is None else record.offset
        leader = self._leader(partition)
        assert self._remote is not None
        epochs = {(self._topic, partition): leader.epoch}
        asked = self._remote.offsets_at(leader.broker_id, epochs, time_ms)
        offset = (await self._answer_of(leader.broker_id, asked)).get((self._topic, partition))
        if offset is None:
            raise Unreadable(f"broker {leader.broker_id} is no longer its leader")
        return offset if offset >= 0 else None

    async def content(self, partition: int, offset: int, end: int, max_bytes: int) -> Content | None:
        """Return complete batches starting at `offset` or at the next batch, or None if there are none.
        Aborted transactions are listed up to `end`. Raises Unreadable if the partition cannot be read.
        """
        led = self._led(partition)
        if led is None:
            return await self._remote_content(partition, offset, max_bytes)
        log = led.log
        offset = max(offset, log.log_start_offset)
        upper_bound = self._end(led)
        if offset >= upper_bound:
            return None
        try:
            batches = log.read(offset, max_bytes, upper_bound=upper_bound)
            aborted = log.aborted_transactions(offset, end) if self._committed else None
        except StorageError as error:
            raise Unreadable(str(error)) from error
        return None if batches is None else Content(batches.read, aborted)

    def _end(self, led: Partition) -> int:
        return led.last_stable_offset if self._committed else led.high_watermark

    def _leader(self, partition: int) -> Leader:
        leader = self._leader_of(partition)
        if leader is None or self._remote is None:
            raise Unreadable("it has no leader now")
        return leader

    async def _remote_content(self, partition: int, offset: int, max_bytes: int) -> Content | None:
        leader = self._leader(partition)
        assert self._remote is not None
        place = self._topic, partition
        asked = self._remote.batches(
            leader.broker_id, place, leader.epoch, offset, max_bytes, committed=self._committed
        )
        found = await self._answer_of(leader.broker_id, asked)
        if found is None:
            raise Unreadable(
                f"broker {leader.broker_id} does not have offset {offset}, or is no longer its leader"
            )
        records = found.records
        return Content(lambda: records, found.aborted) if records else None

    async def _answer_of(self, broker_id: int, asked: Awaitable[T]) -> T:
        try:
            async with asyncio.timeout(PATIENCE_S):
                return await asked
        except _REMOTE_READS as error:
            raise Unreadable(f"its leader, broker {broker_id}, does not respond: {error!r}") from error
