"""The replicas on this broker: lookup, leadership, deletion, and high watermark checkpoints."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Protocol

from kafka_compat.errors import ErrorCode
from kafka_compat.long_work import batched
from kafka_compat.replication.counts import Counts
from kafka_compat.replication.disk_work import finished
from kafka_compat.replication.replication_quota import ReplicationQuotas
from kafka_compat.storage.errors import DirectoryExists, LogDirFailure, RefusedForNow, StorageError

if TYPE_CHECKING:
    from uuid import UUID

    from kafka_compat.long_work import Steps, Turn
    from kafka_compat.metadata.cache import MetadataCache
    from kafka_compat.replication.delayed_read import DelayedRead
    from kafka_compat.replication.flusher import Flushing
    from kafka_compat.replication.in_sync import IsrProposer
    from kafka_compat.replication.partition import Partition
    from kafka_compat.replication.replica_fetcher import ReplicaFetcher
    from kafka_compat.replication.waiters import CallSoon
    from kafka_compat.storage.directories.directory_worker import Done
    from kafka_compat.storage.directories.log_dirs import LogDirs

logger = logging.getLogger(__name__)


class Fetching(Protocol):
    """Interface for fetching from leaders."""

    def start(self, partition: Partition, topic_id: UUID) -> None:
        """Fetch from `partition.leader_id` in `partition.leader_epoch`, instead of any earlier epoch."""

    def stop(self, partition: Partition) -> None:
        """Stop fetching the partition. After this call, fetchers no longer write to its log."""

    def running(self) -> Sequence[tuple[int, int, ReplicaFetcher]]:
        """Return the leader ID, index and fetcher of each active fetcher."""


class ReplicaManager:
    """The partition replicas of one broker."""

    def __init__(
        self,
        local_id: int,
        log_dirs: LogDirs,
        metadata: MetadataCache,
        flusher: Flushing,
        call_soon: CallSoon,
        *,
        monotonic_ms: Callable[[], int],
        proposer: IsrProposer | None = None,
        lag_time_max_ms: int | None = None,
        quotas: ReplicationQuotas | None = None,
        counts: Counts | None = None,
    ) -> None:
        """`proposer` and `quotas` are None on a standalone broker. `monotonic_ms` is a monotonic clock.
        `lag_time_max_ms` is None for the default.
        """
        self.fetching: Fetching | None = None
        """The replica fetchers, or None if no partition follows another broker."""
        self.delayed_fetches: set[DelayedRead] = set()
        """The waiting fetches of consumers and followers."""
        self.delayed_produces = 0
        """The number of Produce requests that wait for replication or a flush."""
        self.quotas = quotas if quotas is not None else ReplicationQuotas(local_id)
        self.local_id = local_id
        self._log_dirs = log_dirs
        self._metadata = metadata
        self._flusher = flusher
        self._call_soon = call_soon
        self._monotonic_ms = monotonic_ms
        self._proposer = proposer
        self._lag_time_max_ms = lag_time_max_ms
        self.counts = counts if counts is not None else Counts()
        self._high_watermarks: dict[tuple[str, int], int] = {}
        self.partitions: dict[tuple[str, int], Partition] = {}
        """The replicas on this broker. Only this class changes the dict."""
        self._moved: set[Partition] = set()
        """Partitions whose high watermarks have changed since the last `take_moved_high_watermarks`."""
        self._offline: set[tuple[str, int]] = set()
        self._refusals: dict[tuple[str, int], StorageError] = {}
        self.reassigning: set[tuple[str, int]] = set()
        """The partitions that are being reassigned, as last reported by the controller (KIP-455)."""

    def __iter__(self) -> Iterator[Partition]:
        return iter(list(self.partitions.values()))

    def __len__(self) -> int:
        return len(self.partitions)

    @property
    def may_have_followers(self) -> bool:
        """Whether partitions may have replicas on other brokers: false on a standalone broker."""
        return self._proposer is not None

    @property
    def offline_count(self) -> int:
        """The number of partitions that are offline because their disks failed or rejected writes."""
        return len(self._offline)

    def of_topics(self, names: Iterable[str]) -> Iterator[Partition]:
        """Yield the replicas of these topics on this broker."""
        for name in names:
            topic = self._metadata.topics.get(name)
            for known in topic.partitions if topic is not None else ():
                held = self.partitions.get((name, known.partition))
                if held is not None:
                    yield held

    def get(self, topic: str, partition: int) -> Partition | None:
        """Return the replica, or None if this broker has none (`missing` returns the reason)."""
        return self.partitions.get((topic, partition))

    def missing(self, topic: str, partition: int) -> ErrorCode:
        """Return the error code for a partition without a replica on this broker."""
        if (topic, partition) in self._offline:
            return ErrorCode.KAFKA_STORAGE_ERROR
        if self._metadata.partition(topic, partition) is not None:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    def refusal(self, topic: str, partition: int) -> StorageError | None:
        """Return the error that made `lead` or `follow` return None, or None if the last call succeeded."""
        return self._refusals.get((topic, partition))

    def restore_high_watermarks(self, checkpointed: Mapping[tuple[str, int], int]) -> None:
        """Set the initial high watermarks from the checkpoints."""
        self._high_watermarks.update(checkpointed)

    async def prepare(self, wanted: Iterable[tuple[str, int, UUID]], turn: Turn | None = None) -> None:
        """Wait until no disk operation on these partitions (topic, number, topic ID) is pending. Afterwards,
        call `lead` or `follow`; they return None if the disk has rejected the operation.

        Directories of a deleted topic with the same name and a different topic ID are set aside. If `turn` is
        given, the call yields to the event loop between partitions.
        """
        keys = []
        for topic, partition, topic_id in wanted:
            if turn is not None:
                await turn.pause_if_due()
            key = (topic, partition)
            self._set_stray_aside(key, topic_id)
            if not self._log_dirs.is_ready(key):
                keys.append(key)
        while keys:
            key = keys[-1]
            error = None
            if not self._log_dirs.is_ready(key):
                error = await finished(partial(self._log_dirs.when_ready, key))
            if error is not None or self._log_dirs.is_ready(key):
                keys.pop()

    def lead(
        self,
        topic: str,
        partition: int,
        topic_id: UUID,
        leader_epoch: int,
        isr: tuple[int, ...],
        *,
        is_new: bool,
        replicas: tuple[int, ...] | None = None,
        partition_epoch: int = 0,
        min_insync_replicas: int | None = None,
    ) -> Partition | None:
        """Become leader of a partition, and create its log if it is missing. Return None if the disk failed
        or rejects writes. Call `prepare` first.

        While a disk is offline, no log is created unless `is_new`, because an existing log may be on that
        disk. `replicas` are the brokers with a replica (default: `isr`). If `partition_epoch` is outdated,
        the role does not change.
        """
        held = self._hold(topic, partition, topic_id, is_new)
        if held is not None and partition_epoch >= held.partition_epoch:
            if self.fetching is not None:
                self.fetching.stop(held)
            if min_insync_replicas is not None:
                # Set this before the role: a new leader must not commit records while its ISR is too small.
                held.min_insync_replicas = min_insync_replicas
            held.become_leader(leader_epoch, isr, replicas, partition_epoch)
        return held

    def follow(
        self,
        topic: str,
        partition: int,
        topic_id: UUID,
        leader_id: int,
        leader_epoch: int,
        *,
        is_new: bool,
        replicas: tuple[int, ...],
        partition_epoch: int = 0,
    ) -> Partition | None:
        """Become follower of a partition, and fetch from `leader_id` (-1 if there is no leader). Requires
        `fetching`. See `lead` for the other parameters and the return value.
        """
        held = self._hold(topic, partition, topic_id, is_new)
        if held is not None and partition_epoch >= held.partition_epoch:
            restart = held.leader_id != leader_id or held.leader_epoch != leader_epoch
            if held.become_follower(leader_id, leader_epoch, replicas, partition_epoch) or restart:
                assert self.fetching is not None
                if leader_id < 0:
                    self.fetching.stop(held)
                else:
                    self.fetching.start(held, topic_id)
        return held

    def stop(self, topic: str, partition: int) -> None:
        """Drop the replica of a partition, but keep its log (StopReplica without deletion)."""
        held = self.partitions.pop((topic, partition), None)
        self.reassigning.discard((topic, partition))
        if held is not None:
            self._high_watermarks[topic, partition] = held.high_watermark
            self._release(held, ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def peers_changed(self) -> None:
        """Notify all partitions that the set of live brokers has changed (see `Partition.peers_changed`)."""
        for held in self:
            held.peers_changed()

    def _hold(self, topic: str, partition: int, topic_id: UUID, is_new: bool) -> Partition | None:
        key = (topic, partition)
        held = self.partitions.get(key)
        if held is not None:
            return held
        try:
            self._set_stray_aside(key, topic_id)
            if key not in self._log_dirs.logs and not is_new and self._log_dirs.offline:
                raise LogDirFailure(f"{topic}-{partition} may be in an offline log directory")
            log = self._log_dirs.logs.get(key) or self._log_dirs.create(topic, partition, topic_id)
        except (LogDirFailure, RefusedForNow, DirectoryExists) as error:
            if not isinstance(error, LogDirFailure):
                logger.error("Could not create the replica %s-%d: %s", topic, partition, error)
            self._offline.add(key)
            self._refusals[key] = error
            return None
        self._offline.discard(key)
        self._refusals.pop(key, None)
        if log.topic_id is None:
            log.assign_topic_id(topic_id)
        from kafka_compat.replication.partition import Partition

        held = self.partitions[key] = Partition(
            log,
            self.local_id,
            self._flusher,
            self._call_soon,
            monotonic_ms=self._monotonic_ms,
            proposer=self._proposer,
            lag_time_max_ms=self._lag_time_max_ms,
            high_watermark=self._high_watermarks.pop(key, 0),
            moved=self._moved,
            counts=self.counts,
        )
        return held

    def _release(self, held: Partition, code: ErrorCode) -> None:
        if self.fetching is not None:
            self.fetching.stop(held)
        held.resign(code)

    def _set_stray_aside(self, key: tuple[str, int], topic_id: UUID) -> None:
        found = self._log_dirs.logs.get(key)
        if found is None or found.topic_id == topic_id or key in self.partitions or not topic_id.int:
            return
        if found.topic_id is not None:
            path = self._log_dirs.set_aside(*key)
            self._high_watermarks.pop(key, None)
            logger.warning(
                "Renamed the directory of %s-%d to %s: it contains the ID of a different topic", *key, path
            )

    async def delete_all(
        self, keys: Iterable[tuple[str, int]], turn: Turn | None = None
    ) -> dict[tuple[str, int], Exception]:
        """Drop replicas and delete their logs. Wait until the deletions are durable, and return the errors of
        failed deletions. `turn`, if given, yields to the event loop.
        """
        errors: dict[tuple[str, int], Exception] = {}
        dropped = list(keys)
        left = len(dropped)
        all_done: asyncio.Future[None] | None = None

        def done(key: tuple[str, int], error: Exception | None) -> None:
            nonlocal left
            left -= 1
            if error is not None:
                errors[key] = error
            if not left and all_done is not None and not all_done.done():
                all_done.set_result(None)

        for key in dropped:
            self._delete(*key, partial(done, key))
            if turn is not None:
                await turn.pause_if_due()
        if left:
            all_done = asyncio.get_running_loop().create_future()
            await all_done
        return errors

    def _delete(self, topic: str, partition: int, done: Done) -> None:
        held = self.partitions.pop((topic, partition), None)
        self._offline.discard((topic, partition))
        self._refusals.pop((topic, partition), None)
        self._high_watermarks.pop((topic, partition), None)
        self.reassigning.discard((topic, partition))
        if held is not None:
            self._moved.discard(held)
            self._release(held, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if (topic, partition) in self._log_dirs.logs:
            self._log_dirs.delete(topic, partition, done)
        else:
            done(None)

    def take_offline(self, lost: list[tuple[str, int]]) -> None:
        """Take replicas offline because their disk has failed."""
        for key in lost:
            held = self.partitions.pop(key, None)
            self._offline.add(key)
            if held is not None:
                self._release(held, ErrorCode.KAFKA_STORAGE_ERROR)

    def take_moved_high_watermarks(self) -> dict[tuple[str, int], int]:
        """Return the high watermarks that changed since the previous call."""
        moved = {(held.topic, held.partition): held.high_watermark for held in self._moved}
        self._moved.clear()
        return moved

    def high_watermarks(self) -> dict[tuple[str, int], int]:
        """Return the high watermarks of all logs on this broker, including logs without a `Partition`."""
        held = {key: held.high_watermark for key, held in self.partitions.items()}
        return self._high_watermarks | held

    def resign_all(self) -> Steps[None]:
        """Fail all pending requests, because this broker is shutting down."""
        for some in batched(self):
            for held in some:
                self._release(held, ErrorCode.NOT_LEADER_OR_FOLLOWER)
            yield None
