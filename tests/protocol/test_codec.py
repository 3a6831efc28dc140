"""Generated codecs: they agree with the interpreted ones, and decoding an encoded message returns the same
message.
"""

from __future__ import annotations

import struct
import traceback
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.protocol.buffers import COPIED_BYTES_MAX, size_of
from kafka_compat.protocol.codec import (
    UNBOUNDED,
    MalformedRequest,
    decode,
    decode_at,
    decode_versioned,
    encode,
    encode_versioned,
    framer,
)
from kafka_compat.protocol.interpreter import Refused, interpret_decode, interpret_encode
from kafka_compat.protocol.messages.consumer_group_records import ConsumerGroupMemberMetadataValue
from kafka_compat.protocol.messages.consumer_offsets import OffsetCommitKey
from kafka_compat.protocol.messages.fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)
from kafka_compat.protocol.messages.find_coordinator import FindCoordinatorResponse
from kafka_compat.protocol.messages.heartbeat import HeartbeatResponse
from kafka_compat.protocol.messages.metadata import MetadataResponse, MetadataResponseTopic
from kafka_compat.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kafka_compat.protocol.schema import ArrayOf, FieldSpec, Message, Wire, WireType, fields_of
from tests.protocol.known_messages import message_versions
from tests.support.campaign import rounds

_INTEGERS = {
    "int8": (-(1 << 7), (1 << 7) - 1),
    "int16": (-(1 << 15), (1 << 15) - 1),
    "uint16": (0, (1 << 16) - 1),
    "int32": (-(1 << 31), (1 << 31) - 1),
    "uint32": (0, (1 << 32) - 1),
    "int64": (-(1 << 63), (1 << 63) - 1),
}
_OTHERS: dict[str, st.SearchStrategy[Any]] = {
    "bool": st.booleans(),
    "float64": st.floats(allow_nan=False),
    "uuid": st.integers(0, (1 << 128) - 1).map(lambda number: UUID(int=number)),
    "string": st.text(st.characters(exclude_categories=["Cs"]), max_size=200),
    "bytes": st.binary(max_size=200),
    "records": st.binary(max_size=200),
}
_VERSIONS = list(message_versions())


def values(wire_type: WireType, version: int) -> st.SearchStrategy[Any]:
    if isinstance(wire_type, ArrayOf):
        return st.lists(values(wire_type.element, version), max_size=3)
    if not isinstance(wire_type, Wire):
        return messages(wire_type, version)
    if wire_type.name in _INTEGERS:
        return st.integers(*_INTEGERS[wire_type.name])
    return _OTHERS[wire_type.name]


def fields(spec: FieldSpec, version: int) -> st.SearchStrategy[Any]:
    strategy = values(spec.type, version)
    return st.none() | strategy if version in spec.nullable else strategy


def messages(cls: type[Message], version: int) -> st.SearchStrategy[Any]:
    """Generate messages with any values in the fields of the version."""
    carried = [spec for spec in fields_of(cls) if version in spec.versions]
    return st.builds(cls, **{spec.name: fields(spec, version) for spec in carried})


@given(st.data())
@settings(
    max_examples=rounds(everyday=600, campaign=20_000),
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
def test_compiled_and_interpreted_codecs_agree_and_decode_what_they_encode(data: st.DataObject) -> None:
    cls, version = data.draw(st.sampled_from(_VERSIONS))
    message = data.draw(messages(cls, version))
    content = encode(message, version)
    assert b"".join(interpret_encode(message, version)) == content  # type: ignore[arg-type]
    decoded, end = decode_at(cls, version, content, 0)
    assert (decoded, end) == interpret_decode(cls, version, content, 0)
    assert decoded == message
    assert end == len(content)


@given(st.data())
@settings(max_examples=rounds(everyday=600, campaign=20_000), deadline=None)
def test_compiled_and_interpreted_codecs_reject_the_same_bytes(data: st.DataObject) -> None:
    cls, version = data.draw(st.sampled_from(_VERSIONS))
    content = data.draw(st.binary(max_size=60))
    try:
        expected = interpret_decode(cls, version, content, 0)
    except Refused as refused:
        with pytest.raises(MalformedRequest) as raised:
            decode_at(cls, version, content, 0)
        assert raised.value.message == f"v{version} {refused}"
    else:
        assert decode_at(cls, version, content, 0) == expected


def test_every_version_of_a_default_message_round_trips() -> None:
    for cls, version in _VERSIONS:
        content = encode(cls(), version)
        assert content == b"".join(interpret_encode(cls(), version))  # type: ignore[arg-type]
        assert decode(cls, version, content, exact=True) == cls()


def test_records_of_a_large_request_are_views_of_its_buffer() -> None:
    batch = b"batch" * COPIED_BYTES_MAX
    frame = bytearray(b"head" + encode(produce_request(batch), 9))
    request = decode(ProduceRequest, 9, memoryview(frame), 4)
    records = request.topic_data[0].partition_data[0].records
    assert isinstance(records, memoryview) and records == batch
    records[:5] = b"BATCH"
    assert b"BATCH" in frame


def test_records_of_a_small_request_are_bytes_that_outlive_its_buffer() -> None:
    frame = bytearray(b"head" + encode(produce_request(b"batch"), 9))
    request = decode(ProduceRequest, 9, memoryview(frame), 4)
    frame[:] = bytes(len(frame))
    assert request.topic_data[0].partition_data[0].records == b"batch"


@dataclass
class Slice:
    size_bytes: int


def test_file_slices_are_separate_parts_of_the_encoded_response() -> None:
    first, second = Slice(300), Slice(5)
    response = fetch_response(first, b"in memory", second, None)
    parts = framer(FetchResponse, 12)(response, 77, UNBOUNDED)
    assert [part for part in parts if isinstance(part, Slice)] == [first, second]
    content = b"".join(part if isinstance(part, bytes) else b"z" * size_of(part) for part in parts)
    assert sum(map(size_of, parts)) == len(content)
    assert content[:9] == struct.pack(">iix", len(content) - 4, 77)
    partitions = decode(FetchResponse, 12, content, 9, exact=True).responses[0].partitions
    assert [partition.records for partition in partitions] == [b"z" * 300, b"in memory", b"z" * 5, None]


def test_large_records_are_encoded_without_a_copy() -> None:
    large, small = memoryview(bytes(100_000)), memoryview(b"small")
    parts = framer(FetchResponse, 4)(fetch_response(large, small), 77, UNBOUNDED)
    assert len(parts) == 3
    assert parts[1] is large
    assert bytes(parts[2]).endswith(b"small")


def test_a_value_out_of_range_is_reported_with_its_field() -> None:
    response = MetadataResponse(topics=[MetadataResponseTopic(name="t", error_code=1 << 20)])
    with pytest.raises(ValueError, match=r"v1 MetadataResponse.topics\[0\].error_code at byte"):
        encode(response, 1)


def test_none_in_a_non_nullable_field_is_reported_with_its_field() -> None:
    with pytest.raises(ValueError, match=r"MetadataResponse.topics\[0\].name .*cannot be null"):
        encode(MetadataResponse(topics=[MetadataResponseTopic(name=None)]), 8)


def test_fields_of_other_versions_are_omitted() -> None:
    response = FindCoordinatorResponse(throttle_time_ms=7, host="h", port=1, node_id=2)
    decoded = decode(FindCoordinatorResponse, 0, encode(response, 0), exact=True)
    assert decoded == FindCoordinatorResponse(host="h", port=1, node_id=2)


def test_an_undefined_version_is_reported_as_unsupported() -> None:
    for use in (lambda: encode(MetadataResponse(), 99), lambda: decode(MetadataResponse, 99, b"")):
        with pytest.raises(KafkaError, match=r"known are 0-13") as raised:
            use()
        assert raised.value.code == ErrorCode.UNSUPPORTED_VERSION


def test_versioned_bytes_start_with_the_version() -> None:
    key = OffsetCommitKey(group="g", topic="t", partition=3)
    content = encode_versioned(key, 1)
    assert content == b"\x00\x01\x00\x01g\x00\x01t\x00\x00\x00\x03"
    assert decode_versioned(OffsetCommitKey, content) == (key, 1)
    with pytest.raises(MalformedRequest, match="no version"):
        decode_versioned(OffsetCommitKey, b"\x00")


def test_an_array_default_is_not_shared_between_messages() -> None:
    first, second = MetadataResponse(), MetadataResponse()
    first.topics.append(MetadataResponseTopic(name="t"))
    assert second.topics == []


@pytest.mark.interpreted("native messages share a default that is not protected")
def test_the_shared_default_of_a_tagged_struct_cannot_be_changed() -> None:
    partition = PartitionData()
    with pytest.raises(TypeError, match="assign a new EpochEndOffset"):
        partition.diverging_epoch.epoch = 3
    partition.diverging_epoch = EpochEndOffset(epoch=3, end_offset=9)
    assert PartitionData().diverging_epoch == EpochEndOffset()


def test_a_traceback_shows_the_generated_line() -> None:
    try:
        encode(HeartbeatResponse(throttle_time_ms="soon"), 3)  # type: ignore[arg-type]
    except ValueError as error:
        shown = "".join(traceback.format_exception(error))
    assert "<encode HeartbeatResponse v3>" in shown
    assert "m.throttle_time_ms" in shown


def produce_request(records: bytes) -> ProduceRequest:
    partition = PartitionProduceData(index=0, records=records)
    return ProduceRequest(
        acks=1, timeout_ms=9, topic_data=[TopicProduceData(name="t", partition_data=[partition])]
    )


def fetch_response(*records: Any) -> FetchResponse:
    partitions = [PartitionData(partition_index=i, records=value) for i, value in enumerate(records)]
    return FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=partitions)])


def test_a_null_struct_in_a_tagged_field_is_encoded_as_by_apache_kafka() -> None:
    member = ConsumerGroupMemberMetadataValue(
        instance_id=None,
        rack_id=None,
        client_id="conformance",
        client_host="/127.0.0.1",
        subscribed_topic_names=["topic"],
        rebalance_timeout_ms=60_000,
        server_assignor=None,
        classic_member_metadata=None,
    )
    written_by_kafka = bytes.fromhex(
        "000000000c636f6e666f726d616e63650b2f3132372e302e302e310206746f706963010000ea600001000100"
    )
    assert encode_versioned(member, 0) == written_by_kafka
    assert decode_versioned(ConsumerGroupMemberMetadataValue, written_by_kafka) == (member, 0)
