"""Snapshots of the metadata log, in Kafka's format: files `OFFSET-EPOCH.checkpoint` in the log's directory.

A snapshot replaces all records below OFFSET; EPOCH is the epoch of the last of them. Its batches have the
offsets 0, 1 and so on: a control batch with the header and, if voters are stored in the log, kraft.version
and the voters; batches of records; and a control batch with the footer.

Rules
1. A file with the final name is complete and durable: it is written or received under another name, synced,
   and renamed.
2. The snapshot 0-0, which `storage format` writes, is kept: it contains the first voters of a cluster.
3. `complete` and `delete_old` may run in a worker thread.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Final

from kafka_compat.coordination.raft.values import OffsetAndEpoch, VoterSet
from kafka_compat.protocol.messages import quorum_records
from kafka_compat.quorum.batches import committed_batch
from kafka_compat.quorum.control_records import control_batch, control_messages, voters_in, voters_record
from kafka_compat.storage.errors import CorruptFile, CorruptRecord, InvalidRecord
from kafka_compat.storage.filesystem import RealFilesystem
from kafka_compat.storage.records.records import Record, build_batch
from kafka_compat.storage.segments.file_slice import FileSlice
from kafka_compat.storage.segments.scan import scan_batches

if TYPE_CHECKING:
    from kafka_compat.coordination.replicated_store.metadata_log import AppliedRecord
    from kafka_compat.storage.filesystem import Buffer, File, Filesystem

log = logging.getLogger(__name__)

SUFFIX: Final = ".checkpoint"
PART_SUFFIX: Final = ".checkpoint.part"
_DELETED_SUFFIX: Final = ".checkpoint.deleted"
_DAMAGED_SUFFIX: Final = ".damaged"
KEPT: Final = 2
"""The number of snapshots that are kept."""
_BATCH_BYTES: Final = 1024 * 1024
"""Size in bytes at which the records of a batch are written."""
BOOTSTRAP: Final = OffsetAndEpoch(0, 0)
"""The snapshot that `storage format` writes."""


class PositionOutOfRange(Exception):
    """A position beyond the end of a snapshot (POSITION_OUT_OF_RANGE)."""


def file_name(snapshot: OffsetAndEpoch) -> str:
    """Return Kafka's name for the file of a snapshot."""
    return f"{snapshot.offset:020d}-{snapshot.epoch:010d}{SUFFIX}"


def snapshot_of(name: str) -> OffsetAndEpoch | None:
    """Return the snapshot in a file with this name, or None if it is not the file of a complete snapshot."""
    offset, _, epoch = name.removesuffix(SUFFIX).partition("-")
    if not name.endswith(SUFFIX) or len(offset) != 20 or len(epoch) != 10:
        return None
    if not (offset.isdecimal() and epoch.isdecimal()):
        return None
    return OffsetAndEpoch(int(offset), int(epoch))


class Checkpoints:
    """The snapshots in the directory of the metadata log."""

    def __init__(
        self, directory: str, now_ms: Callable[[], int], filesystem: Filesystem | None = None
    ) -> None:
        """`directory` must exist. Remains of interrupted operations are removed. Raises OSError."""
        self.directory = directory
        self._now_ms = now_ms
        self._filesystem = filesystem or RealFilesystem()
        self._lock = threading.Lock()
        names = self._filesystem.listdir(directory)
        for name in names:
            if name.endswith((PART_SUFFIX, _DELETED_SUFFIX)):
                self._filesystem.unlink(f"{directory}/{name}")
        self.all = tuple(sorted(filter(None, map(snapshot_of, names))))
        """All snapshots, oldest first."""

    @property
    def latest(self) -> OffsetAndEpoch | None:
        """The newest snapshot, or None if there is none."""
        return self.all[-1] if self.all else None

    def path(self, snapshot: OffsetAndEpoch) -> str:
        return f"{self.directory}/{file_name(snapshot)}"

    # --- reads

    def read(self, snapshot: OffsetAndEpoch, position: int, max_bytes: int) -> tuple[FileSlice, int]:
        """Return a part of a snapshot, and the size of the whole snapshot in bytes. A part may begin and end
        within a batch. Raises FileNotFoundError if the snapshot does not exist, or PositionOutOfRange.
        """
        file = self._filesystem.open(self.path(snapshot))
        size_bytes = file.size()
        if not 0 <= position < size_bytes:
            raise PositionOutOfRange(
                f"position {position} is outside of the {size_bytes} bytes of {snapshot}"
            )
        return FileSlice(file, position, min(max(max_bytes, 1), size_bytes - position)), size_bytes

    def records(self, snapshot: OffsetAndEpoch) -> Iterator[AppliedRecord]:
        """Iterate over the records of a snapshot. Their offsets are those in the file. Raises CorruptFile if
        the snapshot is damaged, and OSError.
        """
        return self.records_of_file(self.path(snapshot), self._filesystem)

    @staticmethod
    def records_of_file(path: str, filesystem: Filesystem) -> Iterator[AppliedRecord]:
        """Iterate over the records of the snapshot in a file (see `records`)."""
        file = filesystem.open(path)
        try:
            for batch in scan_batches(file, 0, file.size()):
                yield from committed_batch(batch.header, batch.data).records
        except (CorruptRecord, InvalidRecord) as error:
            raise _damaged(path, error) from error

    def voters(self, snapshot: OffsetAndEpoch) -> VoterSet | None:
        """Return the voters in a snapshot, or None if it contains none. Raises CorruptFile or OSError."""
        path = self.path(snapshot)
        file = self._filesystem.open(path)
        try:
            for batch in scan_batches(file, 0, file.size()):
                if not batch.header.is_control:
                    break  # Voters precede all records.
                voters = voters_in(batch.header, batch.data)
                if voters is not None:
                    return voters
        except (CorruptRecord, InvalidRecord) as error:
            raise _damaged(path, error) from error
        return None

    def check(self, snapshot: OffsetAndEpoch) -> None:
        """Read a whole snapshot. Raises CorruptFile if it is damaged, and OSError."""
        self._check_file(self.path(snapshot))

    def set_aside(self, snapshot: OffsetAndEpoch) -> str:
        """Rename a damaged snapshot, so that it is no longer used. Return its new path. Raises OSError."""
        path = self.path(snapshot)
        self._filesystem.rename(path, path + _DAMAGED_SUFFIX)
        self._filesystem.sync_directory(self.directory)
        with self._lock:
            self.all = tuple(each for each in self.all if each != snapshot)
        return path + _DAMAGED_SUFFIX

    def _check_file(self, path: str) -> None:
        file = self._filesystem.open(path)
        first = last = None
        next_offset = 0
        try:
            for batch in scan_batches(file, 0, file.size()):
                header = batch.header
                if header.base_offset != next_offset:
                    raise CorruptRecord(f"offset {header.base_offset} where {next_offset} was expected")
                next_offset = header.next_offset
                if header.is_control:
                    for message in control_messages(header, batch.data):
                        first = first or message
                        last = message
                else:
                    last = None
        except (CorruptRecord, InvalidRecord) as error:
            raise _damaged(path, error) from error
        if not isinstance(first, quorum_records.SnapshotHeaderRecord):
            raise _damaged(path, "it does not begin with a header")
        if not isinstance(last, quorum_records.SnapshotFooterRecord):
            raise _damaged(path, "it does not end with a footer")

    # --- writes

    def write(
        self, snapshot: OffsetAndEpoch, *, timestamp_ms: int | None = None, voters: VoterSet | None = None
    ) -> WrittenSnapshot:
        """Begin to write a snapshot. Use the result as a context manager: unless it is completed, leaving the
        context removes the file. `timestamp_ms` is that of the last record before the snapshot's end
        (default: now); `voters` is the set of voters at that offset if voters are stored in the log.
        """
        if timestamp_ms is None:
            timestamp_ms = self._now_ms()
        return WrittenSnapshot(self, snapshot, timestamp_ms, voters)

    def receive(self, snapshot: OffsetAndEpoch) -> NewSnapshot:
        """Begin to store a snapshot that another node sends in parts."""
        return NewSnapshot(self, snapshot)

    def delete_old(self) -> None:
        """Delete all snapshots except 0-0 and the newest two: another node may be fetching the older one."""
        removed = [each for each in self.all[:-KEPT] if each != BOOTSTRAP]
        for snapshot in removed:
            try:
                self._filesystem.unlink(self.path(snapshot))
            except OSError as error:
                log.warning("Could not remove %s: %s. Remove the file", self.path(snapshot), error)
        with self._lock:
            self.all = tuple(each for each in self.all if each not in removed)

    def create_part(self, snapshot: OffsetAndEpoch) -> tuple[str, File]:
        """Create the file of a snapshot that is not complete."""
        stem = file_name(snapshot).removesuffix(SUFFIX)
        path = f"{self.directory}/{stem}-{os.urandom(8).hex()}{PART_SUFFIX}"
        return path, self._filesystem.create(path)

    def remove_part(self, path: str) -> None:
        """Remove the file of a snapshot that was not completed."""
        with contextlib.suppress(OSError):
            self._filesystem.unlink(path)

    def publish(self, snapshot: OffsetAndEpoch, path: str, file: File, *, checked: bool) -> None:
        """Make a complete snapshot durable, and give it its name. Raises CorruptFile (unless it was checked)
        or OSError.
        """
        if not checked:
            self._check_file(path)
        file.sync()
        self._filesystem.rename(path, self.path(snapshot))
        self._filesystem.sync_directory(self.directory)
        with self._lock:
            self.all = tuple(sorted({*self.all, snapshot}))


def _damaged(path: str, reason: Exception | str) -> CorruptFile:
    return CorruptFile(
        f"the metadata snapshot {path} is damaged ({reason}): restore it from a backup, or empty the "
        "metadata directory so that this node fetches everything from the other voters"
    )


class NewSnapshot:
    """A snapshot that is not complete, to which bytes are appended."""

    _is_ours = False

    def __init__(self, checkpoints: Checkpoints, snapshot: OffsetAndEpoch) -> None:
        self.snapshot = snapshot
        self.position = 0
        """The number of bytes written so far."""
        self._checkpoints = checkpoints
        self._path, self._file = checkpoints.create_part(snapshot)
        self._completed = False

    def __enter__(self) -> NewSnapshot:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if not self._completed:
            self._checkpoints.remove_part(self._path)

    def write(self, data: Buffer) -> None:
        """Append bytes. Raises OSError."""
        view = memoryview(data)
        self.position += len(view)
        while view:
            written_bytes = self._file.write(view)
            view = view[written_bytes:]

    def complete(self) -> None:
        """Make the snapshot durable and the newest one. May run in a worker thread. Raises CorruptFile if the
        received bytes are not a complete snapshot, and OSError.
        """
        self._checkpoints.publish(self.snapshot, self._path, self._file, checked=self._is_ours)
        self._completed = True


class WrittenSnapshot(NewSnapshot):
    """A snapshot of this node that is being written."""

    _is_ours = True

    def __init__(
        self, checkpoints: Checkpoints, snapshot: OffsetAndEpoch, timestamp_ms: int, voters: VoterSet | None
    ) -> None:
        super().__init__(checkpoints, snapshot)
        self._timestamp_ms = timestamp_ms
        self._records: list[Record] = []
        self._size_bytes = 0
        self._next_offset = 0
        start: list[object] = [quorum_records.SnapshotHeaderRecord(last_contained_log_timestamp=timestamp_ms)]
        if voters is not None:
            start += [quorum_records.KRaftVersionRecord(kraft_version=1), voters_record(voters)]
        self._write_control(start)

    def __enter__(self) -> WrittenSnapshot:
        return self

    def add(self, value: bytes) -> None:
        """Append a framed record. Raises OSError."""
        self._records.append(Record(timestamp=self._timestamp_ms, value=value))
        self._size_bytes += len(value)
        if self._size_bytes >= _BATCH_BYTES:
            self._write_records()

    def complete(self) -> None:
        """Write the footer, make the snapshot durable, and make it the newest one. Raises OSError."""
        self._write_records()
        self._write_control([quorum_records.SnapshotFooterRecord()])
        super().complete()

    def _write_records(self) -> None:
        if self._records:
            self.write(
                build_batch(self._records, base_offset=self._next_offset, leader_epoch=self.snapshot.epoch)
            )
            self._next_offset += len(self._records)
            self._records = []
            self._size_bytes = 0

    def _write_control(self, messages: list[object]) -> None:
        self.write(
            control_batch(
                messages,
                base_offset=self._next_offset,
                epoch=self.snapshot.epoch,
                timestamp_ms=self._timestamp_ms,
            )
        )
        self._next_offset += len(messages)
