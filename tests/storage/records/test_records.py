"""Record serialization: kafka-python and Kafka read the records written here, and their records are read
here.
"""

from __future__ import annotations

import struct

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder

from kafka_compat.storage.errors import CorruptRecord, InvalidRecord
from kafka_compat.storage.records.batch import HEADER_SIZE, read_header, seal
from kafka_compat.storage.records.kinds import CompressionType, ControlRecordType, TimestampType
from kafka_compat.storage.records.records import (
    EndTransactionMarker,
    Record,
    build_batch,
    build_marker,
    control_record_type,
    encode_record,
    encode_varint,
    iter_records,
    join_batch,
    read_marker,
    read_varint,
    read_varlong,
)
from tests.storage.record_oracle import RecordOracle
from tests.storage.records.random_records import RECORDS

ORACLE = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)


def at(base_offset: int, records: list[Record]) -> list[Record]:
    return [record._replace(offset=base_offset + delta) for delta, record in enumerate(records)]


@given(records=RECORDS, codec=st.sampled_from(CompressionType), base_offset=st.integers(0, 2**60))
@settings(deadline=None)
def test_records_are_read_back_unchanged(
    records: list[Record], codec: CompressionType, base_offset: int
) -> None:
    batch = build_batch(records, base_offset=base_offset, compression=codec)
    assert list(iter_records(batch)) == at(base_offset, records)


@given(records=RECORDS, codec=st.sampled_from(CompressionType))
@ORACLE
def test_kafka_reads_our_batches(oracle: RecordOracle, records: list[Record], codec: CompressionType) -> None:
    assert oracle.read(build_batch(records, base_offset=7, compression=codec)) == at(7, records)


@given(records=RECORDS, codec=st.sampled_from(CompressionType))
@ORACLE
def test_kafkas_batches_are_read(oracle: RecordOracle, records: list[Record], codec: CompressionType) -> None:
    batch = oracle.build(records, codec=codec, base_offset=7)
    assert list(iter_records(batch)) == at(7, records)


@given(records=RECORDS)
@ORACLE
def test_uncompressed_batches_are_byte_identical_to_kafkas(
    oracle: RecordOracle, records: list[Record]
) -> None:
    ours = build_batch(records, base_offset=3, producer_id=9, producer_epoch=1, base_sequence=4)
    theirs = oracle.build(records, base_offset=3, producer_id=9, producer_epoch=1, base_sequence=4)
    assert ours == theirs


@given(records=RECORDS)
@settings(deadline=None)
def test_batches_are_interchangeable_with_kafka_python(records: list[Record]) -> None:
    theirs = DefaultRecordBatch(build_batch(records))
    assert theirs.validate_crc()
    read = [Record(r.offset, r.timestamp, r.key, r.value, list(r.headers)) for r in theirs]
    assert read == at(0, records)
    builder = DefaultRecordBatchBuilder(2, 0, False, -1, -1, -1, 1 << 20)
    for delta, record in enumerate(records):
        builder.append(delta, record.timestamp, record.key, record.value, list(record.headers))
    assert list(iter_records(bytes(builder.build()))) == at(0, records)


def test_with_log_append_time_all_records_have_the_maximum_timestamp() -> None:
    records = [Record(timestamp=5), Record(timestamp=9)]
    batch = build_batch(records, timestamp_type=TimestampType.LOG_APPEND_TIME)
    assert [record.timestamp for record in iter_records(batch)] == [9, 9]


def test_a_batch_without_records_is_rejected() -> None:
    with pytest.raises(ValueError, match="at least one"):
        build_batch([])


@given(st.integers(-(2**31), 2**31 - 1))
@settings(deadline=None)
def test_varints_are_read_back_unchanged(value: int) -> None:
    encoded = encode_varint(value)
    assert len(encoded) <= 5
    assert read_varint(encoded, 0) == (value, len(encoded))
    assert read_varint(b"\x7f" + encoded + b"\0", 1) == (value, 1 + len(encoded))


@given(st.integers(-(2**63), 2**63 - 1))
@settings(deadline=None)
def test_varlongs_are_read_back_unchanged(value: int) -> None:
    encoded = encode_varint(value)
    assert len(encoded) <= 10
    assert read_varlong(encoded, 0) == (value, len(encoded))


def test_varints_have_kafkas_zigzag_encoding() -> None:
    assert encode_varint(0) == b"\0"
    assert encode_varint(-1) == b"\1"
    assert encode_varint(63) == b"\x7e"
    assert encode_varint(64) == b"\x80\1"
    assert encode_varint(2**63 - 1) == b"\xfe" + b"\xff" * 8 + b"\1"


@pytest.mark.parametrize("encoded", [b"", b"\x80", b"\xff" * 5 + b"\1", b"\xff" * 10])
def test_unterminated_varints_are_rejected(encoded: bytes) -> None:
    with pytest.raises(InvalidRecord):
        read_varint(encoded, 0)


def damaged(body: bytes, count: int = 1) -> bytes:
    header = read_header(build_batch([Record(timestamp=0)]))
    return join_batch(header.replace(record_count=count, last_offset_delta=count - 1), body)


GOOD = encode_record(0, 0, b"key", b"value", [("h", b"x")])


@pytest.mark.parametrize(
    ("batch", "error"),
    [
        (damaged(GOOD[:-1]), InvalidRecord),
        (damaged(GOOD + b"\0"), InvalidRecord),
        (damaged(GOOD, count=2), InvalidRecord),
        (damaged(encode_varint(1000) + GOOD[1:]), InvalidRecord),
        (damaged(encode_varint(-5) + GOOD[1:]), InvalidRecord),
        (damaged(b"\x0c\0\0\0\1\1\1"), InvalidRecord),
        (damaged(b"\x0c\0\0\0\1\1\x7e"), InvalidRecord),
        (damaged(b"\x10\0\0\0\1\1\2\1\1"), InvalidRecord),
        (build_batch([Record()])[:-1], CorruptRecord),
        (b"", CorruptRecord),
    ],
    ids=[
        "cut off",
        "trailing byte",
        "one record too few",
        "length beyond the batch",
        "negative length",
        "negative header count",
        "more headers than bytes",
        "header without a key",
        "batch cut off",
        "nothing",
    ],
)
def test_malformed_records_are_rejected(batch: bytes, error: type[Exception]) -> None:
    with pytest.raises(error):
        list(iter_records(batch))


def test_batches_in_older_formats_are_rejected() -> None:
    batch = bytearray(build_batch([Record()]))
    batch[16] = 1
    with pytest.raises(CorruptRecord):
        list(iter_records(batch))


@pytest.mark.parametrize("kind", [ControlRecordType.ABORT, ControlRecordType.COMMIT])
def test_transaction_markers_match_kafkas(kind: ControlRecordType) -> None:
    marker = EndTransactionMarker(kind, coordinator_epoch=12)
    batch = build_marker(marker, producer_id=5, producer_epoch=2, timestamp=777, base_offset=30)
    header = read_header(batch)
    assert (header.is_control, header.is_transactional, header.base_sequence) == (True, True, -1)
    assert (header.producer_id, header.producer_epoch, header.max_timestamp) == (5, 2, 777)
    assert read_marker(batch) == marker
    theirs = next(iter(DefaultRecordBatch(batch)))
    assert theirs.abort is (kind is ControlRecordType.ABORT)


def test_control_records_of_other_types_are_not_markers() -> None:
    def control(key: bytes, value: bytes) -> bytes:
        return build_batch([Record(timestamp=0, key=key, value=value)], control=True)

    assert read_marker(control(struct.pack(">hh", 0, 2), b"")) is None
    unknown = control(struct.pack(">hh", 0, 99), b"")
    assert control_record_type(next(iter_records(unknown))) is None
    with pytest.raises(InvalidRecord):
        read_marker(control(struct.pack(">hh", 0, 1), b"\0\0"))
    with pytest.raises(InvalidRecord):
        read_marker(control(b"\0", b""))


def test_sealing_a_changed_batch_makes_it_valid_again() -> None:
    batch = bytearray(build_batch([Record(timestamp=1)]))
    batch[HEADER_SIZE - 1] = 1
    batch[40] = 9
    seal(batch)
    assert DefaultRecordBatch(bytes(batch)).validate_crc()
