"""The share coordinator: the share-partitions in this broker's shards of `__share_group_state`.

Operations are passed to the state machines of their share-partitions, which the runtime loads and stores.
Each result is passed to the callback of its operation, immediately or when its record is committed. Each
callback is called exactly once, even if this broker loses the shard or shuts down.

Two jobs keep the log short. One writes snapshots of share-partitions that have not changed for some time. The
other one deletes the records before the oldest snapshot that is needed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

from kafka_compat.coordinator_runtime.coordinator_log import CoordinatorLog
from kafka_compat.coordinator_runtime.runtime import CoordinatorRuntime
from kafka_compat.coordinator_runtime.scheduler import Scheduler
from kafka_compat.coordinator_runtime.shard import RunningMachine, Shard
from kafka_compat.errors import KafkaError
from kafka_compat.metadata.topic_names import SHARE_STATE_TOPIC
from kafka_compat.share_coordinator.log_loader import ShareStateLoader
from kafka_compat.share_coordinator.operations import Initialize, Operation, Result, Write, not_done
from kafka_compat.share_coordinator.records import (
    ShareRecord,
    coordinator_key,
    decode_record,
    encode_record,
)
from kafka_compat.share_coordinator.samples import Samples
from kafka_compat.share_coordinator.settings import ShareCoordinatorSettings
from kafka_compat.share_coordinator.share_partition_state import SharePartitionState, decide

if TYPE_CHECKING:
    from uuid import UUID

    from kafka_compat.share_coordinator.persister import SharePartitionKey

log = logging.getLogger(__name__)

_MACHINE_SIZE: Final = 1
"""Amount of work to look at one share-partition, in the unit of step sizes."""

_Shard = Shard[SharePartitionState]


class PrunableLog(CoordinatorLog, Protocol):
    def delete_before(self, shard: int, offset: int | None) -> None:
        """Delete the committed records before an offset; None stands for the high watermark. Raises
        KafkaError on failure.
        """


class ShareCoordinator:
    """The share-partitions that one broker coordinates. `now_ms` returns the time of day."""

    def __init__(
        self,
        *,
        coordinator_log: PrunableLog,
        scheduler: Scheduler,
        settings: ShareCoordinatorSettings,
        now_ms: Callable[[], int],
        partition_exists: Callable[[UUID, int], bool],
    ) -> None:
        """`partition_exists` is called with a topic ID and a partition."""
        self._log = coordinator_log
        self._settings = settings
        self._now_ms = now_ms
        self._partition_exists = partition_exists
        self._monotonic_ms = scheduler.monotonic_ms
        self.write_ms = Samples()
        """Durations of writes, including the time until they were committed."""
        self.pruned_offsets: dict[int, int] = {}
        """The offset before which the records of each shard were last deleted."""
        self._deleted_topics: set[UUID] = set()
        """Topics that were deleted while shards were being loaded."""
        self._updates_per_snapshot = settings.snapshot_update_records_per_snapshot
        self._runtime: CoordinatorRuntime[SharePartitionState, ShareRecord] = CoordinatorRuntime(
            topic=SHARE_STATE_TOPIC,
            noun="share-partition",
            coordinator_log=coordinator_log,
            scheduler=scheduler,
            now_ms=now_ms,
            new_machine=lambda key, snapshots: SharePartitionState(snapshots, self._updates_per_snapshot),
            encode=encode_record,
            decode=decode_record,
            perform=_perform,
            commit_timeout_ms=settings.write_timeout_ms,
            new_loader=ShareStateLoader,
        )

    def start(self) -> None:
        """Start the periodic jobs."""
        settings, every = self._settings, self._runtime.every
        every(settings.cold_partition_snapshot_interval_ms, self.snapshot_cold_partitions)
        every(settings.state_topic_prune_interval_ms, self.prune)

    def close(self) -> None:
        """Stop the jobs and complete pending operations; later ones get COORDINATOR_NOT_AVAILABLE."""
        self._runtime.close()

    def load(self, index: int, leader_epoch: int = 0) -> None:
        """Load a shard that this broker now leads. A long log is read in steps. Until then, operations get
        COORDINATOR_LOAD_IN_PROGRESS.
        """
        self._runtime.load(index, leader_epoch)

    def unload(self, index: int) -> None:
        """Unload a shard that this broker no longer leads."""
        self._runtime.unload(index)
        self.pruned_offsets.pop(index, None)

    @property
    def load_times_ms(self) -> Sequence[int]:
        """Load times of the most recently loaded shards, in milliseconds."""
        return self._runtime.load_times_ms

    def process(
        self, key: SharePartitionKey, operation: Operation, respond: Callable[[Result], None]
    ) -> None:
        """Process an operation on a share-partition."""
        if isinstance(operation, Write):
            respond = partial(self._timed, self._monotonic_ms(), respond)
        runtime = self._runtime
        coordinated = coordinator_key(*key)
        running = runtime.running.get(coordinated)
        if running is None:
            error = runtime.refusal(coordinated)
            if error:
                respond(not_done(operation, error))
                return
        exists = self._partition_exists(key.topic_id, key.partition)
        if running is None:
            result, change = decide(
                key, operation, None, self._now_ms(), self._updates_per_snapshot, exists=exists
            )
            if change is None:
                respond(result)
                return
            assert isinstance(operation, Initialize)
            running = runtime.host(coordinated)
        out = running.machine.process(key, operation, respond, runtime.now(), exists=exists)
        runtime.carry_out(running, out)

    def _timed(self, began_ms: int, respond: Callable[[Result], None], result: Result) -> None:
        """Record how long a write took, and pass on its result."""
        self.write_ms.add(self._monotonic_ms() - began_ms)
        respond(result)

    @property
    def active_count(self) -> int:
        """Number of shards that are loaded."""
        return len(self._runtime.active_shards())

    @property
    def loading_count(self) -> int:
        """Number of shards that are being loaded."""
        return self._runtime.loading_count

    def progress(self, key: SharePartitionKey) -> tuple[int, int] | None:
        """Return the committed start offset of a share-partition, and the number of records from there on
        whose delivery is complete, or None if this broker has no state of it.
        """
        running = self._runtime.running.get(coordinator_key(*key))
        state = None if running is None else running.machine.state.committed
        return None if state is None else (state.whole.start_offset, state.whole.delivery_complete_count)

    def forget_topics(self, topic_ids: Collection[UUID]) -> None:
        """Delete the states of topics that have been deleted."""
        if self._runtime.is_loading:
            # State machines that are not loaded yet are found by the next periodic job.
            self._deleted_topics.update(topic_ids)
        if self._runtime.running:
            self._runtime.run_cooperatively(self._forgetting(frozenset(topic_ids)))

    def _forgetting(self, topic_ids: frozenset[UUID]) -> Iterator[int]:
        for running in list(self._runtime.running.values()):
            yield _MACHINE_SIZE
            key = running.machine.key
            if key is not None and key.topic_id in topic_ids and self._runtime.is_running(running):
                self._runtime.carry_out(running, running.machine.delete())
                yield 20 * _MACHINE_SIZE

    def snapshot_cold_partitions(self) -> None:
        """Write snapshots of the share-partitions whose last snapshot is old."""
        self._runtime.run_cooperatively(self._snapshotting())

    def _snapshotting(self) -> Iterator[int]:
        interval_ms = self._settings.cold_partition_snapshot_interval_ms
        for shard in self._runtime.active_shards():
            machines = list(shard.machines.values())
            are_all_cold = True
            for running in machines:
                yield _MACHINE_SIZE
                state = running.machine.state.current
                if state is not None and state.whole.created_ms == state.whole.written_ms:
                    are_all_cold = False
                    break
            if are_all_cold:
                # As in Kafka, share-partitions of an idle shard get only one snapshot.
                continue
            for running in machines:
                yield _MACHINE_SIZE
                if self._runtime.is_running(running):
                    out = running.machine.snapshot_if_cold(interval_ms, self._runtime.now())
                    self._runtime.carry_out(running, out)
                    yield 20 * _MACHINE_SIZE

    def prune(self) -> None:
        """Delete the records of each shard that are older than all needed snapshots, and the states of topics
        that were deleted while shards were being loaded.
        """
        if self._deleted_topics and not self._runtime.is_loading:
            deleted, self._deleted_topics = frozenset(self._deleted_topics), set()
            self._runtime.run_cooperatively(self._forgetting(deleted))
        self._runtime.run_cooperatively(self._pruning())

    def _pruning(self) -> Iterator[int]:
        for shard in self._runtime.active_shards():
            offset: int | None = None
            for running in list(shard.machines.values()):
                yield _MACHINE_SIZE
                # An uncommitted snapshot is after the records that can be deleted.
                state = running.machine.state.committed
                if state is not None and (offset is None or state.snapshot_offset < offset):
                    offset = state.snapshot_offset
            yield _MACHINE_SIZE
            if offset is None and shard.machines:
                continue
            self._delete_before(shard, offset)

    def _delete_before(self, shard: _Shard, offset: int | None) -> None:
        try:
            self._log.delete_before(shard.index, offset)
            if offset is not None:
                self.pruned_offsets[shard.index] = offset
        except KafkaError as error:
            log.info("Could not prune %s-%d: %s", SHARE_STATE_TOPIC, shard.index, error)


def _perform(running: RunningMachine[SharePartitionState], effect: object) -> None:
    raise AssertionError("a share-partition has no effects besides its records")
