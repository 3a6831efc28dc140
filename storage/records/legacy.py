"""Message formats 0 and 1, which clients and log directories from before Kafka 0.11 use.

    offset 8 | size 4 | CRC-32 4 | magic 1 | attributes 1 | timestamp 8, format 1 only
    | key length 4, key | value length 4, value

The CRC covers all bytes after it. A length of -1 means null. A compressed message set is stored in the value
of one message, its wrapper. In format 1, inner offsets start at 0, and the offset of the wrapper is the
absolute offset of the last message (KIP-31); in format 0, inner offsets are absolute. If a wrapper has the
type LogAppendTime, its timestamp applies to all inner messages (KIP-32).
"""

import struct
import zlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from kafka_compat.storage.errors import CorruptRecord, InvalidRecord, UnsupportedCompressionType
from kafka_compat.storage.records import batch as batches
from kafka_compat.storage.records.batch import LOG_OVERHEAD, MAGIC_POSITION, NO_TIMESTAMP, Buffer
from kafka_compat.storage.records.compression import compress, decompress
from kafka_compat.storage.records.kinds import CompressionType, TimestampType
from kafka_compat.storage.records.records import Record, build_batch, iter_records

_HEAD = struct.Struct(">qiIbb")
_TIMESTAMP = struct.Struct(">q")
_LENGTH = struct.Struct(">i")
_CRC_END = 16


class Message(NamedTuple):
    """One message of format 0 or 1. The timestamp is -1 in format 0."""

    offset: int
    magic: int
    attributes: int
    timestamp: int
    key: bytes | None
    value: bytes | None

    @property
    def codec(self) -> int:
        return self.attributes & batches.COMPRESSION_MASK

    @property
    def is_log_append_time(self) -> bool:
        return self.attributes & batches.TIMESTAMP_TYPE_FLAG != 0


def read_message(data: Buffer, position: int) -> tuple[Message, int]:
    """Read the message at `position`. Return the message and the position after it. Raises CorruptRecord if
    the message is incomplete, or if its CRC or a length is wrong.
    """
    try:
        offset, size, crc, magic, attributes = _HEAD.unpack_from(data, position)
        end = position + LOG_OVERHEAD + size
        if size < 0 or end > len(data):
            raise CorruptRecord(f"a message of {size} bytes is truncated")
        if magic not in (0, 1):
            raise CorruptRecord(f"{magic} is not one of the old message formats")
        if zlib.crc32(memoryview(data)[position + _CRC_END : end]) != crc:
            raise CorruptRecord(f"the CRC of a message is not {crc}")
        timestamp = NO_TIMESTAMP
        position += _HEAD.size
        if magic == 1:
            (timestamp,) = _TIMESTAMP.unpack_from(data, position)
            position += _TIMESTAMP.size
        key, position = _read_bytes(data, position, end)
        value, position = _read_bytes(data, position, end)
    except struct.error:
        raise CorruptRecord("a message is truncated") from None
    if position != end:
        raise CorruptRecord("the content of a message does not match its size")
    return Message(offset, magic, attributes, timestamp, key, value), end


def _read_bytes(data: Buffer, position: int, end: int) -> tuple[bytes | None, int]:
    (length,) = _LENGTH.unpack_from(data, position)
    position += _LENGTH.size
    if length < 0:
        return None, position
    if position + length > end:
        raise CorruptRecord(f"a field of {length} bytes does not fit into its message")
    return bytes(data[position : position + length]), position + length


def encode_message(message: Message) -> bytes:
    """Encode one message with its CRC."""
    tail = bytearray()
    if message.magic == 1:
        tail += _TIMESTAMP.pack(message.timestamp)
    for content in (message.key, message.value):
        tail += _LENGTH.pack(-1 if content is None else len(content))
        tail += content or b""
    size = _HEAD.size - LOG_OVERHEAD + len(tail)
    encoded = bytearray(_HEAD.pack(message.offset, size, 0, message.magic, message.attributes)) + tail
    struct.pack_into(">I", encoded, LOG_OVERHEAD, zlib.crc32(memoryview(encoded)[_CRC_END:]))
    return bytes(encoded)


def unwrap(wrapper: Message) -> list[Message]:
    """Return the messages inside a compressed message, with absolute offsets and effective timestamps.

    Raises InvalidRecord if the wrapper or an inner message is invalid, or CorruptRecord if data is corrupt.
    """
    if wrapper.codec not in (CompressionType.GZIP, CompressionType.SNAPPY, CompressionType.LZ4):
        raise InvalidRecord(f"the old message formats do not support codec {wrapper.codec}")
    if wrapper.value is None:
        raise InvalidRecord("a compressed message set is null")
    content = decompress(wrapper.codec, wrapper.value, magic=wrapper.magic)
    messages: list[Message] = []
    position = 0
    while position < len(content):
        message, position = read_message(content, position)
        index = len(messages)
        if message.magic != wrapper.magic:
            raise _refuse(index, f"format {message.magic} is wrapped into format {wrapper.magic}")
        if message.codec:
            raise _refuse(index, "a message in a compressed message set is itself compressed")
        messages.append(message)
    if not messages:
        raise InvalidRecord("a compressed message set is empty")
    if wrapper.magic == 0:
        return messages
    base_offset = wrapper.offset - messages[-1].offset
    timestamp = wrapper.timestamp if wrapper.is_log_append_time else None
    return [
        message._replace(
            offset=base_offset + message.offset,
            timestamp=message.timestamp if timestamp is None else timestamp,
        )
        for message in messages
    ]


def records_of(batch: Buffer) -> Iterator[Record]:
    """Iterate over the records of one batch in any format.

    Raises the same errors as `iter_records`, `read_message` and `unwrap`.
    """
    if batch[MAGIC_POSITION] >= 2:
        return iter_records(batch)
    message, _ = read_message(batch, 0)
    messages = unwrap(message) if message.codec else [message]
    return (Record(inner.offset, inner.timestamp, inner.key, inner.value) for inner in messages)


def _refuse(index: int, message: str) -> InvalidRecord:
    return InvalidRecord(message, [(index, message)])


class MessageSet(NamedTuple):
    """The unwrapped message set of one partition in a Produce v0–v2 request.

    The offsets of the records start at 0, because producers need not set meaningful offsets.
    """

    records: list[Record]
    codec: CompressionType
    is_log_append_time: bool


def read_message_set(data: Buffer) -> MessageSet:
    """Read a message set. Raises InvalidRecord if a compressed message is not the only message in the set."""
    messages: list[Message] = []
    position = 0
    while position < len(data):
        message, position = read_message(data, position)
        messages.append(message)
    wrapper = next((message for message in messages if message.codec), None)
    if wrapper is not None:
        if len(messages) > 1:
            raise InvalidRecord("a compressed message must be the only one")
        messages = unwrap(wrapper)
    return MessageSet(
        [
            Record(index, message.timestamp, message.key, message.value)
            for index, message in enumerate(messages)
        ],
        CompressionType(wrapper.codec) if wrapper else CompressionType.NONE,
        any(message.is_log_append_time for message in messages)
        or (wrapper is not None and wrapper.is_log_append_time),
    )


def up_convert(
    records: Sequence[Record],
    codec: CompressionType,
    *,
    log_append_time: int | None = None,
    level: int | None = None,
) -> bytes:
    """Convert the records of a message set to a batch of format 2 with offsets that start at 0.

    `log_append_time`, in ms, replaces the timestamps. If it is None, the timestamps are kept.
    """
    if log_append_time is None:
        return build_batch(records, compression=codec, level=level)
    return build_batch(
        [record._replace(timestamp=log_append_time) for record in records],
        compression=codec,
        timestamp_type=TimestampType.LOG_APPEND_TIME,
        level=level,
    )


def down_convert(data: Buffer, magic: int, *, first_offset: int = 0) -> bytes:
    """Convert whole batches of any format to messages of format `magic` (0 or 1), for Fetch v0 to v3.

    Codec and offsets are kept. Control batches and headers are omitted, because the old formats do not have
    them. Uncompressed records below the fetched `first_offset` and an incomplete last batch are also omitted.
    Conversion stops before a zstd batch, because clients that use these versions cannot read it (KIP-110).
    Raises UnsupportedCompressionType if no message precedes the zstd batch.
    """
    view = memoryview(data)
    parts: list[bytes] = []
    position = 0
    while len(view) - position > MAGIC_POSITION:
        (length,) = _LENGTH.unpack_from(view, position + 8)
        end = position + LOG_OVERHEAD + length
        if length < 0 or end > len(view):
            break
        batch_magic = view[position + MAGIC_POSITION]
        if batch_magic <= magic:
            parts.append(bytes(view[position:end]))
        elif batch_magic == 1:
            parts.extend(_one_to_zero(view[position:end]))
        elif length >= batches.HEADER_SIZE - LOG_OVERHEAD:
            try:
                parts.extend(_down_convert_batch(view[position:end], magic, first_offset))
            except UnsupportedCompressionType:
                if not parts:
                    raise
                break
        position = end
    return b"".join(parts)


def count_messages(data: Buffer) -> int:
    """Return the number of messages in `data`. A compressed message set counts as one message."""
    count = position = 0
    while position + LOG_OVERHEAD <= len(data):
        (size,) = _LENGTH.unpack_from(data, position + 8)
        position += LOG_OVERHEAD + size
        count += 1
    return count


def _down_convert_batch(batch: memoryview, magic: int, first_offset: int) -> Iterator[bytes]:
    header = batches.read_header(batch)
    if header.is_control:
        return
    codec = header.compression
    if codec is CompressionType.ZSTD:
        raise UnsupportedCompressionType("zstd requires Fetch v10 or later")
    attributes = (
        batches.TIMESTAMP_TYPE_FLAG if magic == 1 and header.attributes & batches.TIMESTAMP_TYPE_FLAG else 0
    )
    messages = [
        Message(
            record.offset,
            magic,
            attributes,
            record.timestamp if magic == 1 else NO_TIMESTAMP,
            record.key,
            record.value,
        )
        for record in iter_records(batch)
        if codec or record.offset >= first_offset
    ]
    yield from _wrap(messages, codec)


def _one_to_zero(data: memoryview) -> Iterator[bytes]:
    message, _ = read_message(data, 0)
    messages = unwrap(message) if message.codec else [message]
    plain = [inner._replace(magic=0, attributes=0, timestamp=NO_TIMESTAMP) for inner in messages]
    yield from _wrap(plain, CompressionType(message.codec))


def _wrap(messages: list[Message], codec: CompressionType) -> Iterator[bytes]:
    if codec is CompressionType.NONE or not messages:
        yield from map(encode_message, messages)
        return
    magic, last_offset = messages[0].magic, messages[-1].offset
    base_offset = messages[0].offset if magic == 1 else 0
    content = b"".join(
        encode_message(message._replace(offset=message.offset - base_offset)) for message in messages
    )
    yield encode_message(
        Message(
            last_offset,
            magic,
            messages[0].attributes | codec,
            max(message.timestamp for message in messages),
            None,
            compress(codec, content, magic=magic),
        )
    )
