"""A group coordinator without a broker, with its log in memory and a manual clock."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count

from kafka_compat.coordinator_runtime.coordinator_log import ReplayedBatch, TransactionalProducer
from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.groups.coordinator import GroupCoordinator
from kafka_compat.groups.requests import Join, JoinResult, OffsetAndMetadata, Sync, SyncResult
from kafka_compat.groups.settings import GroupSettings
from tests.groups.classic.transcript import subscription
from tests.groups.consumer.topics import consumer_groups, topic
from tests.groups.share.memory import no_share_groups

WALL_MS = 1_700_000_000_000


class ManualScheduler:
    """A scheduler whose time moves only with `advance`, which calls everything that is due at its scheduled
    time.
    """

    def __init__(self) -> None:
        self.now_ms = 0
        self._order = count()
        self._calls: list[tuple[int, int, ManualTimer]] = []

    def monotonic_ms(self) -> int:
        return self.now_ms

    def call_later(self, delay_ms: int, callback: Callable[[], None]) -> ManualTimer:
        timer = ManualTimer(callback)
        heapq.heappush(self._calls, (self.now_ms + delay_ms, next(self._order), timer))
        return timer

    def advance(self, duration_ms: int = 0) -> None:
        end_ms = self.now_ms + duration_ms
        while self._calls and self._calls[0][0] <= end_ms:
            at_ms, _, timer = heapq.heappop(self._calls)
            self.now_ms = max(self.now_ms, at_ms)
            if not timer.cancelled:
                timer.callback()
        self.now_ms = end_ms

    def run_next(self) -> None:
        """Call what is due first, if anything is due now."""
        while self._calls and self._calls[0][0] <= self.now_ms:
            timer = heapq.heappop(self._calls)[2]
            if not timer.cancelled:
                timer.callback()
                return

    @property
    def pending(self) -> int:
        return sum(not timer.cancelled for _, _, timer in self._calls)


@dataclass
class ManualTimer:
    callback: Callable[[], None]
    cancelled: bool = False

    def cancel(self) -> None:
        self.cancelled = True


@dataclass
class MemoryLog:
    """A log in memory. With `hold`, nothing is committed until `commit`; with `refuse`, appends fail."""

    shard_count: int = 50
    batches: dict[int, list[ReplayedBatch]] = field(default_factory=dict)
    hold: bool = False
    refuse: ErrorCode | None = None
    waiting: list[Callable[[ErrorCode], None]] = field(default_factory=list)

    def append(
        self,
        shard: int,
        records: Sequence[tuple[bytes, bytes | None]],
        producer: TransactionalProducer | None = None,
        *,
        commits: bool = False,
    ) -> int:
        if self.refuse is not None:
            raise KafkaError(self.refuse)
        log = self.batches.setdefault(shard, [])
        end_offset = (log[-1].end_offset if log else 0) + len(records)
        producer_id = -1 if producer is None else producer.producer_id
        log.append(ReplayedBatch(end_offset, producer_id, None, list(records)))
        return end_offset

    def when_committed(self, shard: int, offset: int, callback: Callable[[ErrorCode], None]) -> None:
        if self.hold:
            self.waiting.append(callback)
        else:
            callback(ErrorCode.NONE)

    def commit(self, error: ErrorCode = ErrorCode.NONE) -> None:
        waiting, self.waiting = self.waiting, []
        for callback in waiting:
            callback(error)

    def replay(self, shard: int) -> Iterator[ReplayedBatch]:
        yield from self.batches.get(shard, [])


class Coordinator(GroupCoordinator):
    """A coordinator of all shards, together with its log and scheduler. Topic "gone" does not exist."""

    def __init__(self, log: MemoryLog | None = None, *, load: bool = True, **settings: int) -> None:
        self.log = log or MemoryLog()
        self.scheduler = ManualScheduler()
        self.wall_ms = WALL_MS
        super().__init__(
            coordinator_log=self.log,
            scheduler=self.scheduler,
            settings=GroupSettings(**{"group_initial_rebalance_delay_ms": 0, **settings}),
            now_ms=lambda: self.wall_ms + self.scheduler.now_ms,
            partition_exists=lambda topic, partition: topic != "gone" and partition < 10,
            consumer_groups=consumer_groups(topic("topic", 10)),
            share_groups=no_share_groups(),
        )
        if load:
            for shard in range(self.log.shard_count):
                self.load(shard)


def join_request(member_id: str = "", **changes: object) -> Join:
    values: dict[str, object] = {
        "member_id": member_id,
        "group_instance_id": None,
        "client_id": "client",
        "client_host": "/127.0.0.1",
        "session_timeout_ms": 10_000,
        "rebalance_timeout_ms": 60_000,
        "protocol_type": "consumer",
        "protocols": (("range", subscription(["topic"])),),
        "reason": "test",
        "requires_known_member_id": False,
        "supports_skipping_assignment": False,
    }
    return Join(**(values | changes))  # type: ignore[arg-type]


def sync_request(member_id: str, generation_id: int, assignments: dict[str, bytes] | None = None) -> Sync:
    return Sync(
        generation_id=generation_id,
        member_id=member_id,
        group_instance_id=None,
        protocol_type=None,
        protocol_name=None,
        assignments=assignments or {},
    )


def position(offset: int, metadata: str = "", expire_timestamp_ms: int = -1) -> OffsetAndMetadata:
    return OffsetAndMetadata(offset, 3, metadata, WALL_MS, expire_timestamp_ms)


def stable_member(coordinator: Coordinator, group_id: str) -> JoinResult:
    """Create a group with one member, whose assignment is b"all"."""
    joined: list[JoinResult] = []
    coordinator.classic.join(group_id, join_request(), joined.append)
    coordinator.scheduler.advance()
    synced: list[SyncResult] = []
    request = sync_request(joined[0].member_id, joined[0].generation_id, {joined[0].member_id: b"all"})
    coordinator.classic.sync(group_id, request, synced.append)
    assert synced[0].assignment == b"all"
    return joined[0]
