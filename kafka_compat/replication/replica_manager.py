"""The partitions that this broker holds, by topic and number."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from uuid import UUID

from kafka_compat.errors import ErrorCode
from kafka_compat.metadata_cache import MetadataCache
from kafka_compat.replication.flusher import Flusher
from kafka_compat.replication.partition import CallSoon, Partition
from storage.errors import LogDirFailure
from storage.log_dirs import LogDirs

logger = logging.getLogger(__name__)


class ReplicaManager:
    """Finds, starts and stops the partitions of one broker."""

    def __init__(
        self,
        local_id: int,
        log_dirs: LogDirs,
        metadata: MetadataCache,
        flusher: Flusher,
        call_soon: CallSoon,
    ) -> None:
        self.local_id = local_id
        self._log_dirs = log_dirs
        self._metadata = metadata
        self._flusher = flusher
        self._call_soon = call_soon
        self._partitions: dict[tuple[str, int], Partition] = {}
        self._offline: set[tuple[str, int]] = set()

    def __iter__(self) -> Iterator[Partition]:
        return iter(list(self._partitions.values()))

    def get(self, topic: str, partition: int) -> Partition | None:
        """The partition as this broker holds it; None where it holds none: `missing` says why."""
        return self._partitions.get((topic, partition))

    def missing(self, topic: str, partition: int) -> ErrorCode:
        """The error for a partition that `get` did not find."""
        if (topic, partition) in self._offline:
            return ErrorCode.KAFKA_STORAGE_ERROR
        if self._metadata.partition(topic, partition) is not None:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    def lead(
        self,
        topic: str,
        partition: int,
        topic_id: UUID,
        leader_epoch: int,
        isr: tuple[int, ...],
        *,
        is_new: bool,
    ) -> Partition | None:
        """Lead a partition, whose log is made if there is none yet; None when its disk failed.

        While a disk is offline, the log of a partition that is not new may be there: none is made then.
        """
        key = (topic, partition)
        held = self._partitions.get(key)
        if held is None:
            self._set_stray_aside(key, topic_id)
            try:
                if key not in self._log_dirs.logs and not is_new and self._log_dirs.offline:
                    raise LogDirFailure(f"{topic}-{partition} may be in a directory that is offline")
                log = self._log_dirs.logs.get(key) or self._log_dirs.create(topic, partition, topic_id)
            except LogDirFailure:
                self._offline.add(key)
                return None
            if log.topic_id is None:
                log.assign_topic_id(topic_id)
            held = self._partitions[key] = Partition(log, self.local_id, self._flusher, self._call_soon)
        held.become_leader(leader_epoch, isr)
        return held

    def _set_stray_aside(self, key: tuple[str, int], topic_id: UUID) -> None:
        """A folder of another topic of the same name, deleted while this broker did not look, is not this
        one's.
        """
        found = self._log_dirs.logs.get(key)
        if found is not None and found.topic_id not in (None, topic_id):
            path = self._log_dirs.set_aside(*key)
            logger.warning("%s-%d has the id of another topic: it is now %s", *key, path)

    def delete(self, topic: str, partition: int) -> None:
        """Stop holding a partition and drop its log."""
        held = self._partitions.pop((topic, partition), None)
        self._offline.discard((topic, partition))
        if held is not None:
            held.resign(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if (topic, partition) in self._log_dirs.logs:
            self._log_dirs.delete(topic, partition)

    def take_offline(self, lost: list[tuple[str, int]]) -> None:
        """The disk of these partitions failed."""
        for key in lost:
            held = self._partitions.pop(key, None)
            self._offline.add(key)
            if held is not None:
                held.resign(ErrorCode.KAFKA_STORAGE_ERROR)

    def high_watermarks(self) -> dict[tuple[str, int], int]:
        return {key: held.high_watermark for key, held in self._partitions.items()}

    def resign_all(self) -> None:
        """Tell everyone who waits on a partition that this broker stops."""
        for held in self:
            held.resign()
