"""Snapshots of the store: when they are taken, and which records and older snapshots they replace.

Rules
1. A snapshot is taken when metadata.log.max.record.bytes.between.snapshots of records have been applied
   since the last one, or when the last one is older than metadata.log.max.snapshot.interval.ms and records
   followed.
2. A snapshot is written in the background, part by part, in at most a quarter of the time: many changes at
   once, as after the failure of a broker, are more urgent. It is durable before the machine learns of it. If
   the disk is full, the next snapshot is tried after as many records as always.
3. The log begins at the latest snapshot once it exceeds metadata.max.retention.bytes, or once its oldest
   records are older than metadata.max.retention.ms. Older snapshots are then deleted.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from kafka_compat.coordination.raft import events
from kafka_compat.quorum.committed_records import TURN_S
from kafka_compat.quorum.worker_jobs import in_worker
from kafka_compat.storage.directories.disk import FULL

if TYPE_CHECKING:
    from kafka_compat.coordination.raft.values import OffsetAndEpoch, VoterSet
    from kafka_compat.coordination.replicated_store.metadata_log import LogApplication
    from kafka_compat.quorum.checkpoints import Checkpoints
    from kafka_compat.quorum.committed_records import CommittedRecords
    from kafka_compat.quorum.metadata_log import MetadataLog
    from kafka_compat.storage.directories.directory_worker import Worker

log = logging.getLogger(__name__)

_CHECK_S_MAX: Final = 60.0
_PAUSE_S: Final = 3 * TURN_S
"""The pause after each turn: with it, a snapshot takes a quarter of the time (rule 2)."""


class SnapshotSettings(NamedTuple):
    """The settings of rules 1 and 3. `interval_ms` 0: the age of a snapshot does not matter. A negative
    `retention_bytes` or `retention_ms` means no limit.
    """

    record_bytes: int
    interval_ms: int
    retention_bytes: int
    retention_ms: int


class Snapshots:
    """The snapshots that this node takes."""

    def __init__(
        self,
        metadata_log: MetadataLog,
        checkpoints: Checkpoints,
        application: LogApplication,
        records: CommittedRecords,
        worker: Worker,
        handle: Callable[[events.Event], None],
        failed: Callable[[Exception], None],
        voters_before: Callable[[int], VoterSet | None],
        settings: SnapshotSettings,
    ) -> None:
        """`voters_before` returns the voters in the log or its snapshot before an offset (KIP-853)."""
        self._log = metadata_log
        self._checkpoints = checkpoints
        self._application = application
        self._records = records
        self._worker = worker
        self._handle = handle
        self._failed = failed
        self._voters_before = voters_before
        self._record_bytes = settings.record_bytes
        self._interval_s = settings.interval_ms / 1000
        self._retention_bytes = settings.retention_bytes
        self._retention_ms = settings.retention_ms
        self._loop = asyncio.get_running_loop()
        self._last_s = self._loop.time()
        self._timer: asyncio.TimerHandle | None = None
        self._taking: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to check the age of the last snapshot."""
        if self._interval_s > 0:
            self._timer = self._loop.call_later(min(self._interval_s, _CHECK_S_MAX), self._check_age)

    def _check_age(self) -> None:
        self._timer = self._loop.call_later(min(self._interval_s, _CHECK_S_MAX), self._check_age)
        if self._records.bytes_since_snapshot and self._loop.time() - self._last_s >= self._interval_s:
            self.take()

    def applied(self) -> None:
        """Take a snapshot if enough records have been applied."""
        if self._records.bytes_since_snapshot >= self._record_bytes:
            self.take()

    def take(self) -> None:
        """Take a snapshot in the background, unless one is being taken or the store has stopped."""
        if self._taking is None and self._records.is_idle and self._application.failure is None:
            self._taking = self._loop.create_task(self._take())

    async def _take(self) -> None:
        try:
            snapshot = self._records.applied
            self._records.bytes_since_snapshot = 0
            self._last_s = self._loop.time()
            framed = self._application.snapshot()
            try:
                with self._checkpoints.write(
                    snapshot, voters=self._voters_before(snapshot.offset)
                ) as writing:
                    turn_ends_s = self._loop.time() + TURN_S
                    for record in framed:
                        writing.add(record)
                        if self._loop.time() > turn_ends_s:
                            await asyncio.sleep(_PAUSE_S)
                            turn_ends_s = self._loop.time() + TURN_S
                    await in_worker(self._worker, writing.complete)
            finally:
                close = getattr(framed, "close", None)
                if close is not None:
                    close()
            log.info("Took snapshot %d-%d of the metadata", *snapshot)
            self._handle(events.SnapshotTaken(snapshot))
            await self._clean(snapshot)
        except OSError as error:
            if error.errno in FULL:
                log.warning(
                    "Could not take a snapshot of the metadata in %s: %s. The log keeps all records until "
                    "the next snapshot. Free disk space",
                    self._log.directory,
                    error,
                )
            else:
                self._failed(error)
        except Exception as error:
            self._failed(error)
        finally:
            self._taking = None

    async def _clean(self, latest: OffsetAndEpoch) -> None:
        is_full = 0 <= self._retention_bytes < self._log.size_bytes
        is_old = 0 <= self._retention_ms < self._log.age_ms()
        if (is_full or is_old) and latest.offset > self._log.start_offset:
            self._log.move_start(latest.offset)
            self._handle(events.LogStartMoved(latest.offset))
            await in_worker(self._worker, self._log.delete_files)
        if self._log.start_offset in (0, latest.offset):
            # The log does not begin at an older snapshot, so no follower needs one.
            await in_worker(self._worker, self._checkpoints.delete_old)

    async def close(self) -> None:
        """Take no more snapshots."""
        if self._timer is not None:
            self._timer.cancel()
        if self._taking is not None:
            self._taking.cancel()
            await asyncio.wait([self._taking])
