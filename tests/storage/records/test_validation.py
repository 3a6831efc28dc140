"""Validation of produced batches: batches that a leader accepts, rejects or corrects, with Apache Kafka's
error codes.
"""

from __future__ import annotations

import hashlib
import random
import struct
from collections.abc import Callable

import cramjam
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kafka_compat.storage import errors
from kafka_compat.storage.config import LogConfig
from kafka_compat.storage.errors import StorageError
from kafka_compat.storage.records.batch import crc_ok, read_header, seal
from kafka_compat.storage.records.compression import NAMES, compress
from kafka_compat.storage.records.kinds import CompressionType, TimestampType
from kafka_compat.storage.records.legacy import Message, encode_message
from kafka_compat.storage.records.records import Record, build_batch, encode_record, iter_records, join_batch
from kafka_compat.storage.records.validation import (
    AppendPolicy,
    ValidatedBatches,
    policy_of,
    validate_batches,
)
from tests.storage.record_oracle import RecordOracle
from tests.storage.records.random_records import RECORDS
from tests.support.campaign import rounds

NOW_MS = 1_700_000_000_000
CODES = {
    errors.CorruptRecord: 2,
    errors.MessageTooLarge: 10,
    errors.RecordListTooLarge: 18,
    errors.InvalidTimestamp: 32,
    errors.UnsupportedCompressionType: 76,
    errors.InvalidRecord: 87,
    errors.NotOneBatch: 87,
    errors.MisplacedBatch: 87,
}


def validate(data: bytes | bytearray, produce_version: int | None = 9, **policy: object) -> ValidatedBatches:
    settled = AppendPolicy(**policy)  # type: ignore[arg-type]
    return validate_batches(memoryview(data), settled, NOW_MS, produce_version=produce_version)


def good(count: int = 3, **batch: object) -> bytearray:
    records = [
        Record(timestamp=NOW_MS - 10 + index, key=b"k%d" % index, value=b"v" * 40) for index in range(count)
    ]
    return bytearray(build_batch(records, **batch))  # type: ignore[arg-type]


def edited(position: int, fmt: str, value: int, batch: bytearray | None = None) -> bytearray:
    """Return a valid batch with one changed header field and a recomputed CRC."""
    changed = good() if batch is None else batch
    struct.pack_into(fmt, changed, position, value)
    seal(changed)
    return changed


def unsealed(position: int, fmt: str, value: int) -> bytearray:
    changed = good()
    struct.pack_into(fmt, changed, position, value)
    return changed


def with_body(body: bytes, count: int = 1, codec: CompressionType = CompressionType.NONE) -> bytes:
    header = read_header(build_batch([Record(timestamp=NOW_MS)]))
    return join_batch(
        header.replace(attributes=int(codec), record_count=count, last_offset_delta=count - 1), body
    )


def broken_codec(codec: CompressionType) -> bytearray:
    """Return a batch with a valid CRC and corrupt compressed data."""
    batch = good(100, compression=codec)
    batch[100:110] = bytes(10)
    del batch[-5:]
    struct.pack_into(">i", batch, 8, len(batch) - 12)
    seal(batch)
    return batch


def bomb() -> bytes:
    return with_body(encode_record(0, 0, b"k", bytes(200 << 20)), codec=CompressionType.ZSTD)


RECORD = encode_record(0, 0, b"k", b"v", [("h", b"x")])
TOO_LONG = encode_record(0, 0, b"k", b"v")[1:]
OLD = encode_message(Message(0, 1, 0, NOW_MS, b"k", b"v"))

REFUSED: dict[str, tuple[Callable[[], bytes | bytearray], type[StorageError], dict[str, object]]] = {
    "24 bad CRC": (lambda: unsealed(100, ">b", 1), errors.CorruptRecord, {}),
    "25 magic 3": (lambda: edited(16, ">b", 3), errors.CorruptRecord, {}),
    "25 magic -1": (lambda: edited(16, ">b", -1), errors.CorruptRecord, {}),
    "25 batch length 13": (lambda: unsealed(8, ">i", 13), errors.CorruptRecord, {}),
    "25 batch length -1": (lambda: unsealed(8, ">i", -1), errors.CorruptRecord, {}),
    "25 batch length 48, below a header": (lambda: unsealed(8, ">i", 48), errors.CorruptRecord, {}),
    "26 magic 1": (lambda: OLD, errors.NotOneBatch, {}),
    "26 magic 0": (lambda: encode_message(Message(0, 0, 0, -1, None, b"v")), errors.NotOneBatch, {}),
    "27 nothing": (lambda: b"", errors.NotOneBatch, {}),
    "27 truncated batch": (lambda: good()[:-1], errors.NotOneBatch, {}),
    "27 truncated header": (lambda: good()[:30], errors.NotOneBatch, {}),
    "27 truncated before the magic": (lambda: good()[:14], errors.NotOneBatch, {}),
    "28 two batches": (lambda: good() + good(), errors.NotOneBatch, {}),
    "29 base offset": (lambda: unsealed(0, ">q", 1), errors.MisplacedBatch, {}),
    "30 count too small": (lambda: edited(57, ">i", 2), errors.MisplacedBatch, {}),
    "30 count too great": (lambda: edited(57, ">i", 4), errors.MisplacedBatch, {}),
    "30 count 0": (lambda: edited(57, ">i", 0, edited(23, ">i", -1)), errors.MisplacedBatch, {}),
    "30 count negative": (lambda: edited(57, ">i", -1, edited(23, ">i", -2)), errors.MisplacedBatch, {}),
    "30 count INT32_MAX": (
        lambda: edited(57, ">i", 2**31 - 1, edited(23, ">i", 2**31 - 2)),
        errors.InvalidRecord,
        {},
    ),
    "31 control bit": (lambda: good(control=True), errors.MisplacedBatch, {}),
    "32 producer id without sequence": (
        lambda: good(producer_id=5, producer_epoch=0),
        errors.MisplacedBatch,
        {},
    ),
    "33 record length past the batch": (lambda: with_body(b"\x7e" + TOO_LONG), errors.InvalidRecord, {}),
    "33 record length negative": (lambda: with_body(b"\1" + TOO_LONG), errors.InvalidRecord, {}),
    "34 header count negative": (lambda: with_body(b"\x0c\0\0\0\1\1\1"), errors.InvalidRecord, {}),
    "34 header count beyond the buffer": (lambda: with_body(b"\x0c\0\0\0\1\1\x7e"), errors.InvalidRecord, {}),
    "trailing bytes": (lambda: with_body(RECORD + b"\0"), errors.InvalidRecord, {}),
    "one record too few": (lambda: with_body(RECORD, count=2), errors.InvalidRecord, {}),
    "36 LogAppendTime bit": (
        lambda: good(timestamp_type=TimestampType.LOG_APPEND_TIME),
        errors.InvalidTimestamp,
        {"timestamp_type": TimestampType.LOG_APPEND_TIME},
    ),
    "37 zstd in v6": (
        lambda: good(compression=CompressionType.ZSTD),
        errors.UnsupportedCompressionType,
        {"produce_version": 6},
    ),
    "38 codec 5": (lambda: edited(21, ">h", 5), errors.InvalidRecord, {}),
    "38 codec 7": (lambda: edited(21, ">h", 7), errors.InvalidRecord, {}),
    "39 broken gzip": (lambda: broken_codec(CompressionType.GZIP), errors.CorruptRecord, {}),
    "39 broken snappy": (lambda: broken_codec(CompressionType.SNAPPY), errors.CorruptRecord, {}),
    "39 broken lz4": (lambda: broken_codec(CompressionType.LZ4), errors.CorruptRecord, {}),
    "39 broken zstd": (lambda: broken_codec(CompressionType.ZSTD), errors.CorruptRecord, {}),
    "40 above max.message.bytes": (good, errors.MessageTooLarge, {"max_message_bytes": 100}),
    "40 checked before the CRC": (
        lambda: unsealed(100, ">b", 1),
        errors.MessageTooLarge,
        {"max_message_bytes": 100},
    ),
    "41 above segment.bytes": (good, errors.RecordListTooLarge, {"segment_bytes": 100}),
    "48 bomb": (bomb, errors.MessageTooLarge, {}),
    "compressed body with one byte too many": (
        lambda: with_body(RECORD + b"\0", codec=CompressionType.GZIP),
        errors.InvalidRecord,
        {},
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_each_invalid_batch_raises_the_error_for_its_cause(case: str) -> None:
    make, error, policy = REFUSED[case]
    with pytest.raises(error) as caught:
        validate(make(), **policy)  # type: ignore[arg-type]
    assert type(caught.value) is error


@pytest.mark.parametrize(
    "case",
    [
        case
        for case, (_, _, policy) in REFUSED.items()
        # Kafka checks the sizes outside of its validator. The error codes of the other excluded cases differ
        # from Kafka's deliberately.
        if not policy.keys() & {"max_message_bytes", "segment_bytes"}
        and case[:2] not in ("38", "39", "48")
        and case != "30 count INT32_MAX"
    ],
)
def test_invalid_batches_are_rejected_with_kafkas_error_code(oracle: RecordOracle, case: str) -> None:
    make, error, policy = REFUSED[case]
    assert oracle.validate(bytes(make()), **policy).code == CODES[error]  # type: ignore[arg-type]


def test_a_valid_batch_is_appended_without_copying_its_buffer() -> None:
    batch = good(150)
    before = bytes(batch)
    validated = validate(batch)
    assert isinstance(validated.data, memoryview) and validated.data.obj is batch
    assert batch == before
    assert validated.headers == [read_header(batch)]
    assert (validated.log_append_time, validated.converted) == (-1, False)


@given(records=RECORDS, codec=st.sampled_from(CompressionType))
@settings(deadline=None)
def test_valid_batches_are_kept_unchanged(records: list[Record], codec: CompressionType) -> None:
    batch = build_batch(records, compression=codec)
    assert validate(batch, after_max_ms=2**63 - 1).data == batch


def test_a_truncated_second_batch_is_dropped_as_in_kafka(oracle: RecordOracle) -> None:
    whole, cut = good(), good()[:40]
    assert validate(whole + cut).data == whole
    assert oracle.validate(bytes(whole + cut)).code == 0


def test_compacted_topics_require_keys(oracle: RecordOracle) -> None:
    keys = [b"a", None, b"b", None]
    batch = build_batch([Record(timestamp=NOW_MS, key=key) for key in keys])
    validate(batch)
    with pytest.raises(errors.InvalidRecord) as caught:
        validate(batch, compact=True)
    assert [index for index, _ in caught.value.record_errors] == [1, 3]
    assert oracle.validate(batch, compact=True).code == 87
    validate(build_batch([Record(timestamp=NOW_MS, key=b"")]), compact=True)


@pytest.mark.parametrize(
    ("ages_ms", "refused"),
    [
        ([0, 500, 1000], []),
        ([0, 1001, 5], [1]),
        ([-2000], []),
        ([-2001, 0, -2001], [0, 2]),
        ([3000, -3000], [0, 1]),
    ],
)
@pytest.mark.parametrize("codec", [CompressionType.NONE, CompressionType.LZ4])
def test_timestamps_outside_the_limits_are_rejected(
    ages_ms: list[int], refused: list[int], codec: CompressionType
) -> None:
    batch = build_batch([Record(timestamp=NOW_MS - age_ms) for age_ms in ages_ms], compression=codec)
    limits = {"before_max_ms": 1000, "after_max_ms": 2000}
    if not refused:
        validate(batch, **limits)
        return
    with pytest.raises(errors.InvalidTimestamp) as caught:
        validate(batch, **limits)
    assert [index for index, _ in caught.value.record_errors] == refused
    assert validate(batch, **limits, timestamp_type=TimestampType.LOG_APPEND_TIME).log_append_time == NOW_MS


def test_a_record_without_a_timestamp_is_not_checked_against_the_limits() -> None:
    validate(build_batch([Record(timestamp=-1)] * 2), before_max_ms=1000)


def test_a_missing_key_and_an_invalid_timestamp_are_reported_together() -> None:
    batch = build_batch([Record(timestamp=NOW_MS), Record(timestamp=0, key=b"k")])
    with pytest.raises(errors.InvalidTimestamp) as caught:
        validate(batch, compact=True, before_max_ms=1000)
    assert [index for index, _ in caught.value.record_errors] == [0, 1]


def test_a_wrong_offset_delta_is_reported_with_the_index_of_its_record() -> None:
    body = encode_record(0, 0, b"k", b"v") + encode_record(5, 0, b"k", b"v")
    with pytest.raises(errors.InvalidRecord) as caught:
        validate(with_body(body, count=2))
    assert [index for index, _ in caught.value.record_errors] == [1]


@pytest.mark.parametrize("codec", CompressionType)
@pytest.mark.parametrize("writable", [True, False])
def test_log_append_time_overrides_the_timestamps(codec: CompressionType, writable: bool) -> None:
    batch = good(5, compression=codec)
    size = len(batch)
    validated = validate(batch if writable else bytes(batch), timestamp_type=TimestampType.LOG_APPEND_TIME)
    (header,) = validated.headers
    assert validated.log_append_time == header.max_timestamp == NOW_MS
    assert header.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert len(validated.data) == size
    assert isinstance(validated.data, memoryview) and (validated.data.obj is batch) is writable
    assert crc_ok(validated.data, 0, header)
    assert {record.timestamp for record in iter_records(validated.data)} == {NOW_MS}


def test_a_wrong_maximum_timestamp_is_corrected(oracle: RecordOracle) -> None:
    batch = edited(35, ">q", NOW_MS + 77)
    validated = validate(batch)
    (header,) = validated.headers
    assert header.max_timestamp == NOW_MS - 8
    assert crc_ok(validated.data, 0, header)
    assert oracle.validate(bytes(edited(35, ">q", NOW_MS + 77))).text == str(NOW_MS - 8)


def test_the_log_append_time_bit_is_cleared_with_create_time() -> None:
    validated = validate(good(timestamp_type=TimestampType.LOG_APPEND_TIME))
    (header,) = validated.headers
    assert header.timestamp_type is TimestampType.CREATE_TIME
    assert crc_ok(validated.data, 0, header)


@pytest.mark.parametrize("source", CompressionType)
@pytest.mark.parametrize("target", NAMES)
def test_records_are_recompressed_with_the_topics_codec(source: CompressionType, target: str) -> None:
    batch = good(50, compression=source, producer_id=6, producer_epoch=1, base_sequence=9)
    expected = list(iter_records(batch))
    validated = validate(batch, compression_type=target)
    (header,) = validated.headers
    assert header.compression is NAMES[target]
    assert validated.converted is (NAMES[target] is not source)
    assert crc_ok(validated.data, 0, header)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (6, 1, 9)
    assert list(iter_records(validated.data)) == expected


@pytest.mark.parametrize(("codec", "low", "high"), [("gzip", 1, 9), ("zstd", -50, 19), ("lz4", 9, 12)])
def test_records_are_recompressed_at_the_topics_compression_level(codec: str, low: int, high: int) -> None:
    """A higher level makes the batch smaller. For lz4, the default level 9 is the fastest, as in Kafka."""
    values = [hashlib.sha256(b"%d" % (number % 40)).hexdigest().encode() * 3 for number in range(400)]
    batch = build_batch([Record(timestamp=NOW_MS, value=value) for value in values])
    sizes = []
    for level in (low, high):
        config = LogConfig(compression_type=codec, compression_level=level)
        validated = validate_batches(batch, policy_of(config, "t-0"), NOW_MS)
        assert [record.value for record in iter_records(validated.data)] == values
        sizes.append(len(validated.data))
    assert sizes[1] < sizes[0]


def test_a_batch_that_recompression_makes_too_large_is_rejected() -> None:
    batch = good(200, compression=CompressionType.ZSTD)
    with pytest.raises(errors.MessageTooLarge):
        validate(batch, compression_type="uncompressed", max_message_bytes=2000)


def test_without_record_validation_only_the_header_is_checked() -> None:
    body = with_body(b"not a record")
    assert validate(body, validate_records=False).data == body
    broken = broken_codec(CompressionType.GZIP)
    assert validate(broken, validate_records=False).data == broken
    for case in ("24 bad CRC", "28 two batches", "30 count too great", "31 control bit", "38 codec 5"):
        make, error, _ = REFUSED[case]
        with pytest.raises(error):
            validate(make(), validate_records=False)


def message_set(magic: int, records: list[tuple[int, bytes | None, bytes | None]], codec: int = 0) -> bytes:
    inner = b"".join(
        encode_message(Message(offset, magic, 0, timestamp if magic else -1, key, value))
        for offset, (timestamp, key, value) in enumerate(records)
    )
    if not codec:
        return inner
    compressed = compress(CompressionType(codec), inner, magic=magic)
    greatest = max(timestamp for timestamp, _, _ in records) if magic else -1
    return encode_message(Message(len(records) - 1, magic, codec, greatest, None, compressed))


OLD_RECORDS = [(NOW_MS - 5, b"a", b"1"), (NOW_MS, None, b"2"), (NOW_MS - 2, b"c", None)]


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [0, 1, 2, 3])
@pytest.mark.parametrize("produce_version", [0, 2])
def test_messages_in_old_formats_become_one_batch_in_format_2(
    magic: int, codec: int, produce_version: int
) -> None:
    validated = validate(message_set(magic, OLD_RECORDS, codec), produce_version)
    (header,) = validated.headers
    assert validated.converted
    assert (header.magic, header.compression, header.record_count) == (2, codec, 3)
    assert crc_ok(validated.data, 0, header)
    assert [tuple(record[:4]) for record in iter_records(validated.data)] == [
        (offset, timestamp if magic else -1, key, value)
        for offset, (timestamp, key, value) in enumerate(OLD_RECORDS)
    ]


@pytest.mark.parametrize("magic", [0, 1])
def test_topic_settings_apply_to_messages_in_old_formats(magic: int) -> None:
    data = message_set(magic, OLD_RECORDS)
    stamped = validate(data, 2, timestamp_type=TimestampType.LOG_APPEND_TIME)
    assert stamped.log_append_time == NOW_MS
    assert {record.timestamp for record in iter_records(stamped.data)} == {NOW_MS}
    assert validate(data, 2, compression_type="zstd").headers[0].compression is CompressionType.ZSTD
    with pytest.raises(errors.InvalidRecord) as caught:
        validate(data, 2, compact=True)
    assert [index for index, _ in caught.value.record_errors] == [1]
    with pytest.raises(errors.MessageTooLarge):
        validate(data, 2, max_message_bytes=20)
    with pytest.raises(errors.RecordListTooLarge):
        validate(data, 2, segment_bytes=20)


def test_empty_and_truncated_message_sets_of_old_clients_are_accepted() -> None:
    assert validate(b"", 2).headers == []
    assert validate(OLD[:-1], 2).headers == []
    assert [record.value for record in iter_records(validate(OLD + OLD[:20], 2).data)] == [b"v"]


def test_invalid_batches_in_old_formats_are_rejected() -> None:
    set_of_two = message_set(1, OLD_RECORDS[:2], 1)
    for data, error in [
        (OLD[:-1] + b"x", errors.CorruptRecord),
        (OLD + set_of_two, errors.InvalidRecord),
        (OLD + encode_message(Message(0, 0, 0, -1, None, b"v")), errors.InvalidRecord),
        (encode_message(Message(0, 1, 1, NOW_MS, None, None)), errors.InvalidRecord),
        (encode_message(Message(0, 1, 1, NOW_MS, None, b"not gzip")), errors.CorruptRecord),
        (encode_message(Message(0, 1, 4, NOW_MS, None, b"zstd")), errors.InvalidRecord),
        (
            encode_message(Message(0, 1, 2, NOW_MS, None, bytes(cramjam.snappy.compress_raw(set_of_two)))),
            errors.InvalidRecord,
        ),
    ]:
        with pytest.raises(error):
            validate(data, 2)
    with pytest.raises(errors.InvalidTimestamp):
        validate(OLD, 2, after_max_ms=-1)


@pytest.mark.parametrize("version", [3, 6, 7, 9, None])
def test_zstd_requires_produce_version_7_or_later(version: int | None) -> None:
    batch = good(compression=CompressionType.ZSTD)
    if version is None or version >= 7:
        validate(batch, version)
    else:
        with pytest.raises(errors.UnsupportedCompressionType):
            validate(batch, version)


STRICTER = ("offset delta", "more than 64 bits", "should be within [-9223370336854775807,")
"""Error messages for records that Kafka would store, although their offsets are invalid or their timestamps
wrap round in Kafka's 64-bit subtraction.
"""


@given(records=RECORDS, seed=st.integers(0, 2**32), reseal=st.booleans())
@settings(
    deadline=None,
    max_examples=rounds(200, 4000),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_mutated_batches_are_accepted_or_rejected_as_in_kafka(
    oracle: RecordOracle, records: list[Record], seed: int, reseal: bool
) -> None:
    chance = random.Random(seed)
    batch = bytearray(build_batch(records))
    for _ in range(chance.choice([1, 1, 1, 2])):
        position = chance.choice([chance.randrange(16, 80), chance.randrange(len(batch))])
        batch[min(position, len(batch) - 1)] = chance.choice([0, 1, 2, 127, 128, chance.randrange(256)])
    if reseal and len(batch) > 61:
        seal(batch)
    if batch[22] & 7:
        return  # Error codes for corrupt compressed data differ from Kafka's; see the tests above.
    verdict = oracle.validate(bytes(batch))
    try:
        validated = validate(bytes(batch), after_max_ms=2**63 - 1)
    except StorageError as error:
        told = f"{error} {getattr(error, 'record_errors', '')}"
        if any(words in told for words in STRICTER):
            return
        assert CODES[type(error)] == verdict.code, (error, verdict)
    else:
        assert verdict == (0, str(validated.headers[0].max_timestamp))
