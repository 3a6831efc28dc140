"""One cleaning of one log: the rules of `batch_cleaner`, applied to segment files on disk.

The job reads sealed segments and writes `.cleaned` files to the same directory. They are durable before they
are reported. The job never changes an existing file. The caller then either replaces the old files with the
new files (`storage.log.cleaning`) or removes the new files.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass

from kafka_compat.storage.compaction.batch_cleaner import (
    BatchCleaner,
    CleaningPolicy,
    LastOfProducer,
    Transactions,
    group_segments,
)
from kafka_compat.storage.compaction.offset_map import OffsetMap
from kafka_compat.storage.config import INT_MAX
from kafka_compat.storage.filesystem import Buffer, File, Filesystem
from kafka_compat.storage.records.batch import CONTROL_FLAG, BatchHeader
from kafka_compat.storage.records.legacy import Message, read_message, unwrap
from kafka_compat.storage.records.record_keys import read_keys
from kafka_compat.storage.records.records import records_body
from kafka_compat.storage.segments import segment_files
from kafka_compat.storage.segments.offset_index import OffsetIndex
from kafka_compat.storage.segments.scan import ScannedBatch, scan_batches
from kafka_compat.storage.segments.segment_files import LOG_SUFFIX, TXN_INDEX_SUFFIX, file_name
from kafka_compat.storage.segments.time_index import TimeIndex
from kafka_compat.storage.segments.txn_index import AbortedTxn, decode, encode

WRITE_BYTES = 1024 * 1024
PUT_RECORDS = 1000
"""Minimum number of records added to the map at once, because adding records one by one takes longer."""

Throttle = Callable[[int], None]
"""Function that is called with the number of bytes in each read or write, and may sleep."""


@dataclass(frozen=True, slots=True)
class SegmentSource:
    """A sealed segment, as it was when the job was created."""

    base_offset: int
    end_offset: int
    size_bytes: int
    offset_index_bytes: int
    time_index_bytes: int
    modified_ms: int


@dataclass(frozen=True, slots=True)
class CleaningJob:
    """The input of a cleaning. `segments` are the sealed segments, oldest first. Keys are read starting at
    `first_dirty_offset`. `transaction_indexes` are the base offsets of all segments of the log.
    """

    directory: str
    segments: tuple[SegmentSource, ...]
    transaction_indexes: tuple[int, ...]
    first_dirty_offset: int
    producers: dict[int, LastOfProducer]
    now_ms: int
    delete_retention_ms: int
    segment_bytes: int
    segment_index_bytes: int
    index_interval_bytes: int
    dedupe_buffer_bytes: int
    load_factor: float
    """Maximum load of the offset map (log.cleaner.io.buffer.load.factor)."""
    io_bytes_per_s: float

    @property
    def upper_bound(self) -> int:
        return self.segments[-1].end_offset

    def encode(self) -> bytes:
        """Encode the job as one JSON object."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def decode(cls, content: bytes) -> "CleaningJob":
        """Decode a job from its JSON object."""
        fields = json.loads(content)
        fields["segments"] = tuple(SegmentSource(**segment) for segment in fields["segments"])
        fields["transaction_indexes"] = tuple(fields["transaction_indexes"])
        fields["producers"] = {
            int(number): LastOfProducer(*last) for number, last in fields["producers"].items()
        }
        return cls(**fields)


@dataclass(frozen=True, slots=True)
class CleanedGroup:
    """A new segment in `.cleaned` files. It replaces the segments whose base offsets are in `sources`."""

    sources: tuple[int, ...]
    size_bytes: int
    has_transaction_index: bool


@dataclass(frozen=True, slots=True)
class CleaningDone:
    """Report of a completed job. All records below `end_offset` are clean."""

    end_offset: int
    key_count: int


def run(
    job: CleaningJob, filesystem: Filesystem, throttle: Throttle
) -> Iterator[CleanedGroup | CleaningDone]:
    """Run the job. Yield each group once its files are durable, and finally a CleaningDone. Raises OSError,
    or CorruptRecord, InvalidRecord or CorruptFile if the log is damaged.
    """
    work = _Cleaning(job, filesystem, throttle)
    offset_map = work.build_map()
    end_offset = offset_map.latest_offset + 1
    policy = CleaningPolicy(job.now_ms, job.delete_retention_ms, job.upper_bound, job.producers)
    cleaner = BatchCleaner(offset_map, policy, work.transactions())
    affected = [segment for segment in job.segments if segment.base_offset < end_offset]
    groups = list(group_segments(affected, job.segment_bytes, job.segment_index_bytes))
    yield from work.clean_groups(groups, cleaner)
    yield CleaningDone(end_offset, len(offset_map))


class _Cleaning:
    def __init__(self, job: CleaningJob, filesystem: Filesystem, throttle: Throttle) -> None:
        self._job = job
        self._filesystem = filesystem
        self._throttle = throttle
        self._aborted = list(self._read_transaction_indexes())
        older = [segment for segment in job.segments if segment.base_offset < job.first_dirty_offset]
        # Formats 0 and 1 have no field for a delete horizon, so tombstones expire by the age of the segments.
        self._legacy_horizon_ms = older[-1].modified_ms - job.delete_retention_ms if older else 0
        self._walk = Transactions(())

    def _path(self, base_offset: int, suffix: str) -> str:
        return f"{self._job.directory}/{file_name(base_offset, suffix)}"

    def _read_transaction_indexes(self) -> Iterator[AbortedTxn]:
        for base_offset in self._job.transaction_indexes:
            path = self._path(base_offset, TXN_INDEX_SUFFIX)
            if self._filesystem.exists(path):
                yield from decode(self._filesystem.read_file(path))

    def transactions(self) -> Transactions:
        """Create the transaction state for a new pass from the start of the log."""
        self._walk = Transactions(self._aborted)
        return self._walk

    def _batches(self, segment: SegmentSource) -> Iterator[ScannedBatch]:
        file = self._filesystem.open(self._path(segment.base_offset, LOG_SUFFIX))
        return scan_batches(_Throttled(file, self._throttle), 0, segment.size_bytes, segment.base_offset)

    def build_map(self) -> OffsetMap:
        """Map each key in the dirty part to its last offset, until the map is full."""
        job = self._job
        found = OffsetMap(job.dedupe_buffer_bytes, job.load_factor, job.first_dirty_offset)
        transactions = Transactions(self._aborted)
        keys: list[bytes] = []
        offsets: list[int] = []
        for segment in job.segments:
            if segment.end_offset <= job.first_dirty_offset:
                continue
            for _, header, data in self._batches(segment):
                discarded = header.magic == 2 and transactions.discards(header, data)
                if not discarded and header.last_offset >= job.first_dirty_offset:
                    _add_keys(header, data, found, keys, offsets)
                    if len(keys) >= PUT_RECORDS:
                        if not found.put(keys, offsets):
                            return found
                        found.latest_offset = header.last_offset
                        keys, offsets = [], []
            if not found.put(keys, offsets):
                return found
            # Advance to the end of the segment, because offsets before the next segment may be missing.
            found.latest_offset = segment.end_offset - 1
            keys, offsets = [], []
        return found

    def clean_groups(
        self, groups: Sequence[Sequence[SegmentSource]], cleaner: BatchCleaner
    ) -> Iterator[CleanedGroup]:
        """Write each group's retained records into one segment. A group without records is merged with the
        next group, because Apache Kafka cannot look up records by time in a log with empty segments.
        """
        sources: list[SegmentSource] = []
        writer: _CleanedSegment | None = None
        first_kept = 0
        for number, group in enumerate(groups):
            if writer is None:
                sources, first_kept = [], len(self._walk.kept)
                writer = _CleanedSegment(self._job, self._filesystem, group[0].base_offset, self._throttle)
            self._clean_into(writer, group, cleaner)
            sources += group
            if writer.is_empty and number + 1 < len(groups):
                end_offset = groups[number + 1][-1].end_offset
                if end_offset - 1 - sources[0].base_offset <= INT_MAX:
                    continue
            aborted = self._walk.kept[first_kept:]
            size_bytes = writer.finish(aborted, sources[-1].modified_ms)
            yield CleanedGroup(tuple(source.base_offset for source in sources), size_bytes, bool(aborted))
            writer = None

    def _clean_into(
        self, writer: "_CleanedSegment", group: Sequence[SegmentSource], cleaner: BatchCleaner
    ) -> None:
        for segment in group:
            tombstones_stay = segment.modified_ms > self._legacy_horizon_ms
            for batch in self._batches(segment):
                if batch.header.magic < 2:
                    if any(
                        cleaner.keeps_legacy(
                            message.offset, message.key, message.value is not None, tombstones_stay
                        )
                        for message in _messages(batch.data)
                    ):
                        writer.append(batch.header, batch.data)
                    continue
                left = cleaner.clean(batch.header, batch.data)
                if left is not None:
                    writer.append(batch.header, left)


class _Throttled:
    def __init__(self, file: File, throttle: Throttle) -> None:
        self._file = file
        self._throttle = throttle

    def pread(self, size_bytes: int, position: int) -> bytes:
        content = self._file.pread(size_bytes, position)
        self._throttle(len(content))
        return content


class _CleanedSegment:
    def __init__(
        self, job: CleaningJob, filesystem: Filesystem, base_offset: int, throttle: Throttle
    ) -> None:
        self._filesystem = filesystem
        self._throttle = throttle
        self._prefix = f"{job.directory}/{file_name(base_offset, '')}"
        self._index_interval_bytes = job.index_interval_bytes
        for suffix in segment_files.SEGMENT_SUFFIXES:
            filesystem.unlink(self._path(suffix))
        self._file: File = filesystem.create(self._path(LOG_SUFFIX))
        self._offset_index = OffsetIndex(base_offset)
        self._time_index = TimeIndex(base_offset)
        self._pending: list[Buffer] = []
        self._pending_bytes = 0
        self._size_bytes = 0
        self._bytes_since_index_entry = 0
        self._max_timestamp = -1
        self._max_timestamp_offset = base_offset

    def _path(self, suffix: str) -> str:
        return f"{self._prefix}{suffix}{segment_files.CLEANED_SUFFIX}"

    @property
    def is_empty(self) -> bool:
        return not self._size_bytes

    def append(self, source: BatchHeader, data: Buffer) -> None:
        """Append the cleaned batch `data`, whose original header was `source`."""
        max_timestamp = source.max_timestamp
        if source.magic == 2:
            max_timestamp = int.from_bytes(data[35:43], "big", signed=True)
        if max_timestamp > self._max_timestamp:
            self._max_timestamp = max_timestamp
            self._max_timestamp_offset = source.last_offset
        if self._bytes_since_index_entry > self._index_interval_bytes:
            self._offset_index.append(source.last_offset, self._size_bytes)
            self._time_index.maybe_append(self._max_timestamp, self._max_timestamp_offset)
            self._bytes_since_index_entry = 0
        self._bytes_since_index_entry += len(data)
        self._size_bytes += len(data)
        self._pending.append(data)
        self._pending_bytes += len(data)
        if self._pending_bytes >= WRITE_BYTES:
            self._write()

    def _write(self) -> None:
        content = memoryview(b"".join(self._pending))
        self._throttle(len(content))
        while content:
            written_bytes = self._file.write(content)
            content = content[written_bytes:]
        self._pending = []
        self._pending_bytes = 0

    def finish(self, aborted: list[AbortedTxn], modified_ms: int) -> int:
        """Write buffered data and the indexes durably, and return the size of the segment."""
        filesystem = self._filesystem
        self._write()
        self._time_index.maybe_append(self._max_timestamp, self._max_timestamp_offset)
        indexes = {
            segment_files.OFFSET_INDEX_SUFFIX: self._offset_index.encode(),
            segment_files.TIME_INDEX_SUFFIX: self._time_index.encode(),
        }
        if aborted:
            indexes[TXN_INDEX_SUFFIX] = encode(aborted)
        for suffix, content in indexes.items():
            filesystem.write_file(self._path(suffix), content)
            filesystem.sync_file(self._path(suffix))
        # Keep the modification time, because retention and the expiry of legacy tombstones rely on it.
        filesystem.set_modified_ms(self._path(LOG_SUFFIX), modified_ms)
        self._file.sync()
        return self._size_bytes


def _add_keys(
    header: BatchHeader, data: memoryview, found: OffsetMap, keys: list[bytes], offsets: list[int]
) -> None:
    """Add a batch's keys and offsets to the lists `keys` and `offsets`, starting at `found.first_offset`."""
    first_offset = found.first_offset
    if header.magic < 2:
        for message in _messages(data):
            if message.key is not None and message.offset >= first_offset:
                keys.append(message.key)
                offsets.append(message.offset)
        return
    if header.attributes & CONTROL_FLAG or not header.record_count:
        return
    records = read_keys(header, records_body(data, header))
    base = header.base_offset
    if records.tombstones:
        found.note_tombstones(base)
    if base >= first_offset and not records.keyless:
        keys += records.keys
        offsets += [base + delta for delta in records.offset_deltas]
        return
    keyless = set(records.keyless)
    for index, (key, delta) in enumerate(zip(records.keys, records.offset_deltas, strict=True)):
        if base + delta >= first_offset and index not in keyless:
            keys.append(key)
            offsets.append(base + delta)


def _messages(data: memoryview) -> list[Message]:
    message, _ = read_message(data, 0)
    return unwrap(message) if message.codec else [message]
