"""Validation of produced batches by a leader: first the batch header, then every record.

A request with one valid batch of format 2 is the hot path of the broker, so this case is handled first,
without copying the data. Batches of old formats are converted (`legacy`), and batches in a codec other than
the topic's are recompressed; both allocate a new buffer.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Final

from kafka_compat.storage.config import LogConfig
from kafka_compat.storage.errors import (
    CorruptRecord,
    InvalidRecord,
    InvalidTimestamp,
    MessageTooLarge,
    MisplacedBatch,
    NotOneBatch,
    RecordListTooLarge,
    TakesLong,
    UnsupportedCompressionType,
)
from kafka_compat.storage.records.batch import (
    COMPRESSION_MASK,
    CONTROL_FLAG,
    CRC_START,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC_POSITION,
    NO_TIMESTAMP,
    TIMESTAMP_TYPE_FLAG,
    BatchHeader,
    Buffer,
    read_header,
    seal,
    unpack_header,
)
from kafka_compat.storage.records.compression import NAMES, decompress
from kafka_compat.storage.records.crc import crc32c
from kafka_compat.storage.records.kinds import CompressionType, TimestampType
from kafka_compat.storage.records.record_scan import scan
from kafka_compat.storage.records.records import Record, iter_records, join_batch

LONG_MAX: Final = 2**63 - 1
_WORD_MAX: Final = 2**61
KEYLESS: Final = "Compacted topic cannot accept message without key"
"""Start of the error message for a record without a key."""
QUICK_BYTES_MAX: Final = 4 << 20
QUICK_BODY_BYTES_MAX: Final = 2 << 20
QUICK_COMPRESSED_BYTES_MAX: Final = 32 << 10
QUICK_OLD_BYTES_MAX: Final = 4 << 10
QUICK_SCAN_RECORDS_MAX: Final = 32_768
QUICK_RECORDS_MAX: Final = 1_000
"""Limits above which `validate_batches` with `quick` raises TakesLong: the number of records, the number of
bytes to checksum, compress or convert from an old format, and the size after decompression.
"""
_MIN_BATCH_LENGTH: Final = HEADER_SIZE - LOG_OVERHEAD
_MIN_LEGACY_LENGTH: Final = 14
_FIRST_VERSION_OF_FORMAT_2: Final = 3
_FIRST_VERSION_OF_ZSTD: Final = 7
_SIZE: Final = struct.Struct(">i")
# Bind enumeration members to globals, because accessing a member through its class takes two name lookups.
_ZSTD: Final = int(CompressionType.ZSTD)
_CREATE_TIME: Final = TimestampType.CREATE_TIME
_LOG_APPEND_TIME: Final = TimestampType.LOG_APPEND_TIME
_ATTRIBUTES: Final = struct.Struct(">h")
_MAX_TIMESTAMP: Final = struct.Struct(">q")
_TIMESTAMP_TYPES: Final = {
    "CreateTime": TimestampType.CREATE_TIME,
    "LogAppendTime": TimestampType.LOG_APPEND_TIME,
}


@dataclass(slots=True)
class AppendPolicy:
    """The validation rules for one topic, named like Kafka's settings. Sizes are in bytes, times in ms. They
    are not modified.
    """

    max_message_bytes: int = 1_048_588
    segment_bytes: int = 1 << 30
    timestamp_type: TimestampType = TimestampType.CREATE_TIME
    before_max_ms: int = LONG_MAX
    after_max_ms: int = 3_600_000
    compact: bool = False
    """Whether cleanup.policy contains `compact`, so that every record needs a key."""
    compression_type: str = "producer"
    compression_level: int | None = None
    validate_records: bool = True
    """Whether the records after the batch header are validated. Not a setting of Apache Kafka."""
    partition: str = ""
    """The partition's name, for error messages about records without a key in a compacted topic."""

    quick_before_max_ms: int = field(init=False)
    quick_after_max_ms: int = field(init=False)
    """The limits of timestamps, or smaller ones that fit into a machine word. The records of a batch that
    exceeds them are checked individually.
    """

    def __post_init__(self) -> None:
        self.quick_before_max_ms = min(self.before_max_ms, _WORD_MAX)
        self.quick_after_max_ms = min(self.after_max_ms, _WORD_MAX)

    @classmethod
    def of(cls, config: LogConfig, partition: str) -> AppendPolicy:
        """Return the validation rules for a topic with the settings `config`."""
        return cls(
            partition=partition,
            max_message_bytes=config.max_message_bytes,
            segment_bytes=config.segment_bytes,
            timestamp_type=_TIMESTAMP_TYPES[config.message_timestamp_type],
            before_max_ms=config.message_timestamp_before_max_ms,
            after_max_ms=config.message_timestamp_after_max_ms,
            compact=config.compact,
            compression_type=config.compression_type,
            compression_level=config.compression_level,
            validate_records=config.validate_records,
        )


_shared: Final[list[tuple[LogConfig, AppendPolicy]]] = []
"""The most recent rules and their settings, cached because many topics share one LogConfig object."""


def policy_of(config: LogConfig, partition: str) -> AppendPolicy:
    """Return the validation rules for a partition, possibly as an object shared with other partitions."""
    if config.compact:
        return AppendPolicy.of(config, partition)
    for known, policy in _shared:
        if known is config:
            return policy
    policy = AppendPolicy.of(config, "")
    _shared[:] = [(config, policy)]
    return policy


class ValidatedBatches:
    """Batches that may be appended after the base offset and leader epoch have been written into `data`.

    `converted` is true if `data` was converted from an old format or recompressed. `data` is empty if an old
    client sent no messages. `headers` contains the header of the batch in `data`, if any, with base offset 0.
    `log_append_time` is in ms, or -1 if the timestamps are from the producer. `checked` is the part of a
    small batch that its CRC covers, or None.
    """

    __slots__ = ("checked", "converted", "data", "headers", "log_append_time")

    def __init__(
        self,
        data: Buffer,
        headers: list[BatchHeader],
        log_append_time: int = NO_TIMESTAMP,
        converted: bool = False,
        checked: bytes | None = None,
    ) -> None:
        self.checked = checked
        self.data = data
        self.headers = headers
        self.log_append_time = log_append_time
        self.converted = converted


def validate_batches(
    data: Buffer, policy: AppendPolicy, now_ms: int, produce_version: int | None = None, quick: bool = False
) -> ValidatedBatches:
    """Validate the data for one partition in a Produce request of this version (None: the newest version).

    The timestamp type and the largest timestamp in the header are corrected if necessary, in place if `data`
    is a writable view and otherwise in a copy. Raises a StorageError whose class depends on the cause. With
    `quick`, raises TakesLong if the validation would take more than a few milliseconds.
    """
    size_bytes = len(data)
    if size_bytes < HEADER_SIZE:
        return _validate_unusual(data, policy, now_ms, produce_version, quick)
    header = unpack_header(data, 0)
    if header.magic != 2 or header.batch_length != size_bytes - LOG_OVERHEAD:
        return _validate_unusual(data, policy, now_ms, produce_version, quick)
    if quick and (header.record_count > QUICK_SCAN_RECORDS_MAX or size_bytes > QUICK_BYTES_MAX):
        raise TakesLong
    attributes = header.attributes
    codec = attributes & COMPRESSION_MASK
    if codec == _ZSTD and produce_version is not None and produce_version < _FIRST_VERSION_OF_ZSTD:
        raise UnsupportedCompressionType(f"zstd requires Produce v7 or later, not v{produce_version}")
    if header.base_offset != 0:
        raise MisplacedBatch(f"the base offset of a client's batch must be 0, not {header.base_offset}")
    if size_bytes > policy.max_message_bytes:
        raise _too_large(size_bytes, policy)
    checked = data[CRC_START:]
    if crc32c(checked) != header.crc:
        raise CorruptRecord(f"the CRC of a batch of {size_bytes} bytes is not {header.crc}")
    count = header.record_count
    if count <= 0 or count != header.last_offset_delta + 1:
        raise MisplacedBatch(f"a batch of {count} records cannot end at offset {header.last_offset_delta}")
    if attributes & CONTROL_FLAG:
        raise MisplacedBatch("clients must not write control records")
    if header.producer_id >= 0 and header.base_sequence < 0:
        raise MisplacedBatch(f"producer {header.producer_id} sent the sequence {header.base_sequence}")
    if codec > _ZSTD:
        raise InvalidRecord(f"unknown codec {codec}")

    max_timestamp = header.max_timestamp
    body = None
    if policy.validate_records:
        if codec == 0:
            least, greatest, has_null_key = scan(bytes(data), count, HEADER_SIZE)
        else:
            body = _decompressed(codec, data, quick)
            least, greatest, has_null_key = scan(body, count)
        max_timestamp = header.base_timestamp + greatest
        if policy.timestamp_type is _CREATE_TIME:
            may_be_out_of_range = (
                now_ms - header.base_timestamp - least > policy.quick_before_max_ms
                or max_timestamp - now_ms > policy.quick_after_max_ms
            )
        else:
            may_be_out_of_range = attributes & TIMESTAMP_TYPE_FLAG != 0
        if may_be_out_of_range or (has_null_key and policy.compact):
            if quick and count > QUICK_RECORDS_MAX:
                raise TakesLong
            _check_records(
                _as_created(data), policy, now_ms, is_log_append_time=attributes & TIMESTAMP_TYPE_FLAG != 0
            )

    log_append_time = NO_TIMESTAMP
    if policy.timestamp_type is _LOG_APPEND_TIME:
        log_append_time = max_timestamp = now_ms
        attributes |= TIMESTAMP_TYPE_FLAG
    else:
        attributes &= ~TIMESTAMP_TYPE_FLAG
    converted = False
    if policy.compression_type != "producer" and NAMES[policy.compression_type] != codec:
        if body is None:
            body = _decompressed(codec, data, quick) if codec else bytes(data[HEADER_SIZE:])
        if quick and len(body) > QUICK_COMPRESSED_BYTES_MAX:
            raise TakesLong
        data, header = _recompress(header, body, policy)
        attributes = attributes & ~COMPRESSION_MASK | header.attributes & COMPRESSION_MASK
        converted = True
    if attributes != header.attributes or max_timestamp != header.max_timestamp:
        if max_timestamp > LONG_MAX:
            raise InvalidRecord(f"the timestamp {max_timestamp} has more than 64 bits")
        # As in Kafka, the maximum timestamp is never less than -1 (no timestamp).
        max_timestamp = max(max_timestamp, NO_TIMESTAMP)
        data, header = _rewrite(data, attributes, max_timestamp)
    if len(data) > policy.segment_bytes:
        raise RecordListTooLarge(f"{len(data)} bytes do not fit into a segment of {policy.segment_bytes}")
    if isinstance(data, bytes) and isinstance(checked, bytes):
        return ValidatedBatches(data, [header], log_append_time, converted, checked)
    return ValidatedBatches(data, [header], log_append_time, converted)


def _too_large(size_bytes: int, policy: AppendPolicy) -> MessageTooLarge:
    return MessageTooLarge(
        f"a batch of {size_bytes} bytes exceeds max.message.bytes={policy.max_message_bytes}"
    )


def _rewrite(data: Buffer, attributes: int, max_timestamp: int) -> tuple[Buffer, BatchHeader]:
    if not isinstance(data, memoryview) or data.readonly:
        data = memoryview(bytearray(data))
    _ATTRIBUTES.pack_into(data, 21, attributes)
    _MAX_TIMESTAMP.pack_into(data, 35, max_timestamp)
    seal(data)
    return data, read_header(data)


def _decompressed(codec: int, data: Buffer, quick: bool) -> bytes:
    return decompress(codec, data[HEADER_SIZE:], quick_bytes=QUICK_BODY_BYTES_MAX if quick else None)


def _recompress(header: BatchHeader, body: bytes, policy: AppendPolicy) -> tuple[Buffer, BatchHeader]:
    attributes = header.attributes & ~COMPRESSION_MASK | NAMES[policy.compression_type]
    batch = join_batch(header.replace(attributes=attributes), body, level=policy.compression_level)
    if len(batch) > policy.max_message_bytes:
        raise _too_large(len(batch), policy)
    data = memoryview(batch)
    return data, read_header(data)


def _check_records(
    records: list[Record], policy: AppendPolicy, now_ms: int, *, is_log_append_time: bool
) -> None:
    """Raise InvalidTimestamp or InvalidRecord, with the indexes of the invalid records, if there are any.

    All records may be valid even if the smallest timestamp is out of range, because records without a
    timestamp are not checked. `is_log_append_time` is true if the producer set the type LogAppendTime.
    """
    errors: list[tuple[int, str]] = []
    about_time = False
    for index, record in enumerate(records):
        message = None
        if policy.compact and record.key is None:
            message = f"{KEYLESS} in topic partition {policy.partition}"
        else:
            message = _timestamp_error(record, policy, now_ms, is_log_append_time)
            about_time |= message is not None
        if message is not None:
            errors.append((index, message))
    if about_time:
        raise InvalidTimestamp("One or more records have been rejected due to invalid timestamp", errors)
    if errors:
        first = ", ".join(f"RecordError(batchIndex={index}, message='{text}')" for index, text in errors[:3])
        raise InvalidRecord(
            f"One or more records have been rejected due to {len(errors)} record errors in total, and only "
            f"showing the first three errors at most: [{first}]",
            errors,
        )


def _timestamp_error(
    record: Record, policy: AppendPolicy, now_ms: int, is_log_append_time: bool
) -> str | None:
    timestamp = record.timestamp
    if policy.timestamp_type is _LOG_APPEND_TIME:
        if not is_log_append_time:
            return None
        return (
            f"Invalid timestamp type in message DefaultRecord(offset={record.offset}, timestamp={timestamp}, "
            f"key={len(record.key or b'')} bytes, value={len(record.value or b'')} bytes). "
            "Producer should not set timestamp type to LogAppendTime."
        )
    earliest = max(now_ms - policy.before_max_ms, -LONG_MAX - 1)
    latest = min(now_ms + policy.after_max_ms, LONG_MAX)
    if timestamp == NO_TIMESTAMP or earliest <= timestamp <= latest:
        return None
    return (
        f"Timestamp {timestamp} of message with offset {record.offset} is out of range. The timestamp should "
        f"be within [{earliest}, {latest}]"
    )


def _as_created(data: Buffer) -> list[Record]:
    """Read the records with the timestamps set by the producer, even if the batch type is LogAppendTime."""
    batch = bytearray(data)
    (attributes,) = _ATTRIBUTES.unpack_from(batch, 21)
    _ATTRIBUTES.pack_into(batch, 21, attributes & ~TIMESTAMP_TYPE_FLAG)
    return list(iter_records(batch))


def _validate_unusual(
    data: Buffer, policy: AppendPolicy, now_ms: int, produce_version: int | None, quick: bool
) -> ValidatedBatches:
    """Validate input other than one batch of format 2: old formats, several batches, or invalid data."""
    only_format_2 = produce_version is None or produce_version >= _FIRST_VERSION_OF_FORMAT_2
    sizes, magics = _batches(data)
    if not sizes:
        if only_format_2:
            raise NotOneBatch(f"{len(data)} bytes do not contain a complete batch")
        return ValidatedBatches(data[:0], [])
    if only_format_2 and magics[0] != 2:
        raise NotOneBatch(f"Produce v3 and later require record format 2, not {magics[0]}")
    if magics[0] == 2:
        if len(sizes) > 1:
            raise NotOneBatch(f"{len(sizes)} batches for a partition, but only one is allowed")
        if sizes[0] < HEADER_SIZE:
            raise CorruptRecord(f"a batch of {sizes[0]} bytes is shorter than its header")
        # As in Kafka, drop an incomplete second batch.
        return validate_batches(
            data[: sizes[0]], policy, now_ms, produce_version=produce_version, quick=quick
        )
    if any(magic != magics[0] for magic in magics):
        raise InvalidRecord("a message set mixes record formats")
    if quick and (len(data) > QUICK_OLD_BYTES_MAX or data[MAGIC_POSITION + 1] & COMPRESSION_MASK):
        raise TakesLong
    whole_bytes = sum(sizes)
    return _convert(data[:whole_bytes], sizes, policy, now_ms)


def _batches(data: Buffer) -> tuple[list[int], list[int]]:
    """Return the sizes and magic numbers of the complete batches or messages in `data`.

    Raises CorruptRecord if a length or magic number is invalid.
    """
    sizes: list[int] = []
    magics: list[int] = []
    position = 0
    while len(data) - position > MAGIC_POSITION:
        (length,) = _SIZE.unpack_from(data, position + 8)
        magic = data[position + MAGIC_POSITION]
        if length < _MIN_LEGACY_LENGTH:
            raise CorruptRecord(f"a batch cannot have a length of {length}")
        if magic > 2:
            raise CorruptRecord(f"unknown record format {magic}")
        if position + LOG_OVERHEAD + length > len(data):
            break
        sizes.append(LOG_OVERHEAD + length)
        magics.append(magic)
        position += LOG_OVERHEAD + length
    if not sizes and len(data) >= LOG_OVERHEAD:
        (length,) = _SIZE.unpack_from(data, 8)
        if length < _MIN_LEGACY_LENGTH:
            raise CorruptRecord(f"a batch cannot have a length of {length}")
    return sizes, magics


def _convert(data: Buffer, sizes: list[int], policy: AppendPolicy, now_ms: int) -> ValidatedBatches:
    from kafka_compat.storage.records.legacy import read_message_set, up_convert

    if max(sizes) > policy.max_message_bytes:
        raise _too_large(max(sizes), policy)
    records, codec, is_log_append_time = read_message_set(data)
    _check_records(records, policy, now_ms, is_log_append_time=is_log_append_time)
    if policy.compression_type != "producer":
        codec = NAMES[policy.compression_type]
    stamped = policy.timestamp_type is _LOG_APPEND_TIME
    batch = up_convert(
        records, codec, log_append_time=now_ms if stamped else None, level=policy.compression_level
    )
    if len(batch) > policy.max_message_bytes:
        raise _too_large(len(batch), policy)
    if len(batch) > policy.segment_bytes:
        raise RecordListTooLarge(f"{len(batch)} bytes do not fit into a segment of {policy.segment_bytes}")
    converted = memoryview(batch)
    return ValidatedBatches(converted, [read_header(converted)], now_ms if stamped else NO_TIMESTAMP, True)
