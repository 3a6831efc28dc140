"""A coordinator's log with lagging followers: the test decides when batches are committed or lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain

from kafka_compat.coordinator_runtime.coordinator_log import (
    NO_PRODUCER_ID,
    ReplayedBatch,
    TransactionalProducer,
)
from kafka_compat.errors import ErrorCode, KafkaError


class ReplicatedLog:
    """A topic of one partition. With `refuses`, appends fail. With `is_under_min_isr`, commits are reported
    as NOT_ENOUGH_REPLICAS_AFTER_APPEND.
    """

    shard_count = 1

    def __init__(self) -> None:
        self.batches: list[ReplayedBatch] = []
        self.high_watermark = 0
        self.refuses: ErrorCode | None = None
        self.is_under_min_isr = False
        self._waiting: list[tuple[int, Callable[[ErrorCode], None]]] = []

    @property
    def end_offset(self) -> int:
        return self.batches[-1].end_offset if self.batches else 0

    def append(
        self,
        shard: int,
        records: Sequence[tuple[bytes, bytes | None]],
        producer: TransactionalProducer | None = None,
        *,
        commits: bool = False,
    ) -> int:
        if self.refuses is not None:
            raise KafkaError(self.refuses)
        producer_id = NO_PRODUCER_ID if producer is None else producer.producer_id
        self.batches.append(ReplayedBatch(self.end_offset + len(records), producer_id, None, list(records)))
        return self.end_offset

    def append_marker(self, producer_id: int, committed: bool) -> int:
        self.batches.append(ReplayedBatch(self.end_offset + 1, producer_id, committed, []))
        return self.end_offset

    def when_committed(self, shard: int, offset: int, callback: Callable[[ErrorCode], None]) -> None:
        if offset <= self.high_watermark:
            callback(self._code())
        else:
            self._waiting.append((offset, callback))

    def _code(self) -> ErrorCode:
        return ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND if self.is_under_min_isr else ErrorCode.NONE

    def replicate(self, count: int) -> None:
        """Replicate `count` more batches to the followers."""
        ends = [batch.end_offset for batch in self.batches if batch.end_offset > self.high_watermark]
        if ends:
            self.high_watermark = ends[min(count, len(ends)) - 1]
        while self._waiting and self._waiting[0][0] <= self.high_watermark:
            self._waiting.pop(0)[1](self._code())

    def lose_leadership(self, kept: int) -> None:
        """Lose leadership to a leader that has `kept` of the uncommitted batches. The other uncommitted
        batches are lost.
        """
        uncommitted = [batch for batch in self.batches if batch.end_offset > self.high_watermark]
        self.batches = self.before(self.high_watermark) + uncommitted[:kept]
        waiting, self._waiting = self._waiting, []
        for _, callback in waiting:
            callback(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def before(self, offset: int) -> list[ReplayedBatch]:
        return [batch for batch in self.batches if batch.end_offset <= offset]

    def replay(self, shard: int) -> Iterator[ReplayedBatch]:
        yield from chain(self.batches)
