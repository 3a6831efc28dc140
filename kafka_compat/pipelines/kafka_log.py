"""Spark data source "kafka-log": read the records in a broker's data directory without a broker.

    from kafka_compat.pipelines.kafka_log import KafkaLog
    spark.dataSource.register(KafkaLog)
    spark.read.format("kafka-log").option("path", "/var/lib/kafka").option("topic", "flights").load()

Options: `path`, data directories (log.dirs; comma-separated); `topic`, comma-separated names (default: all
topics except names that begin with two underscores); `payload`: all, keys (values and headers are null), or
none.

The directory may belong to any Kafka broker. After a clean shutdown, it is read to the end. Otherwise, or
while a broker is running, it is read up to the high watermark in the broker's last checkpoint: records below
the high watermark are final. Control records and records of aborted transactions are included. Executors
require the directory, this package and pyarrow.
"""

import os
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

SCHEMA = (
    "topic string, partition int, offset bigint, timestamp timestamp, timestampType int, key binary, "
    "value binary, headers array<struct<key: string, value: binary>>, key_bytes int, value_bytes int, "
    "segment bigint, batch_index int, batch_bytes int, batch_raw_bytes int, compression string, "
    "producer_id bigint, is_transactional boolean, is_control boolean"
)
"""The Kafka connector's columns, followed by sizes (null for a null key or value), the segment's base offset,
the record's index in its batch, the batch's size on disk and decompressed, and batch header fields.
"""

PAYLOADS = ("all", "keys", "none")
ROWS_PER_BATCH = 8192
TASK_BYTES = 16 << 20
_SEGMENT_NAME_LENGTH = 20


@dataclass
class SegmentFile:
    """A segment to read, and the range [start, end) of its valid offsets."""

    path: str
    topic: str
    partition: int
    start: int
    end: int

    @property
    def base_offset(self) -> int:
        return int(os.path.basename(self.path)[:_SEGMENT_NAME_LENGTH])

    def size_bytes(self) -> int:
        """Return the current file size, or 0 if retention has deleted the file."""
        try:
            return os.stat(self.path).st_size
        except FileNotFoundError:
            return 0


@dataclass
class Task(InputPartition):  # type: ignore[misc]
    """Segments that one task reads in sequence."""

    segments: list[SegmentFile]


class KafkaLog(DataSource):  # type: ignore[misc]
    """The Spark data source "kafka-log", based on Spark's Python Data Source API."""

    @classmethod
    def name(cls) -> str:
        return "kafka-log"

    def schema(self) -> str:
        """Return the columns as a Spark DDL string."""
        return SCHEMA

    def reader(self, schema: Any) -> "KafkaLogReader":
        return KafkaLogReader(self.options)


class KafkaLogReader(DataSourceReader):  # type: ignore[misc]
    """A reader that divides the segments into tasks. Each task has an overhead of 0.2 seconds, so it reads
    one large segment or several small segments.
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        given = {name.lower(): value for name, value in options.items()}
        self._payload = given.get("payload", "all")
        if self._payload not in PAYLOADS:
            raise ValueError(f"payload is one of {', '.join(PAYLOADS)}, not {self._payload}")
        topics = [name for name in given.get("topic", "").split(",") if name]
        self._segments = [
            segment for path in given["path"].split(",") for segment in segments(Path(path), topics)
        ]

    def partitions(self) -> list[Any]:
        """Return tasks for the current segments. Spark requires at least one task, which may be empty."""
        tasks = [Task([])]
        room = TASK_BYTES
        for segment in self._segments:
            size_bytes = segment.size_bytes()
            if size_bytes > room and tasks[-1].segments:
                tasks.append(Task([]))
                room = TASK_BYTES
            tasks[-1].segments.append(segment)
            room -= size_bytes
        return list(tasks)

    def read(self, partition: Any) -> Iterator[Any]:
        """Yield Arrow batches with the rows of a task's segments."""
        for segment in partition.segments:
            yield from rows_of(segment, self._payload)


def segments(folder: Path, topics: list[str] | None = None) -> list[SegmentFile]:
    """Return the segments of `topics` (default: all except names that begin with __), with their valid
    offsets. Raises ValueError if the directory is not a broker's data directory.
    """
    from kafka_compat.storage.directories import checkpoints

    if not (folder / checkpoints.META_PROPERTIES).is_file():
        raise ValueError(f"{folder} is not a broker's data directory (no {checkpoints.META_PROPERTIES})")

    def offsets(name: str) -> dict[tuple[str, int], int]:
        path = folder / name
        return checkpoints.decode_offsets(path.read_bytes()) if path.is_file() else {}

    closed = (folder / checkpoints.CLEAN_SHUTDOWN).exists()
    ends = offsets(checkpoints.HIGH_WATERMARKS)
    starts = offsets(checkpoints.LOG_START_OFFSETS)
    found = []
    for directory in sorted(path for path in folder.iterdir() if path.is_dir()):
        topic, dash, number = directory.name.rpartition("-")
        if not dash or not number.isdigit() or not (topic in topics if topics else topic[:2] != "__"):
            continue
        owner = (topic, int(number))
        end = (1 << 63) - 1 if closed else ends.get(owner, 0)
        found += [
            SegmentFile(str(path), *owner, starts.get(owner, 0), end)
            for path in sorted(directory.glob("*.log"))
            if len(path.stem) == _SEGMENT_NAME_LENGTH and path.stem.isdigit() and int(path.stem) < end
        ]
    return found


def rows_of(segment: SegmentFile, payload: str) -> Iterator[Any]:
    """Yield the segment's valid rows as Arrow batches, or nothing if retention has deleted the segment.
    Raises CorruptRecord if a batch is corrupt.
    """
    from kafka_compat.storage.segments.scan import scan_batches

    try:
        descriptor = os.open(segment.path, os.O_RDONLY)
    except FileNotFoundError:
        return
    try:
        rows = _Rows(segment, payload)
        file: Any = _ReadOnly(descriptor)
        for batch in scan_batches(file, 0, os.fstat(descriptor).st_size, segment.base_offset):
            rows.add(batch)
            if len(rows) >= ROWS_PER_BATCH:
                yield rows.take()
            # Stop at the segment's end offset: if a broker is running, later bytes may be incomplete.
            if batch.header.next_offset >= segment.end:
                break
        if len(rows):
            yield rows.take()
    finally:
        os.close(descriptor)


@dataclass(frozen=True, slots=True)
class _ReadOnly:
    """A file with the interface that storage.scan requires."""

    descriptor: int

    def pread(self, size_bytes: int, position: int) -> bytes:
        return os.pread(self.descriptor, size_bytes, position)


class _Rows:
    """A buffer that collects rows as columns for an Arrow batch."""

    def __init__(self, segment: SegmentFile, payload: str) -> None:
        self._segment = segment
        self._payload = payload
        self._clear()

    def __len__(self) -> int:
        return len(self._records.offsets)

    def add(self, batch: Any) -> None:
        codec, raw_bytes, records = _records(batch, with_headers=self._payload == "all")
        first = bisect_left(records.offsets, self._segment.start)
        end = bisect_left(records.offsets, self._segment.end)
        own = (batch.header.size_bytes, raw_bytes, codec, batch.header.producer_id)
        is_new = batch.header.magic == 2
        flags = (is_new and batch.header.is_transactional, is_new and batch.header.is_control)
        self._batches.append((first, end, (int(batch.header.attributes & 8 != 0), *own, *flags)))
        self._records.extend(records, first, end)

    def take(self) -> Any:
        """Return the buffered rows as an Arrow batch, and clear the buffer."""
        import pyarrow as pa
        import pyarrow.compute as pc

        records, count = self._records, len(self)

        def same(value: Any, kind: Any) -> Any:
            return pa.repeat(pa.scalar(value, kind), count)

        def of_batches(column: int, kind: Any) -> Any:
            values = pa.array([values[column] for _, _, values in self._batches], kind)
            return values.take(batch_of_record)

        batch_of_record = pa.array(
            [number for number, (first, end, _) in enumerate(self._batches) for _ in range(first, end)],
            pa.int32(),
        )
        indexes = [index for first, end, _ in self._batches for index in range(first, end)]
        millis = pa.array(records.stamps, pa.timestamp("ms", "UTC"))
        pairs = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
        keys, values = pa.array(records.keys, pa.binary()), pa.array(records.values, pa.binary())
        columns = {
            "topic": same(self._segment.topic, pa.string()),
            "partition": same(self._segment.partition, pa.int32()),
            "offset": pa.array(records.offsets, pa.int64()),
            "timestamp": millis.cast(pa.timestamp("us", "UTC")),
            "timestampType": of_batches(0, pa.int32()),
            "key": pa.nulls(count, pa.binary()) if self._payload == "none" else keys,
            "value": values if self._payload == "all" else pa.nulls(count, pa.binary()),
            "headers": pa.array(records.headers, pairs) if self._payload == "all" else pa.nulls(count, pairs),
            "key_bytes": pc.binary_length(keys),
            "value_bytes": pc.binary_length(values),
            "segment": same(self._segment.base_offset, pa.int64()),
            "batch_index": pa.array(indexes, pa.int32()),
            "batch_bytes": of_batches(1, pa.int32()),
            "batch_raw_bytes": of_batches(2, pa.int32()),
            "compression": of_batches(3, pa.string()),
            "producer_id": of_batches(4, pa.int64()),
            "is_transactional": of_batches(5, pa.bool_()),
            "is_control": of_batches(6, pa.bool_()),
        }
        self._clear()
        return pa.RecordBatch.from_pydict(columns)

    def _clear(self) -> None:
        self._records = _Records()
        self._batches: list[tuple[int, int, tuple[Any, ...]]] = []


@dataclass
class _Records:
    """Records as columns, with increasing absolute offsets. `headers` is in the connector's format."""

    offsets: list[int] = field(default_factory=list)
    stamps: list[int] = field(default_factory=list)
    keys: list[bytes | None] = field(default_factory=list)
    values: list[bytes | None] = field(default_factory=list)
    headers: list[Any] = field(default_factory=list)

    def extend(self, other: "_Records", first: int, end: int) -> None:
        """Append the records from index `first` to `end` - 1 of `other`."""
        self.offsets += other.offsets[first:end]
        self.stamps += other.stamps[first:end]
        self.keys += other.keys[first:end]
        self.values += other.values[first:end]
        self.headers += other.headers[first:end]


def _records(batch: Any, *, with_headers: bool) -> tuple[str, int, _Records]:
    """Return the codec, the decompressed size and the records of a scanned batch of any format."""
    from kafka_compat.storage.records.batch import HEADER_SIZE
    from kafka_compat.storage.records.kinds import CompressionType
    from kafka_compat.storage.records.legacy import read_message, unwrap
    from kafka_compat.storage.records.records import iter_body, records_body

    records = _Records()
    if batch.header.magic == 2:
        body = records_body(batch.data, batch.header)
        if with_headers:
            for record in iter_body(batch.header, body):
                pairs = [{"key": name, "value": value} for name, value in record.headers]
                records.offsets.append(record.offset)
                records.stamps.append(record.timestamp)
                records.keys.append(record.key)
                records.values.append(record.value)
                records.headers.append(pairs or None)
        else:
            _without_headers(batch.header, body, records)
        return batch.header.compression.name.lower(), HEADER_SIZE + len(body), records
    message, _ = read_message(batch.data, 0)
    messages = unwrap(message) if message.codec else [message]
    records.offsets = [m.offset for m in messages]
    records.stamps = [m.timestamp for m in messages]
    records.keys = [m.key for m in messages]
    records.values = [m.value for m in messages]
    records.headers = [None] * len(messages)
    raw_bytes = sum(len(m.key or b"") + len(m.value or b"") for m in messages)
    return CompressionType(message.codec).name.lower(), raw_bytes, records


def _without_headers(header: Any, body: bytes, records: _Records) -> None:
    """Decode format 2 records without headers, in a fraction of the time that storage.records takes.

    Numbers of one or two bytes, and timestamps, are decoded inline.
    """
    from kafka_compat.storage.records.records import read_varint

    add_stamp, add_offset = records.stamps.append, records.offsets.append
    add_key, add_value = records.keys.append, records.values.append
    append_time = header.max_timestamp if header.attributes & 8 else None
    base_offset, base_timestamp = header.base_offset, header.base_timestamp
    position = 0
    for _ in range(header.record_count):
        byte, second = body[position], body[position + 1]
        if byte < 128:
            position += 1
            end = position + (byte >> 1)
        elif second < 128:
            position += 2
            end = position + ((byte & 127 | second << 7) >> 1)
        else:
            length, position = read_varint(body, position)
            end = position + length
        position += 1
        byte = body[position]
        delta, shift = byte & 127, 7
        while byte > 127:
            position += 1
            byte = body[position]
            delta |= (byte & 127) << shift
            shift += 7
        position += 1
        add_stamp(base_timestamp + ((delta >> 1) ^ -(delta & 1)) if append_time is None else append_time)
        byte, second = body[position], body[position + 1]
        if byte < 128:
            add_offset(base_offset + (byte >> 1))
            position += 1
        elif second < 128:
            add_offset(base_offset + ((byte & 127 | second << 7) >> 1))
            position += 2
        else:
            delta, position = read_varint(body, position)
            add_offset(base_offset + delta)
        for add in (add_key, add_value):
            byte = body[position]
            if byte < 128:
                size = (byte >> 1) ^ -(byte & 1)
                position += 1
            else:
                size, position = read_varint(body, position)
            if size < 0:
                add(None)
            else:
                add(body[position : position + size])
                position += size
        position = end
