"""Dead letters of share groups (KIP-1191): where they may be written, and the records themselves.

Rules
1. The dead letter topic must have the broker's prefix, must not begin with `__`, and must allow dead letters
   (errors.deadletterqueue.group.enable). If it is missing, it is created only if the broker allows this.
2. A dead letter of partition n is written to partition n modulo the number of partitions.
3. Its headers contain the origin of the record, the delivery count and the reason. It has the key and the
   value of the record only if the group wants copies and the log still contains the record. Headers of the
   record are not copied.
4. A batch is no larger than max.message.bytes of the topic, unless the headers of one dead letter alone are
   larger. The broker then rejects the batch.
5. A record is not copied if it is larger than max.message.bytes of the dead letter topic or COPIED_BYTES_MAX,
   or in a compressed batch whose decompressed records are, or if a batch with its dead letter alone is larger
   than max.message.bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from kafka_compat.storage.errors import StorageError, TakesLong
from kafka_compat.storage.records.batch import (
    HEADER_SIZE,
    MAGIC_POSITION,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    BatchHeader,
    read_header,
)
from kafka_compat.storage.records.compression import decompress
from kafka_compat.storage.records.legacy import records_of
from kafka_compat.storage.records.records import Header, encode_record, iter_body, join_batch

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kafka_compat.long_work import Steps
    from kafka_compat.replication.partition import Partition
    from kafka_compat.storage.records.records import Record

COPIED_BYTES_MAX: Final = 1 << 20
_READ_BYTES: Final = 64 * 1024
_STEP_RECORDS: Final = 100
_OVERHEAD_BYTES: Final = 8
_PREFIX: Final = "__dlq.errors."

Content = tuple[bytes | None, bytes | None]
"""The key and the value of a record."""
NO_CONTENT: Final[Content] = (None, None)


def refusal(topic: str | None, prefix: str, *, exists: bool, is_enabled: bool, creates: bool) -> str | None:
    """Return why dead letters cannot be written to this topic, or None if they can. `is_enabled` is the
    setting of the topic, and `creates` that of the broker.
    """
    if not topic:
        return "the group has no dead letter topic"
    if topic.startswith("__"):
        return f"the name of topic {topic} begins with __"
    if exists and not is_enabled:
        return f"errors.deadletterqueue.group.enable of topic {topic} is not true"
    if not exists and not creates:
        return (
            f"topic {topic} does not exist. Create it with errors.deadletterqueue.group.enable=true, or set "
            "errors.deadletterqueue.auto.create.topics.enable of the brokers"
        )
    if not topic.startswith(prefix):
        return f"the name of topic {topic} does not begin with {prefix}"
    return None


class Origin(NamedTuple):
    """The share-partition that dead letters come from."""

    group_id: str
    topic: str
    partition: int


def headers_of(origin: Origin, offset: int, delivery_count: int, cause: str) -> list[Header]:
    """Return the headers of a dead letter, in Kafka's order."""
    values = (
        ("topic", origin.topic),
        ("partition", str(origin.partition)),
        ("offset", str(offset)),
        ("group", origin.group_id),
        ("delivery.count", str(delivery_count)),
        ("message", cause),
    )
    return [(_PREFIX + name, value.encode()) for name, value in values]


class DeadLetterBatch:
    """One record batch of dead letters, until it is full."""

    def __init__(self, max_message_bytes: int, now_ms: int, *, is_single: bool = False) -> None:
        """`max_message_bytes` is the setting of the topic. With `is_single`, the first dead letter fills the
        batch.
        """
        self._max_message_bytes = max_message_bytes
        self._max_bytes = min(max_message_bytes, COPIED_BYTES_MAX)
        self._now_ms = now_ms
        self._is_single = is_single
        self._records: list[bytes] = []
        self._size_bytes = HEADER_SIZE
        self.has_copies = False
        """Whether any dead letter has a key or a value."""

    def __len__(self) -> int:
        return len(self._records)

    @property
    def max_bytes(self) -> int:
        return self._max_bytes

    @property
    def room_bytes(self) -> int:
        return max(self._max_bytes - self._size_bytes, 0)

    def add(self, headers: Sequence[Header], content: Content) -> bool:
        """Add a dead letter, by rule 5 without the content if no batch has room for it. Return False if the
        batch is full. The first one always fits.
        """
        count = len(self._records)
        record = encode_record(count, 0, *content, headers)
        if count and (self._is_single or len(record) > self.room_bytes):
            return False
        if HEADER_SIZE + len(record) > self._max_message_bytes and content != NO_CONTENT:
            content = NO_CONTENT
            record = encode_record(count, 0, *content, headers)
        self._records.append(record)
        self._size_bytes += len(record)
        self.has_copies = self.has_copies or content != NO_CONTENT
        return True

    def build(self) -> bytes:
        """Return the batch. It must not be empty."""
        count = len(self._records)
        producer = NO_PRODUCER_ID, NO_PRODUCER_EPOCH, NO_SEQUENCE
        header = BatchHeader(0, 0, -1, 2, 0, 0, count - 1, self._now_ms, self._now_ms, *producer, count)
        return join_batch(header, b"".join(self._records))


class Contents(NamedTuple):
    """Keys and values of records. Records up to `through` that are missing have none."""

    of_offsets: dict[int, Content]
    through: int

    def get(self, offset: int) -> Content:
        return self.of_offsets.get(offset, NO_CONTENT)


def read_contents(
    replica: Partition, first: int, last: int, limit_bytes: int, room_bytes: int
) -> Steps[Contents]:
    """Read the committed records of [first, last], but no more than `room_bytes` after the first one.
    `limit_bytes` is the size of rule 5.
    """
    found: dict[int, Content] = {}
    size_bytes = 0
    next_offset, end = first, min(last + 1, replica.high_watermark)
    while next_offset < end:
        yield None
        try:
            read = replica.log.read(next_offset, _READ_BYTES, replica.high_watermark)
            data = b"" if read is None else read.read()
        except StorageError:
            # The records have been deleted, or the disk has failed.
            break
        begin = next_offset
        for batch in _batches(data):
            yield None
            for count, record in enumerate(_records(batch, limit_bytes)):
                if count % _STEP_RECORDS == 0:
                    yield None
                if record.offset < next_offset:
                    continue
                if record.offset >= end:
                    return Contents(found, last)
                record_bytes = _size_bytes(record)
                if record_bytes <= limit_bytes:
                    if found and size_bytes + record_bytes > room_bytes:
                        return Contents(found, record.offset - 1)
                    found[record.offset] = record.key, record.value
                    size_bytes += record_bytes
            next_offset = max(next_offset, read_header(batch).next_offset)
        if next_offset == begin:
            break
    return Contents(found, last)


def _batches(data: bytes) -> Iterator[memoryview]:
    view, position = memoryview(data), 0
    while position < len(data):
        size_bytes = read_header(view, position).size_bytes
        yield view[position : position + size_bytes]
        position += size_bytes


def _records(batch: memoryview, limit_bytes: int) -> Iterator[Record]:
    """Iterate over the records of a batch, or over none if they are too large or damaged."""
    try:
        if batch[MAGIC_POSITION] < 2:
            yield from records_of(batch)
            return
        header = read_header(batch)
        body = batch[HEADER_SIZE:]
        if header.attributes & 7:
            content = decompress(header.attributes & 7, body, quick_bytes=limit_bytes)
        else:
            content = bytes(body)
        yield from iter_body(header, content)
    except (StorageError, TakesLong):
        return


def _size_bytes(record: Record) -> int:
    """Return about the size of an encoded record."""
    size_bytes = _OVERHEAD_BYTES + len(record.key or b"") + len(record.value or b"")
    for name, value in record.headers:
        size_bytes += len(name) + len(value or b"")
    return size_bytes
