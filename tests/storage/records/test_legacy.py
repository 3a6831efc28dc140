"""Message formats 0 and 1: compatibility with Kafka and kafka-python, and down-conversion for old
consumers.
"""

from __future__ import annotations

import zlib

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kafka.record.legacy_records import LegacyRecordBatch, LegacyRecordBatchBuilder

from kafka_compat.storage.errors import CorruptRecord, InvalidRecord, UnsupportedCompressionType
from kafka_compat.storage.records.kinds import CompressionType, ControlRecordType, TimestampType
from kafka_compat.storage.records.legacy import (
    Message,
    down_convert,
    encode_message,
    read_message,
    read_message_set,
    unwrap,
)
from kafka_compat.storage.records.records import EndTransactionMarker, Record, build_batch, build_marker
from tests.storage.record_oracle import RecordOracle
from tests.storage.records.random_records import RECORDS

OLD_CODECS = [CompressionType.NONE, CompressionType.GZIP, CompressionType.SNAPPY, CompressionType.LZ4]
ORACLE = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)
magics = pytest.mark.parametrize("magic", [0, 1])
codecs = pytest.mark.parametrize("codec", OLD_CODECS, ids=lambda codec: codec.name)


def old(records: list[Record], magic: int, base_offset: int = 0) -> list[Record]:
    """Return the records without the fields that the old format lacks."""
    return [
        Record(base_offset + index, record.timestamp if magic else -1, record.key, record.value, [])
        for index, record in enumerate(records)
    ]


@given(records=RECORDS, magic=st.sampled_from([0, 1]), codec=st.sampled_from(OLD_CODECS))
@ORACLE
def test_messages_from_kafkas_old_producers_are_read(
    oracle: RecordOracle, records: list[Record], magic: int, codec: CompressionType
) -> None:
    plain = [record._replace(headers=[]) for record in records]
    message_set = read_message_set(oracle.build(plain, magic=magic, codec=codec))
    assert message_set.codec is codec
    assert not message_set.is_log_append_time
    assert [tuple(record[:4]) for record in message_set.records] == [
        tuple(r[:4]) for r in old(records, magic)
    ]


@magics
@pytest.mark.parametrize("codec", [0, 1, 2])
def test_messages_from_kafka_python_are_read(magic: int, codec: int) -> None:
    builder = LegacyRecordBatchBuilder(magic, codec, 1 << 20)
    for offset in range(4):
        builder.append(
            offset, timestamp=100 + offset, key=b"k%d" % offset, value=None if offset == 2 else b"v"
        )
    records = read_message_set(bytes(builder.build())).records
    assert [(r.offset, r.timestamp, r.key, r.value) for r in records] == [
        (offset, 100 + offset if magic else -1, b"k%d" % offset, None if offset == 2 else b"v")
        for offset in range(4)
    ]


@given(
    records=RECORDS,
    magic=st.sampled_from([0, 1]),
    codec=st.sampled_from(OLD_CODECS),
    base_offset=st.integers(0, 2**40),
)
@ORACLE
def test_down_converted_records_match_kafkas(
    oracle: RecordOracle, records: list[Record], magic: int, codec: CompressionType, base_offset: int
) -> None:
    batch = oracle.build(records, codec=codec, base_offset=base_offset)
    ours = down_convert(batch, magic)
    assert oracle.read(ours) == old(records, magic, base_offset)
    theirs = oracle.down_convert(batch, magic)
    if codec is CompressionType.NONE:
        assert ours == theirs
    assert oracle.read(theirs) == oracle.read(ours)


@pytest.mark.parametrize(
    ("magic", "codec"),
    # LZ4 in format 0 is excluded: kafka-python needs an extra package for its header checksum.
    [
        (magic, codec)
        for magic in (0, 1)
        for codec in OLD_CODECS
        if (magic, codec) != (0, CompressionType.LZ4)
    ],
)
def test_kafka_python_reads_down_converted_records(magic: int, codec: CompressionType) -> None:
    batch = build_batch(
        [Record(timestamp=50 + index, key=b"k", value=b"%d" % index) for index in range(5)],
        base_offset=1000,
        compression=codec,
    )
    data = down_convert(batch, magic)
    read = []
    while data:
        size = 12 + int.from_bytes(data[8:12], "big")
        read += list(LegacyRecordBatch(data[:size], magic))
        data = data[size:]
    assert [(r.offset, r.timestamp, r.value) for r in read] == [
        (1000 + index, 50 + index if magic else None, b"%d" % index) for index in range(5)
    ]


@codecs
def test_log_append_time_is_kept_in_format_1(oracle: RecordOracle, codec: CompressionType) -> None:
    batch = oracle.build(
        [Record(timestamp=1), Record(timestamp=2)],
        codec=codec,
        timestamp_type=TimestampType.LOG_APPEND_TIME,
        append_time=5000,
    )
    ours = down_convert(batch, 1)
    assert [record.timestamp for record in oracle.read(ours)] == [5000, 5000]
    first, _ = read_message(ours, 0)
    assert first.is_log_append_time
    if codec is CompressionType.NONE:
        assert ours == oracle.down_convert(batch, 1)


def test_log_append_time_of_a_wrapper_applies_to_all_inner_messages() -> None:
    inner = encode_message(Message(0, 1, 0, 11, None, b"a")) + encode_message(
        Message(1, 1, 0, 12, None, b"b")
    )
    gzip = zlib.compressobj(wbits=31)
    wrapper = Message(101, 1, 8 | 1, 7777, None, gzip.compress(inner) + gzip.flush())
    assert [(m.offset, m.timestamp) for m in unwrap(wrapper)] == [(100, 7777), (101, 7777)]


@magics
def test_uncompressed_records_start_at_the_requested_offset(oracle: RecordOracle, magic: int) -> None:
    records = [Record(timestamp=5, value=b"%d" % index) for index in range(6)]
    plain = build_batch(records, base_offset=10)
    assert [r.offset for r in oracle.read(down_convert(plain, magic, first_offset=13))] == [13, 14, 15]
    packed = build_batch(records, base_offset=10, compression=CompressionType.GZIP)
    assert [r.offset for r in oracle.read(down_convert(packed, magic, first_offset=13))] == [*range(10, 16)]


@magics
def test_markers_and_a_truncated_last_batch_are_omitted(oracle: RecordOracle, magic: int) -> None:
    first, last = (
        build_batch([Record(timestamp=1)], base_offset=0),
        build_batch([Record(timestamp=2)], base_offset=2),
    )
    marker = EndTransactionMarker(ControlRecordType.COMMIT, 0)
    control = build_marker(marker, producer_id=1, producer_epoch=0, timestamp=1, base_offset=1)
    data = down_convert(first + control + last + last[:50], magic)
    assert [record.offset for record in oracle.read(data)] == [0, 2]
    assert down_convert(control, magic) == b""


@magics
def test_zstd_cannot_be_down_converted(magic: int) -> None:
    batch = build_batch([Record(timestamp=1)], compression=CompressionType.ZSTD)
    with pytest.raises(UnsupportedCompressionType):
        down_convert(batch, magic)


def test_old_batches_are_down_converted_only_if_their_format_is_too_new(oracle: RecordOracle) -> None:
    records = [Record(timestamp=5 + index, value=b"%d" % index) for index in range(3)]
    for codec in OLD_CODECS:
        format_1 = oracle.build(records, magic=1, codec=codec, base_offset=20)
        assert down_convert(format_1, 1) == format_1
        assert oracle.read(down_convert(format_1, 0)) == old(records, 0, 20)
        format_0 = oracle.build(records, magic=0, codec=codec, base_offset=20)
        assert down_convert(format_0, 1) == format_0


@given(st.data())
@settings(deadline=None)
def test_damaged_messages_are_rejected(data: st.DataObject) -> None:
    message = bytearray(encode_message(Message(3, 1, 0, 99, b"key", b"value")))
    position = data.draw(st.integers(8, len(message) - 1))
    message[position] ^= data.draw(st.integers(1, 255))
    with pytest.raises(CorruptRecord):
        read_message(message, 0)


@pytest.mark.parametrize("size", range(0, 34, 3))
def test_truncated_messages_are_rejected(size: int) -> None:
    with pytest.raises(CorruptRecord):
        read_message(encode_message(Message(3, 1, 0, 99, b"key", b"value"))[:size], 0)


def test_invalid_content_of_a_wrapper_is_rejected() -> None:
    def wrapped(*inner: Message) -> Message:
        gzip = zlib.compressobj(wbits=31)
        content = gzip.compress(b"".join(map(encode_message, inner))) + gzip.flush()
        return Message(1, 1, 1, 5, None, content)

    plain = Message(0, 1, 0, 5, None, b"v")
    with pytest.raises(InvalidRecord) as caught:
        unwrap(wrapped(plain, Message(1, 0, 0, -1, None, b"format 0")))
    assert [index for index, _ in caught.value.record_errors] == [1]
    with pytest.raises(InvalidRecord):
        unwrap(wrapped(wrapped(plain)))
    with pytest.raises(InvalidRecord):
        unwrap(wrapped())
