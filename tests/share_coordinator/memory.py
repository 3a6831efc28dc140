"""A share coordinator without a broker, with its log in memory and a manual clock."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from uuid import UUID

from kafka_compat.coordinator_runtime.coordinator_log import ReplayedBatch, TransactionalProducer
from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.share_coordinator.coordinator import ShareCoordinator
from kafka_compat.share_coordinator.operations import Operation, Result
from kafka_compat.share_coordinator.persister import SharePartitionKey
from kafka_compat.share_coordinator.records import ShareRecord, decode_record
from kafka_compat.share_coordinator.settings import ShareCoordinatorSettings
from tests.coordinator_runtime.replicated_log import ReplicatedLog
from tests.groups.memory import WALL_MS, ManualScheduler

TOPIC = UUID(int=0x1111 << 64 | 1)
OTHER = UUID(int=0x2222 << 64 | 2)
KEY = SharePartitionKey("group", TOPIC, 0)
COLD_MS = 60_000


class ShareLog(ReplicatedLog):
    """A log whose beginning can be deleted."""

    def __init__(self) -> None:
        super().__init__()
        self.start_offset = 0

    def append(
        self,
        shard: int,
        records: Sequence[tuple[bytes, bytes | None]],
        producer: TransactionalProducer | None = None,
        *,
        commits: bool = False,
    ) -> int:
        base_offset = self.end_offset
        end_offset = super().append(shard, records, producer, commits=commits)
        self.batches[-1] = self.batches[-1]._replace(base_offset=base_offset)
        return end_offset

    def delete_before(self, shard: int, offset: int | None) -> None:
        if self.refuses is not None:
            raise KafkaError(self.refuses)
        end_offset = self.high_watermark
        self.start_offset = max(self.start_offset, end_offset if offset is None else min(offset, end_offset))

    def replay(self, shard: int) -> Iterator[ReplayedBatch]:
        yield from self.since_start()

    def since_start(self) -> list[ReplayedBatch]:
        return [batch for batch in self.batches if batch.end_offset > self.start_offset]

    @property
    def records(self) -> list[ShareRecord]:
        """The decoded records from the log's start."""
        found = [decode_record(key, value) for batch in self.since_start() for key, value in batch.records]
        return [record for record in found if record is not None]


def coordinator_of(
    log: ShareLog,
    scheduler: ManualScheduler,
    exists: Callable[[UUID, int], bool] = lambda topic_id, partition: partition < 2,
    updates_per_snapshot: int = 3,
) -> ShareCoordinator:
    return ShareCoordinator(
        coordinator_log=log,
        scheduler=scheduler,
        settings=ShareCoordinatorSettings(
            snapshot_update_records_per_snapshot=updates_per_snapshot,
            cold_partition_snapshot_interval_ms=COLD_MS,
            state_topic_prune_interval_ms=COLD_MS,
        ),
        now_ms=lambda: WALL_MS + scheduler.now_ms,
        partition_exists=exists,
    )


class LoadedCoordinator:
    """A share coordinator that has loaded its only shard. All records are committed at once, unless
    `commits` is false.
    """

    def __init__(self, *, updates_per_snapshot: int = 3) -> None:
        self.log = ShareLog()
        self.scheduler = ManualScheduler()
        self.missing: set[UUID] = set()
        self.commits = True
        self.coordinator = coordinator_of(
            self.log,
            self.scheduler,
            lambda topic_id, partition: topic_id not in self.missing and partition < 2,
            updates_per_snapshot,
        )
        self.coordinator.start()
        self.coordinator.load(0)

    def ask(self, operation: Operation, key: SharePartitionKey = KEY) -> list[Result]:
        """Return the result, or an empty list while it waits for the commit."""
        results: list[Result] = []
        self.coordinator.process(key, operation, results.append)
        if self.commits:
            self.log.replicate(1_000)
        return results

    def result(self, operation: Operation, key: SharePartitionKey = KEY) -> Result:
        (result,) = self.ask(operation, key)
        return result

    def error(self, operation: Operation, key: SharePartitionKey = KEY) -> ErrorCode:
        return self.result(operation, key).error

    def advance(self, duration_ms: int) -> None:
        self.scheduler.advance(duration_ms)
        self.log.replicate(1_000)
        self.scheduler.advance()
