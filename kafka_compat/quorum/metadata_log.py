"""The metadata log of a node of the quorum: storage's Log in the directory `__cluster_metadata-0`.

Rules
1. The log is read and checked as a whole when it is opened, however it was closed. It ends before the first
   damaged batch.
2. Appends, truncations and reads run on the event loop, `flush` and `delete_files` in a worker thread.
3. A truncation is durable when `truncate` returns, so that no removed batch can reappear behind later ones.
4. The log begins at offset 0 or within the range of a snapshot that replaces what precedes it. If the newest
   snapshot is not a part of the log, because a crash lost the end of the log or because the node stopped
   before the snapshot was installed, the log is emptied and begins at the end of the snapshot.
5. If the newest snapshot is damaged and the log, perhaps with an older snapshot, contains everything in it,
   the damaged file is renamed (`.damaged`) and not used. Otherwise the log cannot be opened.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from kafka_compat.coordination.raft.values import OffsetAndEpoch, VoterSet
from kafka_compat.protocol.messages.quorum_records import KRaftVersionRecord
from kafka_compat.quorum.batches import CommittedBatch, FetchedBatches, committed_batch, read_fetched
from kafka_compat.quorum.checkpoints import BOOTSTRAP, Checkpoints
from kafka_compat.quorum.control_records import (
    control_batch,
    leader_change_batch,
    voters_in,
    voters_record,
)
from kafka_compat.quorum.metadata_directory import claim_metadata_log
from kafka_compat.quorum.metadata_partition import PARTITION, TOPIC, TOPIC_ID
from kafka_compat.storage.config import DAY_MS, LogConfig
from kafka_compat.storage.directories.deletions import Deletions
from kafka_compat.storage.directories.directory_names import METADATA_LOG
from kafka_compat.storage.directories.disk import Disk
from kafka_compat.storage.errors import CorruptFile, CorruptRecord
from kafka_compat.storage.filesystem import RealFilesystem
from kafka_compat.storage.log.loader import LogLoader
from kafka_compat.storage.log.log_files import LEADER_EPOCH_CHECKPOINT
from kafka_compat.storage.records.batch import read_header
from kafka_compat.storage.records.records import Record, build_batch
from kafka_compat.storage.segments.open_segments import OpenSegments
from kafka_compat.storage.segments.scan import scan_headers

if TYPE_CHECKING:
    from kafka_compat.coordination.raft.effects import AppendLeaderChange, AppendVoters
    from kafka_compat.storage.clock import Clock
    from kafka_compat.storage.filesystem import Filesystem
    from kafka_compat.storage.log.log import Log
    from kafka_compat.storage.segments.file_slice import FileSlice

log = logging.getLogger(__name__)

_NO_LIMIT: Final = -1


class FoundLog(NamedTuple):
    """What the Raft machine must know of a log that was opened: the arguments of its LogState.

    `start` is the log start offset with the epoch of the record before it. `epochs` contains the first offset
    of each epoch as (epoch, offset). `snapshot` is the newest snapshot. `voter_sets` contains each set of
    voters with its offset, which is below the end of the snapshot for the voters in the snapshot.
    """

    start: OffsetAndEpoch
    end_offset: int
    epochs: tuple[tuple[int, int], ...]
    snapshot: OffsetAndEpoch | None
    voter_sets: tuple[tuple[int, VoterSet], ...]


class MetadataLog:
    """The metadata log. Methods raise LogDirFailure or RefusedForNow if the disk fails or is full."""

    def __init__(self, opened: Log, deletions: Deletions, checkpoints: Checkpoints, clock: Clock) -> None:
        self.checkpoints = checkpoints
        self._log = opened
        self._deletions = deletions
        self._clock = clock

    @classmethod
    def open(
        cls,
        log_directory: str,
        clock: Clock,
        filesystem: Filesystem | None = None,
        *,
        segment_bytes: int = 1024 * 1024 * 1024,
        segment_ms: int = 7 * DAY_MS,
    ) -> MetadataLog:
        """Open the log in the subdirectory `__cluster_metadata-0` of `log_directory` (metadata.log.dir), or
        create it. Raises OSError, CorruptFile if the log or the newest snapshot cannot be used, or
        InconsistentMetaProperties if Kafka has used the log.
        """
        files = filesystem or RealFilesystem()
        directory = f"{log_directory}/{METADATA_LOG}"
        config = LogConfig(
            segment_bytes=segment_bytes,
            segment_ms=segment_ms,
            retention_ms=_NO_LIMIT,
            retention_bytes=_NO_LIMIT,
            file_delete_delay_ms=0,
        )
        deletions = Deletions(files)
        loader = LogLoader(files, OpenSegments(), deletions, clock)
        disk = Disk(log_directory)
        key = (TOPIC, PARTITION)
        claim_metadata_log(log_directory, files)
        checkpoints = Checkpoints(directory, clock.now_ms, files)
        # All batches are read, so the epochs are those of the batches. After a crash, the file may contain
        # epochs of batches that were truncated.
        files.unlink(f"{directory}/{LEADER_EPOCH_CHECKPOINT}")
        loaded = loader.load(disk, directory, key, config, recovery_point=0, log_start_offset=0, clean=False)
        opened = loaded.log
        if loaded.truncated_bytes:
            log.warning(
                "Removed %d bytes at the end of the metadata log in %s", loaded.truncated_bytes, directory
            )
        if opened.topic_id is None:
            opened.assign_topic_id(TOPIC_ID)
        found = cls(opened, deletions, checkpoints, clock)
        found._set_damaged_snapshots_aside()
        found._match_snapshots()
        opened.flush()
        return found

    def _set_damaged_snapshots_aside(self) -> None:
        checkpoints = self.checkpoints
        while (snapshot := checkpoints.latest) is not None:
            try:
                checkpoints.check(snapshot)
                return
            except CorruptFile as error:
                if not self._contains_records_of(snapshot):
                    raise
                path = checkpoints.set_aside(snapshot)
                log.error(
                    "%s. The log contains the same records, so this node continues without the snapshot, now "
                    "%s. Check the disk",
                    error,
                    path,
                )

    def _contains_records_of(self, snapshot: OffsetAndEpoch) -> bool:
        """Return whether the log, together with an earlier snapshot, makes this one superfluous."""
        opened = self._log
        if snapshot == BOOTSTRAP:
            return False  # The first voters are only there.
        end = opened.leader_epochs.latest_epoch, opened.log_end_offset
        if snapshot.offset > opened.log_end_offset or (snapshot.epoch, snapshot.offset) > end:
            return False
        start = opened.first_base_offset
        return start == 0 or any(start <= each.offset < snapshot.offset for each in self.checkpoints.all)

    def _match_snapshots(self) -> None:
        opened = self._log
        snapshot = self.checkpoints.latest
        if snapshot is not None and snapshot.offset > 0:
            last = opened.leader_epochs.latest_epoch, opened.log_end_offset
            is_at_start = opened.first_base_offset == opened.log_end_offset == snapshot.offset
            if (snapshot.epoch, snapshot.offset) > last and not is_at_start:
                log.warning(
                    "Emptied the metadata log in %s: it ended at offset %d, before its snapshot %d-%d",
                    opened.directory,
                    opened.log_end_offset,
                    *snapshot,
                )
                opened.truncate_fully_and_start_at(snapshot.offset)
        first = opened.first_base_offset
        if first > 0:
            end = opened.log_end_offset
            starts = [each.offset for each in self.checkpoints.all if first <= each.offset <= end]
            if not starts:
                raise CorruptFile(
                    f"the metadata log in {opened.directory} begins at offset {first}, but the snapshot of "
                    "earlier records is missing: restore it from a backup, or empty the metadata directory "
                    "so that this node fetches everything from the other voters"
                )
            opened.advance_log_start_offset(min(starts))

    # --- state

    @property
    def directory(self) -> str:
        """The path of `__cluster_metadata-0`."""
        return self._log.directory

    @property
    def start_offset(self) -> int:
        return self._log.log_start_offset

    @property
    def end_offset(self) -> int:
        return self._log.log_end_offset

    @property
    def size_bytes(self) -> int:
        """The size of all segments in bytes."""
        return self._log.size_bytes

    def age_ms(self) -> int:
        """Return the age in ms of the oldest records, or 0 if there are none. Raises LogDirFailure."""
        with self._log.disk.reading(self._log.name):
            first = self._log.segments.all[0].first_timestamp
        return 0 if first is None else self._clock.now_ms() - first

    def found(self) -> FoundLog:
        """Return what the Raft machine must know at startup. Reads the headers of all batches. Raises
        CorruptFile if the voters in the newest snapshot cannot be read, and OSError.
        """
        opened = self._log
        start = opened.log_start_offset
        epoch = 0
        for snapshot in self.checkpoints.all:
            if snapshot.offset == start > 0:
                epoch = snapshot.epoch
        latest = self.checkpoints.latest
        voter_sets: list[tuple[int, VoterSet]] = []
        from_offset = 0
        if latest is not None:
            voters = self.checkpoints.voters(latest)
            if voters is not None:
                voter_sets.append((latest.offset - 1, voters))
                from_offset = latest.offset
        voter_sets += [(offset, voters) for offset, voters in self._voters_in_log() if offset >= from_offset]
        return FoundLog(
            OffsetAndEpoch(start, epoch),
            opened.log_end_offset,
            tuple(
                (entry.epoch, entry.start_offset)
                for entry in opened.leader_epochs.entries
                if entry.start_offset < opened.log_end_offset
            ),
            latest,
            tuple(voter_sets),
        )

    def _voters_in_log(self) -> Iterator[tuple[int, VoterSet]]:
        for segment in self._log.segments.all:
            for batch in scan_headers(segment.file, 0, segment.size_bytes):
                header = batch.header
                if header.is_control and header.base_offset >= self.start_offset:
                    voters = voters_in(header, segment.file.pread(header.size_bytes, batch.position))
                    if voters is not None:
                        yield header.base_offset, voters

    # --- appends. They are not durable before the next flush.

    def append_records(self, base_offset: int, epoch: int, records: Sequence[bytes]) -> None:
        """Append framed records as one batch."""
        now_ms = self._clock.now_ms()
        values = [Record(timestamp=now_ms, value=value) for value in records]
        self._append(build_batch(values, base_offset=base_offset, leader_epoch=epoch), base_offset)

    def append_leader_change(self, effect: AppendLeaderChange) -> None:
        """Append the first batch of an epoch."""
        self._append(
            leader_change_batch(
                effect.leader_id,
                effect.voters,
                effect.granting,
                base_offset=effect.base_offset,
                epoch=effect.epoch,
                timestamp_ms=self._clock.now_ms(),
            ),
            effect.base_offset,
        )

    def append_voters(self, effect: AppendVoters) -> None:
        """Append a set of voters."""
        version = [KRaftVersionRecord(kraft_version=1)] if effect.with_version else []
        self._append(
            control_batch(
                [*version, voters_record(effect.voters)],
                base_offset=effect.base_offset,
                epoch=effect.epoch,
                timestamp_ms=self._clock.now_ms(),
            ),
            effect.base_offset,
        )

    def read_fetched(self, data: bytes) -> FetchedBatches:
        """Check bytes that were fetched at the end of the log. Raises CorruptRecord."""
        return read_fetched(data, self.end_offset)

    def append_fetched(self, data: bytes) -> None:
        """Append batches of the leader as they came. Raises CorruptRecord if a CRC is wrong or the offsets do
        not continue the log.
        """
        self._append(data, read_header(data).base_offset)

    def _append(self, data: bytes, base_offset: int) -> None:
        if base_offset != self._log.log_end_offset:
            raise CorruptRecord(
                f"a batch of offset {base_offset} cannot follow the end {self._log.log_end_offset} of the log"
            )
        self._log.append_as_follower(memoryview(data))

    # --- other changes

    def truncate(self, offset: int) -> None:
        """Remove all batches from `offset` on, durably."""
        self._log.truncate_to(offset)

    def install(self, snapshot: OffsetAndEpoch) -> None:
        """Remove all records, durably: the log begins at the end of this snapshot, which must exist."""
        self._log.truncate_fully_and_start_at(snapshot.offset)

    def move_start(self, offset: int) -> None:
        """Raise the log start to the end of a snapshot, and remove the segments that end below it. The newest
        segment is closed if it begins below, so that a later call can remove it.
        """
        opened = self._log
        opened.advance_log_start_offset(offset)
        if opened.segments.active.base_offset < offset and opened.segments.active.size_bytes:
            opened.roll(self._clock.now_ms())
        opened.apply_retention(self._clock.now_ms(), opened.log_end_offset)

    def flush(self) -> None:
        """Make all records durable. May run in a worker thread."""
        self._log.flush()

    def delete_files(self) -> Iterator[None]:
        """Delete the files of removed segments, in steps: a job of the worker, after `move_start`, `truncate`
        and `install`. Startup deletes remaining files.
        """
        while True:
            yield from self._deletions.run(self._clock.monotonic_ms())
            if not self._deletions.has_more:
                return

    def close(self) -> None:
        """Flush and close the log."""
        self._log.close()

    # --- reads

    def read(self, offset: int, end_offset: int, max_bytes: int) -> FileSlice | None:
        """Return whole batches in [offset, end_offset), at least one, and otherwise at most `max_bytes`.
        Returns None if there are none. Raises OffsetOutOfRange if `offset` is not in the log.
        """
        return self._log.read(offset, max_bytes, end_offset)

    def committed(self, offset: int, max_bytes: int, end_offset: int) -> Iterator[CommittedBatch]:
        """Iterate over the batches in [offset, end_offset), and read at most `max_bytes` (at least one batch)
        at a time. Raises CorruptRecord or InvalidRecord if a batch is damaged.
        """
        while offset < end_offset:
            part = self._log.read(offset, max_bytes, end_offset)
            if part is None:
                return
            data = memoryview(part.read())
            position = 0
            while position < len(data):
                header = read_header(data, position)
                end = position + header.size_bytes
                yield committed_batch(header, data[position:end])
                position = end
                offset = header.next_offset
